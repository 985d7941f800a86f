// These tests compare cached decoding with the full pass, and check what the cache holds.
#include <gmock/gmock.h>

#include "headshare/attention/testing.h"

namespace headshare {
namespace {

constexpr int64_t kCapacity = 9, kTokens = 7;

// Feeds x to a cached layer in pieces of the given lengths.
Tensor decoded(const Attention& layer, const Tensor& x, const std::vector<int64_t>& pieces, const Tensor& visible,
               KvCache* cache) {
  std::vector<Tensor> outputs;
  int64_t first = 0;
  for (const int64_t count : pieces) {
    HeadMask mask = {.causal = true};
    if (visible.defined()) mask.visible_keys = visible.slice(1, 0, first + count);
    outputs.push_back(layer->self(x.slice(1, first, first + count), mask, cache));
    first += count;
    EXPECT_EQ(cache->length(), first);
  }
  return at::cat(outputs, 1);
}

TEST(Cache, DecodingEqualsTheFullPass) {
  Tensor visible = at::ones({2, kTokens}, at::kBool);
  visible[1].slice(0, 0, 2).fill_(false);  // a shorter prompt, padded on the left
  for (const SchemeCase& one : scheme_variants()) {
    SCOPED_TRACE(one.name);
    const at::NoGradGuard no_grad;
    const Attention layer = random_attention(one.options);
    const Tensor x = random_tensor({2, kTokens, one.options.d_model}, 41);
    for (const Tensor& padding : {Tensor(), visible}) {
      const Tensor full = layer->self(x, {.causal = true, .visible_keys = padding});
      for (const std::vector<int64_t>& pieces :
           {std::vector<int64_t>(kTokens, 1), std::vector<int64_t>{3, 1, 0, 2, 1}, std::vector<int64_t>{kTokens}}) {
        KvCache cache(kCapacity);
        EXPECT_TRUE(same(decoded(layer, x, pieces, padding, &cache), full)) << pieces.size() << " pieces";
      }
    }
  }
}

// Every kind of scaling turns queries and keys alike, whether keys are cached turned (mha) or not (skv).
TEST(Cache, DecodingEqualsTheFullPassUnderScaledRotations) {
  for (const RotaryScaling& scaling : rotary_scalings()) {
    for (const std::string scheme : {"mha", "skv"}) {
      const at::NoGradGuard no_grad;
      const Attention layer = random_attention(
          {.scheme = scheme, .d_model = 6, .heads = 4, .head_width = 12, .rotary = true, .rotary_scaling = scaling});
      const Tensor x = random_tensor({2, kTokens, 6}, 41);
      const Tensor full = layer->self(x, {.causal = true});
      KvCache cache(kCapacity);
      EXPECT_TRUE(same(decoded(layer, x, {3, 1, 2, 1}, {}, &cache), full));
      EXPECT_TRUE(same(full, NaiveAttention(*layer).run(x, x, /*causal=*/true)));
    }
  }
}

TEST(Cache, HoldsExactlyWhatTheSchemeCosts) {
  for (const SchemeCase& one : scheme_variants()) {
    SCOPED_TRACE(one.name);
    const at::NoGradGuard no_grad;
    const Attention layer = random_attention(one.options);
    const int64_t elements = layer->scheme().cost().cache_elements;
    KvCache cache(kCapacity);
    EXPECT_TRUE(cache.empty());
    EXPECT_EQ(cache.allocated_bytes(), 0);
    for (int step = 0; step < 2; ++step) {
      layer->self(random_tensor({3, 2, one.options.d_model}, 41), {.causal = true}, &cache);
      EXPECT_EQ(cache.elements_per_token(), elements);
      EXPECT_EQ(cache.allocated_bytes(), 3 * kCapacity * elements * static_cast<int64_t>(sizeof(double)));
    }
  }
}

TEST(Cache, CrossAttentionProjectsTheMemoryOnce) {
  for (const SchemeCase& one : scheme_variants()) {
    if (needs_one_sequence(one.options)) continue;
    SCOPED_TRACE(one.name);
    const at::NoGradGuard no_grad;
    const Attention layer = random_attention(one.options);
    const int64_t E = one.options.d_model;
    const Tensor y = random_tensor({2, 5, E}, 43);
    Tensor visible = at::ones({2, 5}, at::kBool);
    visible[1].slice(0, 3).fill_(false);
    KvCache cache(/*capacity=*/0);
    for (int step = 0; step < 3; ++step) {
      const Tensor x = random_tensor({6, 1, E}, 44 + step);  // three beams a sentence
      const Tensor expected = layer->cross(x, y, {.visible_keys = visible});
      // After the first step the memory is not read again.
      const Tensor given = step == 0 ? y : at::full_like(y, std::numeric_limits<double>::quiet_NaN());
      EXPECT_TRUE(at::equal(layer->cross(x, given, {.visible_keys = visible}, &cache), expected)) << step;
      const int64_t elements = layer->scheme().cost().cache_elements;
      EXPECT_EQ(cache.length(), 5);
      EXPECT_EQ(cache.elements_per_token(), elements);
      EXPECT_EQ(cache.allocated_bytes(), 2 * 5 * elements * static_cast<int64_t>(sizeof(double)));
    }
  }
}

TEST(Cache, SaysWhenItIsFull) {
  KvCache cache(4);
  const Memory three = {at::zeros({1, 2, 3, 5})};
  cache.append(three);
  try {
    cache.append({at::zeros({1, 2, 2, 5})});
    FAIL() << "took 5 tokens into 4 places";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the cache holds 4 tokens and cannot take 2 more after 3"));
  }
  EXPECT_EQ(cache.length(), 3);
  cache.append({at::zeros({1, 2, 1, 5})});
  EXPECT_EQ(cache.length(), 4);
}

TEST(Cache, CopiesRepeatsAndCutsSequences) {
  const Tensor plain = random_tensor({4, 2, 3, 5}, 1);
  const Tensor turned = random_tensor({4, 2, 5, 3}, 2).transpose(2, 3);  // stored as it is, its tokens lie apart
  const Tensor places = at::tensor({3, 3, 1, 1, 3, 3}, at::kLong);
  for (const bool stored : {false, true}) {
    KvCache cache(kCapacity);
    stored ? cache.store({plain.clone(), turned.clone()}) : (void)cache.append({plain, turned});
    cache.copy(std::vector<int64_t>{3, 3}, std::vector<int64_t>{0, 2});
    cache.shrink(3);
    cache.repeat(2);
    EXPECT_TRUE(at::equal(cache.contents()[0], plain.index_select(0, places))) << stored;
    EXPECT_TRUE(at::equal(cache.contents()[1], turned.index_select(0, places))) << stored;
  }
}

TEST(Cache, KeepsNoGraph) {
  KvCache cache(4);
  const Tensor x = at::ones({1, 1, 1, 2}).requires_grad_();
  cache.append({x * 2});
  EXPECT_FALSE(cache.append({x * 3}).front().requires_grad());
}

}  // namespace
}  // namespace headshare
