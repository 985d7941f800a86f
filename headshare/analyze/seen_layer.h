// A sample shows this of one attention layer: where its heads look, and what it reads and gives, to compare layers that
// take its place.
#pragma once

#include <vector>

#include "headshare/analyze/similarity.h"
#include "headshare/attention/attention.h"

namespace headshare {

// Returns the first rows of a sample, ids int64 [N, T], with about `tokens` tokens together: at least one row, the rows
// cut to 1024 tokens, since attention maps take the square of that.
Tensor first_tokens(const Tensor& sample, int64_t tokens);

// Checks the memory for what `layers` layers read and gave for so many tokens: throws Error, naming both numbers, where
// that takes more memory than a machine should give for it.
void check_seen_memory(int64_t tokens, int64_t d_model, int64_t layers);

// Makes an attention layer of these options in evaluation mode, its parameters 0.
Attention working_layer(const AttentionOptions& options);

struct SeenLayer {
  MapSimilarity maps;

  // Adds what the layer read [B, T, E] and gave.
  void add(const Attention& layer, const Tensor& x, const HeadMask& mask, const Tensor& output);
  // Returns |change of the output| / |output| when `other` reads what the layer read.
  double output_change(const Attention& other) const;

 private:
  struct Pass {
    Tensor x;
    HeadMask mask;
    Tensor output;
  };
  std::vector<Pass> passes_;
};

}  // namespace headshare
