// The schemes as the papers write them, for tests: every head on its own, nothing folded or dropped.
#pragma once

#include <gtest/gtest.h>

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

// A layer in double whose parameters, biases and inert ones too, are drawn from N(0, 0.5^2).
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

// Every scheme with the options that change its formula; the sizes are small, odd where legal, and
// H D != E where legal.
inline std::vector<SchemeCase> scheme_cases() {
  constexpr int64_t kE = 6, kH = 4, kD = 2;
  const auto with = [](const std::string& scheme) {
    return AttentionOptions{.scheme = scheme, .d_model = kE, .heads = kH, .head_width = kD};
  };
  std::vector<SchemeCase> cases;
  for (const std::string& scheme : scheme_names()) cases.push_back({scheme, with(scheme)});
  for (SchemeCase& one : cases) {
    if (one.options.scheme == "el_shared") one.options.d_model = kH * kD;
  }
  for (size_t i = 0, plain = cases.size(); i < plain; ++i) {
    SchemeCase normed = cases[i];
    normed.name += "_qk_norm";
    normed.options.qk_norm = true;
    if (is_trained(normed.options.scheme)) cases.push_back(normed);
  }
  AttentionOptions narrowed = with("mha");
  narrowed.head_width = 3;
  narrowed.key_width = 8;
  cases.push_back({"mha_narrowed", narrowed});
  narrowed.scheme = "el_lossless";
  cases.push_back({"el_lossless_narrowed", narrowed});
  AttentionOptions shared_qk = with("skv");
  shared_qk.shared_qk = true;
  cases.push_back({"skv_shared_qk", shared_qk});
  AttentionOptions averaged = with("el_shared");
  averaged.averaged_values = true;
  cases.push_back({"el_shared_averaged", averaged});
  AttentionOptions plain_product = with("mhe_mul");
  plain_product.mhe_mul_offset = 0;
  cases.push_back({"mhe_mul_offset_0", plain_product});
  AttentionOptions wide = with("collaborative");
  wide.key_width = 6;
  cases.push_back({"collaborative_6", wide});
  return cases;
}

inline bool keeps_hidden_states(const AttentionOptions& options) {
  return options.scheme == "el_shared" || options.scheme == "el_lossless";
}

// Every scheme with every legal mixture of biases and positions.
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
      if ((options.rotary && options.alibi) || (options.rotary && keeps_hidden_states(options))) continue;
      if (options.projection_bias) variant.name += "+biases";
      if (options.content_bias) variant.name += "+content";
      if (options.alibi) variant.name += "+alibi";
      if (options.rotary) variant.name += "+rotary";
      variants.push_back(variant);
    }
  }
  return variants;
}

// The literal formulas of docs/mathematics.md#the-ten-schemes, for one layer.
class NaiveAttention {
 public:
  explicit NaiveAttention(const AttentionImpl& layer)
      : o_(layer.scheme().options()), parameters_(parameters_of(layer.scheme())) {}

  // x [B, T, E], y [By, S, E] with By a divisor of B; `visible` [By, S] or undefined -> [B, T, E].
  Tensor run(const Tensor& x, const Tensor& y, bool causal, const Tensor& visible = {}) const {
    std::vector<Tensor> sentences;
    for (int64_t b = 0; b < x.size(0); ++b) {
      const int64_t source = b / (x.size(0) / y.size(0));
      sentences.push_back(sentence(x[b], y[source], causal, visible.defined() ? visible[source] : Tensor()));
    }
    return at::stack(sentences);
  }

 private:
  struct Head {
    Tensor q, k, v;  // [T, Dk], [S, Dk], [S, Dv]
  };

  bool has(const std::string& name) const { return parameters_.count(name) > 0; }
  const Tensor& parameter(const std::string& name) const { return parameters_.at(name); }

  // x W^T + b: every key bias too, inert or not.
  Tensor affine(const std::string& name, const Tensor& x) const {
    const Tensor product = x.matmul(parameter(name + ".weight").t());
    return has(name + ".bias") ? product + parameter(name + ".bias") : product;
  }

  // Columns of head h of `heads`.
  static Tensor part(const Tensor& x, int64_t h, int64_t heads) {
    const int64_t width = x.size(1) / heads;
    return x.slice(1, h * width, (h + 1) * width);
  }

  // x / sqrt(mean(x^2) + 1e-6) * weight, where the layer has such a weight.
  Tensor normed(const std::string& weight, const Tensor& x) const {
    if (!has(weight)) return x;
    return x / (x.square().mean(1, /*keepdim=*/true) + 1e-6).sqrt() * parameter(weight);
  }

