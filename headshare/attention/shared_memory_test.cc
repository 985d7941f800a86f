// These tests are about layers that read what another layer remembers (AttentionOptions::memory).
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/autograd.h>

#include "headshare/attention/testing.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace shared_memory_test {

using testing::HasSubstr;

AttentionOptions with_memory(AttentionOptions options, MemoryUse memory) {
  options.memory = memory;
  return options;
}

// Lists every scheme with every legal mixture of options, where layers can share their memory.
std::vector<SchemeCase> lending_variants() {
  std::vector<SchemeCase> all;
  for (const SchemeCase& one : scheme_variants()) {
    if (!is_impossible(with_memory(one.options, MemoryUse::kLent))) all.push_back(one);
  }
  return all;
}

// A layer that lends its memory stands below one that borrows it and reads something else. Each is compared with the
// formula of a layer on its own that has the same parameters: the upper one's makes keys and values of what the lower
// one reads.
class LentMemory {
 public:
  explicit LentMemory(const AttentionOptions& options)
      : lower_(random_attention(with_memory(options, MemoryUse::kLent), /*seed=*/1)),
        upper_(random_attention(with_memory(options, MemoryUse::kBorrowed), /*seed=*/2)),
        lower_alone_(random_attention(options, /*seed=*/1)),
        upper_alone_(random_attention(options, /*seed=*/2)),
        low_(random_tensor({2, kTokens, options.d_model}, 31)),
        high_(random_tensor({2, kTokens, options.d_model}, 32)) {
    visible_[0][0] = false;  // causal: the first query sees nothing
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : parameters_of(*upper_alone_)) {
      if (!parameters_of(*upper_).contains(name)) tensor.copy_(parameters_of(*lower_).at(name));
    }
  }

  void check() const {
    Memory lent;
    const HeadMask mask{.causal = true, .visible_keys = visible_};
    const Tensor lower = lower_->self(low_, mask, /*cache=*/nullptr, &lent);
    const Tensor upper = upper_->self(high_, mask, /*cache=*/nullptr, &lent);
    const Tensor lower_alone = NaiveAttention(*lower_alone_).run(low_, low_, /*causal=*/true, visible_);
    const Tensor upper_alone = NaiveAttention(*upper_alone_).run(high_, low_, /*causal=*/true, visible_);
    EXPECT_TRUE(same(lower, lower_alone));
    EXPECT_TRUE(same(upper, upper_alone));
    check_gradients(loss(lower, upper), loss(lower_alone, upper_alone));
  }

 private:
  static constexpr int64_t kTokens = 4;

  Tensor loss(const Tensor& lower, const Tensor& upper) const {
    return (lower * random_tensor(lower.sizes(), 33)).sum() + (upper * random_tensor(upper.sizes(), 34)).sum();
  }

  // The gradient of what both layers read is the sum of their formulas'. Every learned parameter of either layer has
  // one, so that neither has a parameter that nothing reads.
  void check_gradients(const Tensor& loss, const Tensor& loss_alone) const {
    loss.backward();
    loss_alone.backward();
    for (const Attention& layer : {lower_, upper_}) {
      const bool is_lower = layer.ptr() == lower_.ptr();
      for (const Declared& one : declared_parameters(*layer)) {
        SCOPED_TRACE(join_text(is_lower ? "lower " : "upper ", one.name));
        if (one.role == Role::kInert) continue;
        Tensor expected = parameters_of(is_lower ? *lower_alone_ : *upper_alone_).at(one.name).grad();
        if (is_lower && !parameters_of(*upper_).contains(one.name)) {
          expected = expected + parameters_of(*upper_alone_).at(one.name).grad();
        }
        ASSERT_TRUE(one.tensor.grad().defined());
        EXPECT_TRUE(close(one.tensor.grad(), expected, 1e-11 * magnitude(expected)));
        EXPECT_GT(one.tensor.grad().abs().max().item<double>(), 1e-6) << "it should matter";
      }
    }
  }

  Attention lower_, upper_, lower_alone_, upper_alone_;
  Tensor low_, high_;
  Tensor visible_ = at::ones({2, kTokens}, at::kBool);
};

TEST(SharedMemory, ALayerReadsKeysAndValuesOfTheLayerBelow) {
  for (const SchemeCase& one : lending_variants()) {
    SCOPED_TRACE(one.name);
    LentMemory(one.options).check();
  }
}

TEST(SharedMemory, LayersThatDecodeReadOneCache) {
  const at::NoGradGuard no_grad;
  for (const SchemeCase& one : lending_variants()) {
    SCOPED_TRACE(one.name);
    const Attention lower = random_attention(with_memory(one.options, MemoryUse::kLent));
    const Attention upper = random_attention(with_memory(one.options, MemoryUse::kBorrowed));
    const Tensor x = random_tensor({2, 6, one.options.d_model}, 7);
    const Tensor y = random_tensor({2, 6, one.options.d_model}, 8);
    Memory lent;
    lower->self(x, {.causal = true}, /*cache=*/nullptr, &lent);
    const Tensor whole = upper->self(y, {.causal = true}, /*cache=*/nullptr, &lent);
    KvCache cache(6);
    std::vector<Tensor> parts;
    for (const auto& [first, count] : {std::pair(0, 3), {3, 1}, {4, 2}}) {
      lower->self(x.narrow(1, first, count), {.causal = true}, &cache, &lent);
      parts.push_back(upper->self(y.narrow(1, first, count), {.causal = true}, /*cache=*/nullptr, &lent));
    }
    EXPECT_TRUE(same(at::cat(parts, 1), whole));
    EXPECT_EQ(cache.elements_per_token(), lower->scheme().cost().cache_elements);
    EXPECT_EQ(upper->scheme().cost().cache_elements, 0);
  }
}

