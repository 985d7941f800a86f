// A trained model whose heads get maps in common, layer by layer; everything else is copied.
#pragma once

#include <string>
#include <vector>

#include "headshare/convert/collaborative/attention_layers.h"
#include "headshare/convert/collaborative/model_change.h"
#include "headshare/convert/shared_heads/layer_sizes.h"
#include "headshare/convert/shared_heads/shared_layer.h"

namespace headshare {

struct SharedHeadsOptions {
  SharedScheme to = {};
  DecompositionOptions decomposition = {};  // of mhe_mul without rotary positions and of shared_query
  Tensor sample = {};                       // model_change.h says its form; undefined: weights alone count
  SizeChoice sizes = {};                    // of schemes with ConversionRecord::layer_sizes
};

struct SharedLayerReport {
  std::string layer;  // "layer 3"
  SharedResult result = {};
  std::optional<int64_t> size = {};  // where the scheme has one, ConversionRecord::size
  double output_change = -1;  // |change of the layer's output| / |output| on the sample, its input being the source's
  double seconds = 0;
};

struct SharedHeadsReport {
  std::vector<SharedLayerReport> layers;
  AnswerChange change;
  bool stopped = false;  // what came after the stop was not improved by iterations
};

// The converted model, in evaluation mode. Throws Error for a scheme without a conversion and, naming the layer, for
// weights that are not finite, schemes whose heads share all they can already and options that are impossible.
Decoder to_shared(const Decoder& source, const SharedHeadsOptions& options, const ConversionObserver& observer,
                  SharedHeadsReport* report);
Encoder to_shared(const Encoder& source, const SharedHeadsOptions& options, const ConversionObserver& observer,
                  SharedHeadsReport* report);
// The same for all three sites of an encoder-decoder; there is no sample.
EncoderDecoder to_shared(const EncoderDecoder& source, const SharedHeadsOptions& options,
                         const ConversionObserver& observer, SharedHeadsReport* report);
// The same of a vision transformer, whose sample is of images.
VisionTransformer to_shared(const VisionTransformer& source, const SharedHeadsOptions& options,
                            const ConversionObserver& observer, SharedHeadsReport* report);

}  // namespace headshare
