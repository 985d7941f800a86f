// This header holds the schemes as the papers write them, for tests: every head on its own, nothing folded or dropped.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "headshare/attention/attention.h"
#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/base/rng.h"
#include "headshare/ops/testing.h"

namespace headshare {

using Parameters = std::map<std::string, Tensor>;

inline Parameters parameters_of(const torch::nn::Module& module) {
  Parameters parameters;
  for (const Declared& one : declared_parameters(module)) parameters[one.name] = one.tensor;
  return parameters;
}

// Returns a layer in double whose parameters, biases and inert ones too, are drawn from N(0, 0.5^2).
inline Attention random_attention(const AttentionOptions& options, uint64_t seed = 1) {
  Attention layer(options);
  layer->to(at::kDouble);
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : parameters_of(*layer)) {
    tensor.copy_(random_tensor(tensor.sizes(), stream_key(seed, name), at::kDouble, 0.5));
  }
  return layer;
}

struct SchemeCase {
  std::string name;
  AttentionOptions options;
};

// Returns sizes that are small, odd where legal, with H D != E.
inline AttentionOptions small_layer(const std::string& scheme) {
  return {.scheme = scheme, .d_model = 6, .heads = 4, .head_width = 2};
}

// Returns `options` with one of them set by its name, which needs no header of the scheme that it belongs to.
inline AttentionOptions with_option(AttentionOptions options, const std::string& name, const std::string& value) {
  Fields list = fields(options);
  set_field(list, name, value, "a test");
  return options;
}

// One head compares query and key and averages value: [T, Dk], [S, Dk], [S, Dv].
struct NaiveHead {
  Tensor q, k, v;
};

// A formula reads a layer through this class.
class NaiveLayer {
 public:
  explicit NaiveLayer(const AttentionImpl& layer)
      : options_(layer.scheme().options()), parameters_(parameters_of(layer.scheme())) {}

  const AttentionOptions& options() const { return options_; }
  bool has(const std::string& name) const { return parameters_.count(name) > 0; }
  const Tensor& parameter(const std::string& name) const { return parameters_.at(name); }

  // Returns x W^T + b, with every key bias too, inert or not.
  Tensor affine(const std::string& name, const Tensor& x) const {
    const Tensor product = x.matmul(parameter(name + ".weight").t());
    return has(name + ".bias") ? product + parameter(name + ".bias") : product;
  }

  // Returns the columns of x that are part `i` of `parts`.
  static Tensor part(const Tensor& x, int64_t i, int64_t parts) {
    const int64_t width = x.size(1) / parts;
    return x.slice(1, i * width, (i + 1) * width);
  }

  // Returns head h of a projection that has maps for each head.
  Tensor own(const std::string& name, int64_t h, const Tensor& x) const {
    return part(affine(name, x), h, options_.heads);
  }

  // Applies the norms of qk_norm to a projected query, where the layer has them.
  Tensor query(const Tensor& projected) const { return normed("query_norm.weight", projected); }
  Tensor key(const Tensor& projected) const { return normed("key_norm.weight", projected); }

  // Returns the map of head h of a projection that has `count` maps, each of which neighbouring heads share.
  Tensor shared(const std::string& name, int64_t count, int64_t h, const Tensor& x) const {
    return part(affine(name, x), h / (options_.heads / count), count);
  }

  // Returns a head with a query map of its own and the key and value map of its group.
  NaiveHead grouped(int64_t groups, int64_t h, const Tensor& x, const Tensor& y) const {
    return {query(own("query", h, x)), key(shared("key", groups, h, y)), shared("value", groups, h, y)};
  }

 private:
  // Returns x / sqrt(mean(x^2) + 1e-6) * weight, where the layer has such a weight.
  Tensor normed(const std::string& weight, const Tensor& x) const {
    if (!has(weight)) return x;
    return x / (x.square().mean(1, /*keepdim=*/true) + 1e-6).sqrt() * parameter(weight);
  }

  AttentionOptions options_;
  Parameters parameters_;
};

// This is the literal formula of a scheme (docs/mathematics.md#the-schemes), which its NAME_test.cc adds by an
// AddFormula.
struct SchemeFormula {
  std::string scheme;