TEST(SharedMemory, CostsAreThoseOfTheParametersOfEachLayer) {
  for (const SchemeCase& one : lending_variants()) {
    SCOPED_TRACE(one.name);
    const AttentionCost alone = Attention(one.options)->scheme().cost();
    for (const MemoryUse memory : {MemoryUse::kLent, MemoryUse::kBorrowed}) {
      const Attention layer(with_memory(one.options, memory));
      const AttentionCost cost = layer->scheme().cost();
      int64_t parameters = 0, biases = 0;
      for (const Declared& each : declared_parameters(*layer)) {
        (each.name.ends_with(".bias") ? biases : parameters) += each.tensor.numel();
      }
      EXPECT_EQ(cost.parameters, parameters);
      EXPECT_EQ(cost.biases, biases);
      EXPECT_LE(cost.effective, cost.parameters);
      if (memory == MemoryUse::kBorrowed) continue;
      EXPECT_EQ(cost.parameters, alone.parameters);
      EXPECT_EQ(cost.effective, alone.effective);
      EXPECT_EQ(cost.cache_elements, alone.cache_elements);
    }
  }
}

TEST(SharedMemory, CountsOfABorrowingLayer) {
  const int64_t E = 768, H = 12, D = 64;
  const auto cost = [&](AttentionOptions options) {
    options.d_model = E;
    options.heads = H;
    options.memory = MemoryUse::kBorrowed;
    return Attention(options)->scheme().cost();
  };
  for (const std::string scheme : {"mha", "gqa", "mqa", "skv", "lrkv"}) {
    const int64_t residuals = scheme == "lrkv" ? 2 * H * (D / 4) * D : 0;
    EXPECT_EQ(cost({.scheme = scheme}).parameters, 2 * E * E + residuals) << scheme;
    EXPECT_EQ(cost({.scheme = scheme}).effective, 2 * E * E + residuals) << scheme;
  }
  EXPECT_EQ(cost({.scheme = "sha"}).parameters, E * D + E * E);
  EXPECT_EQ(cost({.scheme = "sha"}).effective, 2 * E * D);
  EXPECT_EQ(cost({.scheme = "mhe_add"}).parameters, E * D + E * E + 3 * H * D);
  EXPECT_EQ(cost({.scheme = "el_shared"}).parameters, 2 * E * E);
  EXPECT_EQ(cost({.scheme = "collaborative"}).parameters, E * 384 + H * 384 + E * E);
  EXPECT_EQ(cost({.scheme = "mla"}).parameters, 2 * E * E + 256 * 2 * E);
  // The norm of keys that are cached is the lower layer's; skv norms keys when it reads them, with weights of its own.
  EXPECT_EQ(cost({.scheme = "mha", .qk_norm = true}).parameters, 2 * E * E + D);
  EXPECT_EQ(cost({.scheme = "mha", .qk_norm = true, .rotary = true}).effective, 2 * E * E + D);
  EXPECT_EQ(cost({.scheme = "mhe_mul", .qk_norm = true, .rotary = true}).effective, E * D + E * E + H * (D + D / 2));
  EXPECT_EQ(cost({.scheme = "skv", .qk_norm = true}).parameters, 2 * E * E + 2 * D);
  // A content bias is cached, so that it is the lower layer's, and absorbs no added queries of the upper one.
  EXPECT_EQ(cost({.scheme = "mha", .content_bias = true}).parameters, 2 * E * E);
  EXPECT_EQ(cost({.scheme = "mhe_add", .content_bias = true}).effective, E * D + E * E + H * D);
}

TEST(SharedMemory, WhatCannotBeIsRefused) {
  const auto refusal = [](AttentionOptions options) {
    return error_message([&] { resolve(with_memory(std::move(options), MemoryUse::kLent)); });
  };
  EXPECT_THAT(refusal(small_layer("el_lossless")), HasSubstr("would share none; choose --scheme mha"));
  EXPECT_THAT(refusal(with_option(small_layer("skv"), "shared-qk", "true")),
              HasSubstr("layers with --share-kv-layers have no keys of their own"));
  const Attention upper(with_memory(small_layer("mha"), MemoryUse::kBorrowed));
  const Tensor x = at::zeros({1, 2, 6});
  EXPECT_THAT(error_message([&] { upper->self(x, {}); }), HasSubstr("run the blocks of the model"));
  EXPECT_THAT(error_message([&] { upper->pose(x, x, {}); }), HasSubstr("makes no keys and values itself"));
}

}  // namespace shared_memory_test
}  // namespace headshare
