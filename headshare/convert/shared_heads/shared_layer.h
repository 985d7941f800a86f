// A layer whose heads get maps in common, of any scheme that has a ConversionRecord.
#pragma once

#include <string>
#include <vector>

#include "headshare/convert/collaborative/layer_problem.h"
#include "headshare/convert/shared_heads/shared_maps.h"

namespace headshare {

// A trained layer becomes one of this scheme.
struct SharedScheme {
  std::string scheme;                        // a ConversionRecord::scheme
  std::optional<int64_t> size = {};          // ConversionRecord::size, of gqa its groups; default as for new models
  Pooling pooling = Pooling::kLeastSquares;  // of gqa and mqa; other schemes have nothing to pool
  std::string variant = {};                  // one of ConversionRecord::variants; default as for new models
};

// Spells it as users do: "gqa:4", "shared_query:low_rank:8".
std::string name_of(const SharedScheme& to);

// The options, resolved, of the layer that takes the place of `source`, resolved: its temperature is kept, and biases
// are there if the source has them or `biased`. Throws Error for a scheme without a conversion, for groups that do not
// divide the heads, and for rotary heads whose keys are not as wide as their values.
AttentionOptions converted_options(const AttentionOptions& source, const SharedScheme& to, bool biased);

// Tells whether the layer has values that only biases can hold.
bool needs_biases(const HeadMaps& maps, const AttentionOptions& source);

// Relative errors over all heads: of their scores, as for --to collaborative, and of what they make of values; given
// moments, over these inputs alone.
struct SharedError {
  double scores = 0;
  double values = 0;
};

struct SharedResult {
  SharedError error = {};                         // of the layer as it is stored
  std::vector<std::vector<int64_t>> groups = {};  // of gqa: the source's heads of each group
  // The errors that pooling in other ways would have had: of gqa and mqa, where keys are as wide as values.
  std::optional<SharedError> plain_mean = {}, aligned_mean = {};
};

// The maps that are to share, and what weighs their errors.
struct SharingTask {
  const HeadMaps& maps;
  LayerInputs inputs = {};
  Pooling pooling = Pooling::kLeastSquares;
  DecompositionOptions decomposition = {};  // of mhe_mul without rotary positions and of shared_query
  DecompositionProgress progress = nullptr;
  bool other_poolings = true;  // whether to tell what they would have cost, which takes as long again
};

// Fills `target`, of converted_options().
SharedResult fill_shared(const SharingTask& task, Scheme* target);

}  // namespace headshare