  std::function<NaiveHead(const NaiveLayer&, int64_t h, const Tensor& x, const Tensor& y)> head;

  // Merges heads [H] of [T, Dv] -> [T, E]; null: applies the output map to all of them side by side.
  std::function<Tensor(const NaiveLayer&, const std::vector<Tensor>& heads)> merge = nullptr;

  // These are the options that change the formula, the usual ones first; none: small_layer().
  std::vector<SchemeCase> cases = {};

  // These are the parameters besides a key bias that cannot matter unless positions are rotary.
  std::vector<std::string> inert = {};

  // These options change the formula under rotary positions, and need them.
  std::vector<SchemeCase> rotary_cases = {};

  // Tells whether positions turn values, too, and turn what a head finds back by the position of its query.
  std::function<bool(const AttentionOptions&)> values_turn = nullptr;
};

inline std::map<std::string, SchemeFormula>& scheme_formulas() {
  static std::map<std::string, SchemeFormula> all;
  return all;
}

struct AddFormula {
  explicit AddFormula(SchemeFormula formula) {
    if (formula.cases.empty()) formula.cases = {{formula.scheme, small_layer(formula.scheme)}};
    scheme_formulas().emplace(formula.scheme, std::move(formula));
  }
};

inline const SchemeFormula& scheme_formula(const std::string& scheme) {
  const auto found = scheme_formulas().find(scheme);
  HS_CHECK(found != scheme_formulas().end(), "no test has the formula of ", scheme, "; add it in ", scheme, "_test.cc");
  return found->second;
}

// Returns the frequency of pair `i` of `width` dimensions, written as transformers 5 has it: a case for each wavelength
// under llama3, a mixture of two frequencies under yarn.
inline double formula_frequency(const RotaryScaling& s, double base, int64_t width, int64_t i) {
  const double tau = 2 * std::acos(-1.0), W = static_cast<double>(width);
  const double plain = 1 / std::pow(base, 2 * static_cast<double>(i) / W);
  const double context = static_cast<double>(s.original_context.value_or(0));
  if (s.kind == RotaryScalingKind::kLinear) return plain / *s.factor;
  if (s.kind == RotaryScalingKind::kLlama3) {
    const double wavelength = tau / plain, low = s.low_frequency_factor, high = s.high_frequency_factor;
    if (wavelength < context / high) return plain;
    if (wavelength > context / low) return plain / *s.factor;
    const double smooth = (context / wavelength - low) / (high - low);
    return (1 - smooth) * plain / *s.factor + smooth * plain;
  }
  if (s.kind == RotaryScalingKind::kYarn) {
    const auto pair_of = [&](double turns) { return W * std::log(context / (turns * tau)) / (2 * std::log(base)); };
    double low = pair_of(s.beta_fast), high = pair_of(s.beta_slow);
    if (s.truncate) low = std::floor(low), high = std::ceil(high);
    low = low < 0 ? 0 : low;
    high = high > W - 1 ? W - 1 : high;
    if (low == high) high += 0.001;
    const double ramp = (static_cast<double>(i) - low) / (high - low);
    const double mixed = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    return plain / *s.factor * mixed + plain * (1 - mixed);
  }
  return plain;
}

// Returns a scaling of each kind that slows down some pairs of a few dimensions more than others.
inline std::vector<RotaryScaling> rotary_scalings() {
  return {{},
          {.kind = RotaryScalingKind::kLinear, .factor = 3},
          {.kind = RotaryScalingKind::kLlama3, .factor = 8, .original_context = 64},
          {.kind = RotaryScalingKind::kYarn, .factor = 4, .original_context = 64, .beta_fast = 9},
          {.kind = RotaryScalingKind::kYarn,
           .factor = 4,
           .original_context = 90,
           .beta_fast = 6,
           .beta_slow = 0.5,
           .attention_factor = 1.25,
           .truncate = false}};
}

// Tells whether `resolve` refuses the options.
inline bool is_impossible(const AttentionOptions& options) {
  try {
    resolve(options);
  } catch (const Error&) {
    return true;
  }
  return false;
}

