// A layer's scores and values as problems for schemes whose heads share maps, and the way from their solutions to
// weights.
#pragma once

#include <string>

#include "headshare/convert/collaborative/fill_scheme.h"
#include "headshare/convert/shared_heads/shared_layer.h"

namespace headshare {

class SharingProblem {
 public:
  // `target`: the options of the layer to fill.
  SharingProblem(const HeadMaps& maps, const LayerInputs& inputs, const AttentionOptions& target,
                 InputWeights kind = InputWeights::kSolvable);

  const HeadMaps& maps() const { return maps_; }
  const AttentionOptions& target() const { return target_; }
  int64_t width() const { return *target_.head_width; }  // D

  // P_h = A_h B_h^T, or its part of each frequency, weighed by what the layer reads; biases are part of the maps where
  // the target has them and they matter.
  HeadSlices scores() const { return layer_.slices(); }
  // V_h O_h, the output map for a query map: [1, H, E, Dv].
  HeadSlices values() const;

  // Solutions of those two as another problem of the same maps weighs them.
  HeadSlices scores_in(const SharingProblem& other, const HeadSlices& mine) const;
  HeadSlices values_in(const SharingProblem& other, const HeadSlices& mine) const;

  // Weighed maps [F, n, E or E + 1, r] of n heads, or of all, as the projection `name`, with its bias -> what was set:
  // [n, E or E + 1, D].
  Tensor set_query(const Tensor& maps, SchemeFiller* filler) const;
  Tensor set_key(const std::string& name, const Tensor& maps, SchemeFiller* filler) const;

  // Weighed value maps [G, E, d] as they are without their weights.
  Tensor value_maps(const Tensor& maps) const { return unweighed(value_weights_, maps); }

  // Value maps of G groups and the output maps of all heads, weighed, as the layer's.
  void set_values(const SharedMaps& values, SchemeFiller* filler) const;
  // The output maps [H, D, E] for value maps [G, E, D] with biases [G, D], not weighed: the output bias takes up what
  // values that all tokens have in common lose.
  void set_output(const Tensor& value, const Tensor& bias, const Tensor& output, SchemeFiller* filler) const;

  // Content biases that the target keeps as they are.
  void set_content_bias(SchemeFiller* filler) const;

 private:
  Tensor set_map(const std::string& name, const Tensor& maps, bool biased, SchemeFiller* filler) const;
  // x V_h of the mean input, and the bias: [n, D].
  Tensor mean_value(const Tensor& value, const Tensor& bias) const;

  const HeadMaps& maps_;
  AttentionOptions target_;
  LayerInputs inputs_;
  ProblemForm form_;
  LayerProblem layer_;
  Tensor value_weights_;
};

// Values for schemes that share one value map.
SharedMaps shared_values(const SharingProblem& problem);

}  // namespace headshare
