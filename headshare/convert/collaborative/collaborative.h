// One attention layer as collaborative attention (docs/mathematics.md#re-parametrisation): the query and key maps of
// its heads are decomposed into shared ones; values and output stay what they are.
#pragma once

#include <string>

#include "headshare/convert/collaborative/layer_problem.h"

namespace headshare {

inline constexpr const char* kCollaborative = "collaborative";

// These are the biases that a collaborative layer needs to hold what another layer computes.
struct NeededBiases {
  bool projection = false;
  bool content = false;
};
NeededBiases needed_biases(const HeadMaps& maps, const AttentionOptions& source);

// The options, resolved, of the layer that takes the place of `source`, resolved: its temperature is kept. With rotary
// positions mixing is complex, so that heads share only what turns alike. Throws Error, naming both numbers and those
// that are possible, for a key width that is above the heads' widths together, or with rotary positions no multiple of
// one head's.
AttentionOptions collaborative_options(const AttentionOptions& source, int64_t key_width, const NeededBiases& needed);

// The widths that the heads have together, H Dk, at which the layer is exact; of a collaborative layer its own, where
// the layer need not be converted.
int64_t full_key_width(const AttentionOptions& source);
// Every key width is a multiple of this step: with rotary positions one head's width, else 1.
int64_t key_width_step(const AttentionOptions& source);

// Fills `target`, of collaborative_options(), with the layer's decomposition. Errors are relative and of the scores:
// over inputs with the given moments, else over all directions alike. Without rotary positions the parts that softmax
// deletes are left out, and what all queries have in common goes into the content bias, where there is one: given
// moments, both cost no error. `error` is that of the weights as they are stored, in float32, over these inputs alone;
// `errors` are the decomposition's, in double, which weighs directions that the inputs leave out a little, too.
Decomposition fill_collaborative(const HeadMaps& source, const LayerInputs& inputs, const DecompositionOptions& options,
                                 const DecompositionProgress& progress, Scheme* target);

// The slices that fill_collaborative() approximates: the maps of heads that `target` shares, weighed by what the layer
// reads. They are the same for every key width.
HeadSlices collaborative_slices(const HeadMaps& source, const AttentionOptions& target, const LayerInputs& inputs);

// The same decomposition without a layer to fill: for the choice of a width.
Decomposition decompose_layer(const HeadMaps& source, const AttentionOptions& target, const LayerInputs& inputs,
                              const DecompositionOptions& options, const DecompositionProgress& progress);

}  // namespace headshare