// Tells whether a scheme reads an option that not every scheme does.
inline bool reads(const std::string& scheme, const std::string& option) {
  const std::vector<std::string>& names = scheme_record(scheme).reads;
  return std::find(names.begin(), names.end(), option) != names.end();
}

// Lists every scheme with the options that change its formula, and its usual ones with normed queries and keys, with a
// gate, with sinks and with a shift, where it takes them.
inline std::vector<SchemeCase> scheme_cases() {
  std::vector<SchemeCase> cases;
  for (const std::string& scheme : scheme_names()) {
    const std::vector<SchemeCase>& own = scheme_formula(scheme).cases;
    cases.insert(cases.end(), own.begin(), own.end());
    if (!is_trained(scheme)) continue;
    const auto add = [&](const std::string& suffix, const std::function<void(AttentionOptions*)>& change) {
      cases.push_back({own.front().name + suffix, own.front().options});
      change(&cases.back().options);
      if (is_impossible(cases.back().options)) cases.pop_back();
    };
    add("_qk_norm", [](AttentionOptions* o) { o->qk_norm = true; });
    add("_gate", [](AttentionOptions* o) { o->gate = OutputGate::kElement; });
    add("_sinks", [](AttentionOptions* o) { o->gate = OutputGate::kHead, o->sinks = true; });
    if (!reads(scheme, "kv-shift")) continue;
    add("_shift", [](AttentionOptions* o) { o->kv_shift = true; });
    add("_shift_qk_norm_sinks", [](AttentionOptions* o) { o->kv_shift = o->qk_norm = o->sinks = true; });
  }
  return cases;
}

// Lists every scheme that takes rotary positions, with scaled ones that turn a part of each head.
inline std::vector<SchemeCase> scaled_rotary_variants() {
  std::vector<SchemeCase> variants;
  for (const std::string& scheme : scheme_names()) {
    if (!is_trained(scheme)) continue;
    SchemeCase one = scheme_formula(scheme).cases.front();
    AttentionOptions& options = one.options;
    options.head_width = 6;
    if (scheme_record(scheme).shares_key_width) options.key_width = 6;
    options.rotary = true;
    options.rotary_dimensions = 4;
    options.rotary_scaling = rotary_scalings().back();
    if (is_impossible(options)) continue;
    one.name += "_scaled";
    variants.push_back({one.name + "+rotary", options});
    options.projection_bias = options.content_bias = true;
    variants.push_back({one.name + "+biases+content+rotary", options});
  }
  return variants;
}

// Lists every scheme with the options that change its formula under rotary positions alone.
inline std::vector<SchemeCase> rotary_variants() {
  std::vector<SchemeCase> variants;
  for (const std::string& scheme : scheme_names()) {
    const SchemeFormula& formula = scheme_formula(scheme);
    std::vector<SchemeCase> cases = formula.rotary_cases;
    if (reads(scheme, "key-offset")) {
      AttentionOptions options = formula.cases.front().options;
      options.head_width = 6;
      options.rotary_dimensions = 4;
      options.key_offset = true;
      cases.push_back({formula.cases.front().name + "_offset", options});
      options.kv_shift = true;
      cases.push_back({formula.cases.front().name + "_shift_offset", options});
    }
    for (SchemeCase& one : cases) {
      one.options.rotary = true;
      variants.push_back({one.name + "+rotary", one.options});
      one.options.projection_bias = one.options.content_bias = true;
      variants.push_back({one.name + "+biases+content+rotary", one.options});
      one.options.sinks = true;
      variants.push_back({one.name + "_sinks+biases+content", one.options});
      one.options.qk_norm = true;
      if (!is_impossible(one.options)) variants.push_back({one.name + "_qk_norm_sinks+biases+content", one.options});
    }
  }
  return variants;
}

// Lists every scheme with a window that hides most of what tests have.
inline std::vector<SchemeCase> window_variants() {
  std::vector<SchemeCase> variants;
  for (const std::string& scheme : scheme_names()) {
    SchemeCase one = scheme_formula(scheme).cases.front();
    one.name += "_window+all";
    one.options.window = 2;
    one.options.projection_bias = one.options.content_bias = one.options.alibi = true;
    variants.push_back(one);
  }
  return variants;
}

