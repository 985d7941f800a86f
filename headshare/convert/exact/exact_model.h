// A trained model whose attention is rewritten as another scheme's, with the same outputs: proved by running both.
#pragma once

#include "headshare/convert/exact/exact_layer.h"
#include "headshare/models/checkpoint.h"

namespace headshare {

inline constexpr double kExact = 1e-12;  // the greatest change in double, relative to the largest output

// Changes are |difference| / |largest value| over the outputs for random tokens: logits of decoders and of encoders
// with a masked-LM head, hidden states of the other kinds, and of encoders that hash words what each layer makes of
// random hidden states.
struct ExactReport {
  double in_double = 0;  // both models in double
  double as_stored = 0;  // both in float32, as checkpoints are stored
};

// The options of the result whatever the weights are, with projection biases, which hold what some schemes add. Throws
// Error as exact_options() does, and for kinds of models without attention that is known here.
ModelOptions exact_model_options(const ModelOptions& source, const ExactTarget& to);

// Returns how far two models of one kind with the same vocabulary are apart, as ExactReport counts it.
double relative_change(const AnyModel& before, const AnyModel& after);

// The result, in float32 and in evaluation mode. Throws Error, naming the layer, where the weights have no exact form,
// and where the two models differ by more than kExact. `biased` asks for projection biases, zero where not needed.
AnyModel fold_exactly(const AnyModel& source, const ExactTarget& to, bool biased, ExactReport* report);

}  // namespace headshare