  Head head(int64_t h, const Tensor& x, const Tensor& y) const {
    const int64_t H = o_.heads;
    const auto query = [&](const Tensor& projected) { return normed("query_norm.weight", projected); };
    const auto key = [&](const Tensor& projected) { return normed("key_norm.weight", projected); };
    const auto own = [&](const std::string& name, const Tensor& of) { return part(affine(name, of), h, H); };
    if (o_.scheme == "mha" || o_.scheme == "el_lossless") {
      return {query(own("query", x)), key(own("key", y)), own("value", y)};
    }
    if (o_.scheme == "gqa" || o_.scheme == "mqa") {
      const int64_t g = o_.scheme == "mqa" ? 1 : *o_.groups;
      const int64_t group = h / (H / g);
      return {query(own("query", x)), key(part(affine("key", y), group, g)), part(affine("value", y), group, g)};
    }
    if (o_.scheme == "sha") return {query(affine("query", x)), key(affine("key", y)), affine("value", y)};
    if (o_.scheme == "skv" && o_.shared_qk) {
      return {query(own("query_key", x)), key(own("query_key", y)), own("value", y)};
    }
    if (o_.scheme == "skv") return {query(own("query", x)), key(own("key_value", y)), own("key_value", y)};
    if (o_.scheme == "el_shared" && o_.averaged_values) return {query(own("query", x)), key(own("key", y)), y};
    if (o_.scheme == "el_shared") return {query(own("query", x)), key(part(y, h, H)), part(y, h, H)};
    if (o_.scheme == "mhe_add") {
      return {query(affine("query", x)) + parameter("query_embedding")[h],
              key(affine("key", y)) + parameter("key_embedding")[h],
              affine("value", y) + parameter("value_embedding")[h]};
    }
    if (o_.scheme == "mhe_mul") {
      const double offset = o_.mhe_mul_offset;
      return {query(affine("query", x)) * (parameter("query_embedding")[h] + offset),
              key(affine("key", y)) * (parameter("key_embedding")[h] + offset),
              affine("value", y) * (parameter("value_embedding")[h] + offset)};
    }
    if (o_.scheme == "collaborative") {
      return {query(affine("query", x)) * parameter("mixing")[h], key(affine("key", y)), own("value", y)};
    }
    throw Error("unknown attention scheme");
  }

  // Row t turns by position t: pairs (i, i + D/2) by the angle t * base^(-2i/D).
  Tensor turned(const Tensor& x) const {
    const int64_t D = x.size(1);
    std::vector<Tensor> rows;
    for (int64_t t = 0; t < x.size(0); ++t) {
      Tensor turn = at::zeros({D, D}, at::kDouble);
      for (int64_t i = 0; i < D / 2; ++i) {
        const double angle = static_cast<double>(t) * std::pow(o_.rotary_base, -2.0 * static_cast<double>(i) / D);
        turn[i][i] = turn[i + D / 2][i + D / 2] = std::cos(angle);
        turn[i][i + D / 2] = -std::sin(angle);
        turn[i + D / 2][i] = std::sin(angle);
      }
      rows.push_back(turn.to(x.scalar_type()).mv(x[t]));
    }
    return rows.empty() ? x : at::stack(rows);
  }

  // 1 where query i sees key j.
  static Tensor sight(int64_t T, int64_t S, bool causal, const Tensor& visible, at::TensorOptions options) {
    Tensor sight = at::ones({T, S}, options);
    for (int64_t i = 0; i < T; ++i) {
      for (int64_t j = 0; j < S; ++j) {
        const bool hidden = visible.defined() && !visible[j].item<bool>();
        if (hidden || (causal && j > i + S - T)) sight[i][j] = 0;
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
      Head one = head(h, x, y);
      if (o_.rotary) one = {turned(one.q), turned(one.k), one.v};
      Tensor scores = one.q.matmul(one.k.t());  // [T, S]
      if (has("content_bias")) scores = scores + y.mv(parameter("content_bias")[h]);
      scores = scores * *o_.scale;
      if (o_.alibi) scores = scores - distances(T, S, options) * alibi_slopes(o_.heads)[h];
      const Tensor weights = scores.exp() * seen;
      const Tensor sum = weights.sum(1, /*keepdim=*/true);
      heads.push_back((weights / (sum + (sum == 0))).matmul(one.v));
    }
    if (o_.averaged_values) return at::stack(heads).mean(0);
    return affine("output", at::cat(heads, 1));
  }

  AttentionOptions o_;
  Parameters parameters_;
};

}  // namespace headshare