// Tells whether such a layer attends within one sequence alone, where positions and distances have a meaning.
inline bool needs_one_sequence(const AttentionOptions& options) {
  return options.rotary || options.alibi || options.window;
}

// Lists every scheme with every legal mixture of biases and positions.
inline std::vector<SchemeCase> scheme_variants() {
  std::vector<SchemeCase> variants;
  for (const SchemeCase& one : scheme_cases()) {
    for (int bits = 0; bits < 16; ++bits) {
      SchemeCase variant = one;
      AttentionOptions& options = variant.options;
      options.projection_bias = (bits & 1) != 0;
      options.content_bias = (bits & 2) != 0;
      options.alibi = (bits & 4) != 0;
      options.rotary = (bits & 8) != 0;
      if ((options.rotary && options.alibi) || (options.rotary && is_impossible(options))) continue;
      // Gates, sinks and shifts meet no biases and positions, or all that go together: the mixtures between would take
      // minutes.
      const bool extended = options.sinks || options.kv_shift || options.gate != OutputGate::kNone;
      if (extended && bits != 0 && bits != 7 && bits != 11) continue;
      if (options.projection_bias) variant.name += "+biases";
      if (options.content_bias) variant.name += "+content";
      if (options.alibi) variant.name += "+alibi";
      if (options.rotary) variant.name += "+rotary";
      variants.push_back(variant);
    }
  }
  for (const SchemeCase& one : scaled_rotary_variants()) variants.push_back(one);
  for (const SchemeCase& one : rotary_variants()) variants.push_back(one);
  for (const SchemeCase& one : window_variants()) variants.push_back(one);
  return variants;
}

// This layer is computed by its scheme's formula.
class NaiveAttention {
 public:
  explicit NaiveAttention(const AttentionImpl& layer)
      : layer_(layer), o_(layer_.options()), formula_(scheme_formula(o_.scheme)) {}

  // Computes x [B, T, E], y [By, S, E] with By a divisor of B; `visible` [By, S] or undefined -> [B, T, E].
  Tensor run(const Tensor& x, const Tensor& y, bool causal, const Tensor& visible = {}) const {
    std::vector<Tensor> sentences;
    for (int64_t b = 0; b < x.size(0); ++b) {
      const int64_t source = b / (x.size(0) / y.size(0));
      sentences.push_back(sentence(x[b], y[source], causal, visible.defined() ? visible[source] : Tensor()));
    }
    return at::stack(sentences);
  }

 private:
  // Turns row t by position t: of the last W dimensions, pairs (i, i + W/2) by the angle t * base^(-2i/W), or slower.
  // `back` undoes that.
  Tensor turned(const Tensor& x, bool back = false) const {
    const int64_t D = x.size(1), W = rotated_width(o_);
    const double factor = o_.rotary_scaling.attention_factor.value_or(1);
    std::vector<Tensor> rows;
    for (int64_t t = 0; t < x.size(0); ++t) {
      Tensor turn = at::eye(D, at::kDouble);
      for (int64_t i = D - W; i < D - W / 2; ++i) {
        const double angle =
            static_cast<double>(t) * formula_frequency(o_.rotary_scaling, o_.rotary_base, W, i - (D - W));
        turn[i][i] = turn[i + W / 2][i + W / 2] = factor * std::cos(angle);
        turn[i][i + W / 2] = -factor * std::sin(angle);
        turn[i + W / 2][i] = factor * std::sin(angle);
      }
      rows.push_back((back ? turn.inverse() : turn).to(x.scalar_type()).mv(x[t]));
    }
    return rows.empty() ? x : at::stack(rows);
  }

  // Returns row j of x, or where it is padding or before the first, null.
  static Tensor row_at(const Tensor& x, int64_t j, const Tensor& visible) {
    const bool is_token = j >= 0 && (!visible.defined() || visible[j].item<bool>());
    return is_token ? x[j] : Tensor();
  }

