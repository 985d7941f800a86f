// A layer's problem says what an approximation of its scores has to be close to: the maps of its heads, weighed by what
// the layer reads. The way back to maps is here too (docs/mathematics.md#re-parametrisation).
#pragma once

#include "headshare/convert/collaborative/decomposition.h"
#include "headshare/convert/collaborative/head_maps.h"
#include "headshare/convert/collaborative/moments.h"

namespace headshare {

// The moments of what the two sides of a layer read; null: the weights alone are approximated. In self-attention both
// are the same.
struct LayerInputs {
  const Moments* query = nullptr;
  const Moments* key = nullptr;
};

// kSolvable: the weights that problems are solved with, in which a little of every direction counts, so that W has an
// inverse. kOwn: the weights of the inputs alone, which errors are measured by.
enum class InputWeights { kSolvable, kOwn };

// The result W weighs errors of maps from one side's inputs: |W m|^2 is the mean of (x m)^2, or of its variance where
// `about_mean` (the value of the mean input is then held elsewhere). With `constant`, inputs end with a 1, which biases
// multiply; the last row of W m is then what the mean input gives, the others what differs from it. Undefined without
// moments.
Tensor input_weights(const Moments* moments, bool about_mean, bool constant,
                     InputWeights kind = InputWeights::kSolvable);
// W maps, [.., E, d], and back; an undefined W changes nothing.
Tensor weighed(const Tensor& weights, const Tensor& maps);
Tensor unweighed(const Tensor& weights, const Tensor& maps);

struct ProblemForm {
  int64_t frequencies = 0;        // F; 0 without rotary positions
  bool query_bias = false;        // maps end with a row for the bias
  bool key_bias = false;          // likewise
  bool query_about_mean = false;  // what the mean query gives is held elsewhere
  bool key_about_mean = false;    // likewise of the mean key, which softmax deletes without rotary positions
};

class LayerProblem {
 public:
  LayerProblem(const HeadMaps& maps, const ProblemForm& form, const LayerInputs& inputs,
               InputWeights kind = InputWeights::kSolvable);

  // [F, H, E or E + 1, d], complex with rotary positions; else F is 1.
  HeadSlices slices() const { return slices_of(maps_); }
  // The slices of other maps, weighed alike.
  HeadSlices slices_of(const HeadMaps& maps) const;

  const Tensor& query_weights() const { return query_weights_; }
  const Tensor& key_weights() const { return key_weights_; }

 private:
  // [H, E, Dk] with its bias [H, Dk] -> [F, H, E or E + 1, d].
  Tensor problems(const Tensor& maps, const Tensor& bias, bool biased) const;

  const HeadMaps& maps_;
  ProblemForm form_;
  Tensor query_weights_, key_weights_;
};

}  // namespace headshare
