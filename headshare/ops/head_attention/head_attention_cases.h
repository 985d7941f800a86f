// Makes the problems that tests of the attention core walk, edges by construction, and asks a backend about them.
#pragma once

#include <ATen/ATen.h>
#include <torch/autograd.h>

#include <memory>
#include <string>
#include <vector>

#include "headshare/ops/head_attention/backends.h"
#include "headshare/ops/head_attention/head_attention.h"
#include "headshare/ops/layer.h"
#include "headshare/ops/testing.h"

namespace headshare {

enum class Padding {
  kNone,
  kTail,      // sentence b hides its last b + 1 keys
  kHead,      // sentence b hides its first b + 1 keys: with a causal mask the first queries see nothing
  kSentence,  // the first sentence hides all its keys
};

// The letters are those of base/dims.h.
struct HeadCase {
  std::string name{};  // in messages
  int64_t B = 2, H = 4, Hq = 4, Hk = 4, Hv = 4, T = 5, S = 5, Dk = 8, Dv = 8;
  double scale = 0.35;
  bool causal = false, shift = false, key_bias = false, alibi = false, sinks = false;
  Padding padding = Padding::kNone;
  int64_t window = 0;
};

inline std::vector<HeadCase> head_cases() {
  return {
      {.name = "plain"},
      {.name = "one_of_each", .B = 1, .H = 1, .Hq = 1, .Hk = 1, .Hv = 1, .T = 1, .S = 1, .Dk = 1, .Dv = 1},
      {.name = "no_queries", .T = 0},
      {.name = "no_keys", .S = 0},
      {.name = "no_keys_causal_padded", .S = 0, .causal = true, .padding = Padding::kSentence},
      {.name = "no_sentences", .B = 0},
      {.name = "no_sentences_padded", .B = 0, .causal = true, .padding = Padding::kTail},
      {.name = "one_query_causal", .T = 1, .S = 9, .causal = true},
      {.name = "one_key", .T = 3, .S = 1},
      {.name = "one_key_causal", .T = 3, .S = 1, .causal = true},
      {.name = "odd_sizes", .B = 3, .H = 3, .Hq = 3, .Hk = 3, .Hv = 3, .T = 7, .S = 11, .Dk = 13, .Dv = 13},
      {.name = "more_queries_than_keys", .T = 9, .S = 4, .causal = true},
      {.name = "more_keys_than_queries", .T = 4, .S = 9, .causal = true},
      {.name = "widths_differ", .T = 6, .S = 7, .Dk = 3, .Dv = 10, .causal = true},
      {.name = "zero_scale", .scale = 0},
      {.name = "large_scores", .scale = 30, .causal = true},
      {.name = "causal", .T = 17, .S = 17, .causal = true},
      {.name = "padded_tail", .B = 3, .padding = Padding::kTail},
      {.name = "padded_tail_causal", .causal = true, .padding = Padding::kTail},
      {.name = "padded_head_causal", .B = 3, .causal = true, .padding = Padding::kHead},
      {.name = "padded_sentence", .padding = Padding::kSentence},
      {.name = "padded_sentence_causal", .T = 4, .S = 6, .causal = true, .padding = Padding::kSentence},
      {.name = "one_head_for_all", .H = 1, .Hq = 1, .Hk = 1, .Hv = 1, .causal = true},
      {.name = "multi_query", .Hk = 1, .Hv = 1, .T = 6, .S = 9, .causal = true},
      {.name = "groups", .H = 6, .Hq = 6, .Hk = 2, .Hv = 2, .T = 5, .S = 8, .causal = true, .padding = Padding::kTail},
      {.name = "one_query_head", .Hq = 1},
      {.name = "one_key_head", .Hk = 1, .padding = Padding::kSentence},
      {.name = "all_counts_differ", .H = 12, .Hq = 4, .Hk = 6, .Hv = 2, .key_bias = true, .alibi = true},
      {.name = "fewer_query_than_key_heads", .H = 4, .Hq = 1, .Hk = 2, .Hv = 1, .key_bias = true},
      {.name = "scores_of_fewer_heads", .H = 4, .Hq = 2, .Hk = 1, .Hv = 4, .T = 3, .S = 4},
      {.name = "shift", .Hq = 1, .Hk = 1, .Hv = 1, .T = 6, .S = 8, .causal = true, .shift = true},
      {.name = "shift_padded", .Hq = 1, .Hk = 1, .shift = true, .padding = Padding::kSentence},
      {.name = "key_bias", .T = 6, .S = 8, .causal = true, .key_bias = true, .padding = Padding::kHead},
      {.name = "key_bias_one_head", .Hq = 1, .Hk = 1, .Hv = 1, .key_bias = true},
      {.name = "alibi", .T = 5, .S = 9, .alibi = true},
      {.name = "everything",
       .B = 3,
       .Hq = 1,
       .Hk = 1,
       .Hv = 2,
       .T = 6,
       .S = 9,
       .Dk = 5,
       .Dv = 7,
       .causal = true,
       .shift = true,
       .key_bias = true,
       .alibi = true,
       .padding = Padding::kHead},
      {.name = "sinks", .B = 3, .T = 6, .S = 9, .causal = true, .sinks = true, .padding = Padding::kHead},
      {.name = "sinks_of_shared_heads",
       .Hq = 1,
       .Hk = 1,
       .Hv = 1,
       .T = 140,
       .S = 150,
       .causal = true,
       .shift = true,
       .sinks = true},
      {.name = "decode_sinks", .Hk = 2, .Hv = 2, .T = 1, .S = 300, .sinks = true, .padding = Padding::kSentence},
      {.name = "decode_multi_query", .H = 12, .Hq = 12, .Hk = 1, .Hv = 1, .T = 1, .S = 700, .causal = true},
      {.name = "decode_padded", .B = 3, .Hk = 2, .Hv = 2, .T = 1, .S = 301, .causal = true, .padding = Padding::kTail},
      {.name = "decode_shift", .Hq = 1, .Hk = 1, .Hv = 1, .T = 1, .S = 130, .causal = true, .shift = true},
      {.name = "decode_biases", .Hk = 1, .T = 1, .S = 257, .Dk = 6, .causal = true, .key_bias = true, .alibi = true},
      {.name = "beams", .B = 3, .T = 4, .S = 30, .padding = Padding::kTail},
      {.name = "beams_shared", .H = 8, .Hq = 8, .Hk = 1, .Hv = 1, .T = 5, .S = 140, .key_bias = true},
      {.name = "beams_shift",
       .B = 3,
       .Hq = 1,
       .Hk = 1,
       .Hv = 1,
       .T = 5,
       .S = 33,
       .shift = true,
       .padding = Padding::kHead},
      {.name = "decode_dead", .T = 1, .S = 20, .causal = true, .padding = Padding::kSentence},
      {.name = "decode_many_heads", .H = 70, .Hq = 70, .Hk = 1, .Hv = 1, .T = 1, .S = 129, .causal = true},
      {.name = "factorised_open", .H = 12, .Hq = 1, .Hk = 1, .Hv = 1, .T = 65, .S = 129, .Dk = 16, .shift = true},
      {.name = "factorised_causal", .Hq = 1, .Hk = 1, .Hv = 1, .T = 130, .S = 130, .causal = true, .shift = true},
      {.name = "factorised_causal_alibi",
       .Hq = 1,
       .Hk = 1,
       .Hv = 1,
       .T = 131,
       .S = 200,
       .causal = true,
       .shift = true,
       .alibi = true,
       .padding = Padding::kHead},
      {.name = "factorised_more_queries",
       .H = 3,
       .Hq = 1,
       .Hk = 1,
       .Hv = 1,
       .T = 150,
       .S = 70,
       .Dv = 5,
       .causal = true,
       .key_bias = true},
      // These have exponents of some hundred: the maxima of q.k and of the biases lie apart, and heads are done one by
      // one.
      {.name = "factorised_far_apart", .Hq = 1, .Hk = 1, .Hv = 1, .T = 70, .S = 140, .scale = 30, .shift = true},
      {.name = "factorised_far_apart_causal",
       .B = 3,
       .Hq = 1,
       .Hk = 1,
       .Hv = 1,
       .T = 140,
       .S = 140,
       .scale = 20,
       .causal = true,
       .shift = true,
       .key_bias = true,
       .padding = Padding::kTail},
      {.name = "block", .H = 2, .Hq = 2, .Hk = 2, .Hv = 2, .T = 128, .S = 128, .causal = true},
      {.name = "block_and_one", .H = 2, .Hq = 2, .Hk = 1, .Hv = 1, .T = 129, .S = 129, .causal = true},
      {.name = "blocks_open", .H = 2, .Hq = 2, .Hk = 2, .Hv = 2, .T = 257, .S = 40, .padding = Padding::kTail},
      {.name = "blocks_longer_memory", .B = 1, .H = 2, .Hq = 2, .Hk = 2, .Hv = 2, .T = 200, .S = 311, .causal = true},
      {.name = "blocks_of_dead_queries",
       .B = 2,
       .H = 2,
       .Hq = 1,
       .Hk = 1,
       .Hv = 2,
       .T = 300,
       .S = 60,
       .causal = true,
       .key_bias = true,
       .alibi = true,
       .padding = Padding::kHead},
      {.name = "window", .T = 9, .S = 9, .window = 2},
      {.name = "window_causal", .T = 9, .S = 9, .causal = true, .window = 3},
      {.name = "window_longer_than_the_text", .causal = true, .window = 9},
      {.name = "window_of_last_queries", .Hk = 2, .Hv = 2, .T = 4, .S = 11, .causal = true, .window = 1},
      {.name = "window_more_queries", .T = 12, .S = 4, .window = 3},
      {.name = "window_more_queries_causal", .T = 12, .S = 4, .causal = true, .window = 2},
      {.name = "window_padded", .B = 3, .T = 9, .S = 9, .padding = Padding::kTail, .window = 1},
      {.name = "window_padded_causal", .B = 3, .T = 9, .S = 9, .causal = true, .padding = Padding::kHead, .window = 1},
      {.name = "window_decode", .Hk = 2, .Hv = 2, .T = 1, .S = 300, .causal = true, .window = 70},
      {.name = "window_decode_biases",
       .Hk = 1,
       .T = 1,
       .S = 257,
       .Dk = 6,
       .key_bias = true,
       .alibi = true,
       .sinks = true,
       .padding = Padding::kTail,
       .window = 100},
      {.name = "window_blocks", .H = 2, .Hq = 2, .Hk = 2, .Hv = 2, .T = 290, .S = 290, .window = 30},
      {.name = "window_blocks_causal",
       .B = 1,
       .H = 2,
       .Hq = 2,
       .Hk = 1,
       .Hv = 1,
       .T = 290,
       .S = 350,
       .causal = true,
       .window = 40},
      {.name = "window_blocks_wide", .B = 1, .H = 2, .Hq = 2, .Hk = 2, .Hv = 2, .T = 300, .S = 300, .window = 200},
      {.name = "window_blocks_everything",
       .B = 3,
       .H = 2,
       .Hq = 1,
       .Hk = 1,
       .Hv = 2,
       .T = 300,
       .S = 140,
       .shift = true,
       .key_bias = true,
       .alibi = true,
       .sinks = true,
       .padding = Padding::kHead,
       .window = 25},
  };
}

// This is a case filled with numbers, drawn in float32 so that float and double versions agree exactly.
struct HeadInputs {
  HeadProblem problem;
  HeadMask mask;
};

inline Tensor padding_mask(Padding padding, int64_t B, int64_t S) {
  if (padding == Padding::kNone) return {};
  Tensor visible = at::ones({B, S}, at::kBool);
  for (int64_t b = 0; b < B; ++b) {
    const int64_t hidden = std::min(b + 1, S);
    if (padding == Padding::kTail) visible[b].slice(0, S - hidden, S).fill_(false);
    if (padding == Padding::kHead) visible[b].slice(0, 0, hidden).fill_(false);
    if (padding == Padding::kSentence && b == 0) visible[b].fill_(false);
  }
  return visible;
}

inline HeadInputs make_inputs(const HeadCase& c, at::TensorOptions options) {
  const at::Generator generator = keyed_generator(at::kCPU, /*key=*/17);
  const auto draw = [&](at::IntArrayRef sizes) {
    return at::empty(sizes, at::kFloat).normal_(0, 1, generator).to(options);
  };
  HeadInputs in;
  in.problem = {.heads = c.H,
                .query = draw({c.B, c.Hq, c.T, c.Dk}),
                .key = draw({c.B, c.Hk, c.S, c.Dk}),
                .value = draw({c.B, c.Hv, c.S, c.Dv}),
                .scale = c.scale};
  if (c.shift) in.problem.query_shift = draw({c.H, c.Dk});
  if (c.key_bias) in.problem.key_bias = draw({c.B, c.H, c.S});
  if (c.sinks) in.problem.sinks = draw({c.H});
  in.mask.causal = c.causal;
  in.mask.window = c.window;
  in.mask.visible_keys = padding_mask(c.padding, c.B, c.S);
  if (in.mask.visible_keys.defined()) in.mask.visible_keys = in.mask.visible_keys.to(options.device());
  if (c.alibi) in.mask.alibi_slopes = draw({c.H}).abs().clamp_max(0.75);  // models have none above 1
  return in;
}

inline bool can_run(const HeadBackend& backend, const HeadInputs& in, const HeadDropout& dropout = {}) {
  return backend.why_not(in.problem, in.mask, dropout).empty();
}

inline Tensor attend_with(const HeadBackend& backend, const HeadInputs& in, const HeadDropout& dropout = {}) {
  const ScopedEnvironment forced("HEADSHARE_BACKEND", std::string(backend.name).c_str());
  return attend(in.problem, in.mask, dropout);
}

// Returns the sum of the output with fixed weights, so that every element has a gradient of its own.
inline Tensor weighed(const Tensor& x) {
  return (x * at::linspace(-1, 1, x.numel(), x.options().requires_grad(false)).view(x.sizes())).sum();
}

// Returns the inputs that have gradients, and asks for their gradients.
inline std::vector<Tensor> inputs_of(HeadInputs* in) {
  std::vector<Tensor> inputs = {in->problem.query, in->problem.key, in->problem.value};
  for (const Tensor& x : {in->problem.query_shift, in->problem.key_bias, in->problem.sinks}) {
    if (x.defined()) inputs.push_back(x);
  }
  for (Tensor& x : inputs) x.requires_grad_();
  return inputs;
}

inline std::vector<Tensor> gradients_of(const HeadBackend& backend, HeadInputs in, const HeadDropout& dropout = {}) {
  const std::vector<Tensor> inputs = inputs_of(&in);
  return torch::autograd::grad({weighed(attend_with(backend, in, dropout))}, inputs);
}

// This is a site of dropout whose mask counts.
class Site : public Layer {};

inline std::shared_ptr<Site> training_site(uint64_t seed = 3) {
  auto site = std::make_shared<Site>();
  attach(*site, std::make_shared<DropoutClock>(DropoutClock{.seed = seed}));
  return site;
}

}  // namespace headshare