  // Mixes each row with the one before as head h does: a x_j + (c - a) x_{j-1}.
  Tensor shifted(const Tensor& x, const std::string& what, int64_t h, const Tensor& visible) const {
    const Tensor shares = layer_.parameter("shift." + what + "_share"),
                 sums = layer_.parameter("shift." + what + "_sum");
    const int64_t map = h / (o_.heads / shares.size(0));
    std::vector<Tensor> rows;
    for (int64_t j = 0; j < x.size(0); ++j) {
      const Tensor before = row_at(x, j - 1, visible), a = shares[map], c = sums[map];
      rows.push_back(before.defined() ? a * x[j] + (c - a) * before : a * x[j]);
    }
    return rows.empty() ? x : at::stack(rows);
  }

  // Takes the dimensions that do not turn from the row before, where there is one.
  Tensor offset(const Tensor& x, const Tensor& visible) const {
    const int64_t still = x.size(1) - rotated_width(o_);
    std::vector<Tensor> rows;
    for (int64_t j = 0; j < x.size(0); ++j) {
      const Tensor before = row_at(x, j - 1, visible);
      rows.push_back(before.defined() ? at::cat({before.slice(0, 0, still), x[j].slice(0, still)}) : x[j]);
    }
    return rows.empty() ? x : at::stack(rows);
  }

  // Returns 1 where query i sees key j.
  Tensor sight(int64_t T, int64_t S, bool causal, const Tensor& visible, at::TensorOptions options) const {
    Tensor sight = at::ones({T, S}, options);
    for (int64_t i = 0; i < T; ++i) {
      for (int64_t j = 0; j < S; ++j) {
        const bool hidden = visible.defined() && !visible[j].item<bool>();
        const bool far = o_.window && std::abs(i + S - T - j) > *o_.window;
        if (hidden || far || (causal && j > i + S - T)) sight[i][j] = 0;
      }
    }
    return sight;
  }

  Tensor distances(int64_t T, int64_t S, at::TensorOptions options) const {
    Tensor distances = at::zeros({T, S}, options);
    for (int64_t i = 0; i < T; ++i) {
      for (int64_t j = 0; j < S; ++j) distances[i][j] = static_cast<double>(std::abs(i + S - T - j));
    }
    return distances;
  }

  Tensor sentence(const Tensor& x, const Tensor& y, bool causal, const Tensor& visible) const {
    const int64_t T = x.size(0), S = y.size(0);
    const auto options = at::TensorOptions().dtype(x.scalar_type());
    const Tensor seen = sight(T, S, causal, visible, options);
    std::vector<Tensor> heads;
    for (int64_t h = 0; h < o_.heads; ++h) {
      NaiveHead one = formula_.head(layer_, h, x, y);
      if (o_.kv_shift) one = {one.q, shifted(one.k, "key", h, visible), shifted(one.v, "value", h, visible)};
      const bool values_turn = formula_.values_turn != nullptr && formula_.values_turn(o_);
      if (o_.rotary) one = {turned(one.q), turned(one.k), values_turn ? turned(one.v) : one.v};
      if (o_.key_offset) one.k = offset(one.k, visible);
      Tensor scores = one.q.matmul(one.k.t());  // [T, S]
      if (layer_.has("content_bias")) scores = scores + y.mv(layer_.parameter("content_bias")[h]);
      scores = scores * *o_.scale;
      if (o_.alibi) scores = scores - distances(T, S, options) * alibi_slopes(o_.heads)[h];
      const Tensor weights = scores.exp() * seen;
      Tensor sum = weights.sum(1, /*keepdim=*/true);
      if (layer_.has("sinks")) sum = sum + layer_.parameter("sinks")[h].exp() * (sum > 0);
      heads.push_back((weights / (sum + (sum == 0))).matmul(one.v));
      if (values_turn) heads[h] = turned(heads[h], /*back=*/true);
      if (layer_.has("gate.weight")) heads[h] = heads[h] * layer_.own("gate", h, x).sigmoid();
    }
    return formula_.merge == nullptr ? layer_.affine("output", at::cat(heads, 1)) : formula_.merge(layer_, heads);
  }

  NaiveLayer layer_;
  const AttentionOptions& o_;
  const SchemeFormula& formula_;
};

}  // namespace headshare
