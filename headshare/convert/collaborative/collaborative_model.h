// A trained model whose attention becomes collaborative, layer by layer; everything else is copied.
#pragma once

#include <string>
#include <vector>

#include "headshare/convert/collaborative/attention_layers.h"
#include "headshare/convert/collaborative/collaborative.h"
#include "headshare/convert/collaborative/model_change.h"
#include "headshare/models/model_kind.h"

namespace headshare {

// These options choose a model's key widths; one is given. `key_width` holds for all layers.
struct WidthChoice {
  std::optional<int64_t> key_width = {};
  std::optional<int64_t> mean_key_width = {};  // of all layers: the widths that have it, with the least errors
  std::optional<double> max_error = {};        // of each layer: the least width within it
  std::optional<int64_t> max_parameters = {};  // of the model: the widths that fit, with the least errors
};

struct CollaborativeHeadsOptions {
  WidthChoice width = {};
  DecompositionOptions decomposition = {};
  Tensor sample = {};  // model_change.h says its form; undefined: weights alone are approximated
};

// The result of one layer.
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

struct CollaborativeHeadsReport {
  std::vector<LayerReport> layers;
  AnswerChange change;
  bool stopped = false;  // what came after the stop kept its start
};

// The converted model, in evaluation mode. Throws Error, naming the layer, for widths that are impossible, limits that
// cannot be met, weights that are not finite and schemes whose heads share already; Interrupted where it is asked to
// stop while widths are chosen.
Decoder to_collaborative(const Decoder& source, const CollaborativeHeadsOptions& options,
                         const ConversionObserver& observer, CollaborativeHeadsReport* report);
Encoder to_collaborative(const Encoder& source, const CollaborativeHeadsOptions& options,
                         const ConversionObserver& observer, CollaborativeHeadsReport* report);

// The same of all three sites of an encoder-decoder. All layers have the key width that is given; there is no sample.
EncoderDecoder to_collaborative(const EncoderDecoder& source, const CollaborativeHeadsOptions& options,
                                const ConversionObserver& observer, CollaborativeHeadsReport* report);

// The same of a vision transformer, whose sample is of images.
VisionTransformer to_collaborative(const VisionTransformer& source, const CollaborativeHeadsOptions& options,
                                   const ConversionObserver& observer, CollaborativeHeadsReport* report);

}  // namespace headshare
