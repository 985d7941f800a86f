// A trained model whose attention becomes collaborative, layer by layer; everything else is copied.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "headshare/convert/reparametrise/collaborative.h"
#include "headshare/models/decoder.h"
#include "headshare/models/encoder.h"
#include "headshare/models/model_options.h"

namespace headshare {

// How a model's key widths are chosen. Where neither limit is given, `key_width` holds for all layers.
struct WidthChoice {
  std::optional<int64_t> key_width = {};
  std::optional<double> max_error = {};        // of each layer: the least width within it
  std::optional<int64_t> max_parameters = {};  // of the model: the widths that fit, with the least errors
};

struct CompressionOptions {
  WidthChoice width = {};
  DecompositionOptions decomposition = {};
  Tensor sample = {};  // ids int64 [N, T] of a sample text; undefined: weights alone are approximated
};

// What became of one layer.
struct LayerReport {
  std::string layer;  // "layer 3"
  int64_t key_width = 0;
  int64_t full_width = 0;
  std::vector<double> errors;  // Decomposition::errors
  double error = 0;            // of the weights as stored: the last of them, but for rounding to float32
  double output_change = -1;   // |change of the layer's output| / |output| on the sample, its input being the source's;
                               // -1: there was none
  double seconds = 0;
};

// How the model's answers changed on the sample.
struct AnswerChange {
  double divergence = -1;  // mean Kullback-Leibler divergence of the source's next (decoder) or own (masked-LM head)
                           // token distribution from the compressed one's, nats per token; -1: it has no such head
  double hidden = -1;      // |change of the last hidden states| / |hidden states|
  double loss_before = -1, loss_after = -1;  // of a decoder on the sample, nats per token; -1 of an encoder
};

struct CompressionReport {
  std::vector<LayerReport> layers;
  AnswerChange change;
  bool stopped = false;  // what came after the stop kept its start
};

// How far a compression has come: `done` of `total` in units that take equally long, about.
struct CompressionProgress {
  double done = 0;
  double total = 1;
  std::string what;  // "layer 3 of 12, key width 384, error 0.123"
};
// False asks to stop: the layer at hand keeps its best, those that follow their starts.
using CompressionTold = std::function<bool(const CompressionProgress&)>;

// The compressed model, in evaluation mode. Throws Error, naming the layer, for widths that are impossible, limits that
// cannot be met, weights that are not finite and schemes whose heads share already; Interrupted where it is asked to
// stop while widths are chosen.
Decoder to_collaborative(const Decoder& source, const CompressionOptions& options, const CompressionTold& told,
                         CompressionReport* report);
Encoder to_collaborative(const Encoder& source, const CompressionOptions& options, const CompressionTold& told,
                         CompressionReport* report);

}  // namespace headshare
