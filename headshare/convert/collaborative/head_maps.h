// The matrices of head maps say what each head of an attention layer computes, in the same form for every scheme.
#pragma once

#include "headshare/attention/scheme.h"

namespace headshare {

// With x of the query side and y of the memory side, positions left aside:
//   score_h = s ((x A_h + a_h) . (y B_h + b_h) + y u_h),   out = sum_h softmax(score_h) (y V_h + v_h) O_h + o
// All in double. What a scheme adds to the heads after averaging is part of o.
struct HeadMaps {
  Tensor query;         // A: [H, E, Dk]
  Tensor query_bias;    // a: [H, Dk]
  Tensor key;           // B: [H, E, Dk]
  Tensor key_bias;      // b: [H, Dk]
  Tensor content_bias;  // u: [H, E]
  Tensor value;         // V: [H, E, Dv]
  Tensor value_bias;    // v: [H, Dv]
  Tensor output;        // O: [H, Dv, E]
  Tensor output_bias;   // o: [E]
};

// Returns a sentence that says why no product of weights is what heads compare: queries and keys are normed in between.
// Empty where head_maps() has the products.
std::string why_not_by_weights(const AttentionOptions& options);

// Throws Error, naming `layer` ("layer 3"), for values that are not finite, and where heads are not all there or differ
// in more than what they compare and give: one head for all (`sha`), a rotation of a part of each head, output gates,
// sinks, keys that meet the token before.
void check_comparable(const Scheme& scheme, const std::string& layer);

// Asks the scheme for the values at zero and at the unit vectors, in double, so that no scheme needs code of its own.
// Throws Error, naming `layer` ("layer 3"), for values that are not finite and for schemes whose heads are not all
// there: normed queries and keys, output gates, sinks, keys that meet the token before, values that turn, one head for
// all (`sha`), values that are whole hidden states.
HeadMaps head_maps(const Scheme& scheme, const std::string& layer);

// The same, where one head may stand for all of them (`sha`): each head gets its maps.
HeadMaps repeated_head_maps(const Scheme& scheme, const std::string& layer);

}  // namespace headshare
