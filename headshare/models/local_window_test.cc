// These tests are about layers with a local window beside layers that see all tokens, the rotations of both, and
// ModernBERT's first layer.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "headshare/base/testing.h"
#include "headshare/models/blocks/block.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace local_window_test {

using testing::HasSubstr;

constexpr int64_t kLayers = 5, kTokens = 9;

DecoderOptions windowed(const std::string& scheme, int64_t window, PositionKind positions = PositionKind::kRotary) {
  DecoderOptions options = small_options(scheme, positions);
  options.layers = kLayers;
  options.attention.window = window;
  return options;
}

std::string refusal(const DecoderOptions& options) {
  return error_message([&] { resolve(options); });
}

TEST(LocalWindow, EveryLayerOrAllButSomeHaveIt) {
  DecoderOptions options = windowed("mha", 3);
  options.attention.rotary_scaling = {.kind = RotaryScalingKind::kLinear, .factor = 2};
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    EXPECT_EQ(layer_attention(resolve(options), layer).window, 3);
    EXPECT_EQ(layer_attention(resolve(options), layer).rotary_scaling.factor, 2);
  }
  options.global_every = 3;
  options.local_rotary_base = 7;
  for (const int64_t first : {0, 1, 2}) {
    options.global_first = first;
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const AttentionOptions attention = layer_attention(resolve(options), layer);
      const bool global = layer % 3 == first;
      EXPECT_EQ(attention.window.has_value(), !global) << first << " " << layer;
      EXPECT_EQ(attention.rotary_base, global ? 10000 : 7);
      EXPECT_EQ(attention.rotary_scaling.kind, global ? RotaryScalingKind::kLinear : RotaryScalingKind::kNone);
    }
  }
}

TEST(LocalWindow, WhatItsOptionsCannotMeanIsRefusedOrForgotten) {
  DecoderOptions options = windowed("mha", 3);
  options.global_every = 1;
  EXPECT_THAT(refusal(options), HasSubstr("global-every 1 leaves no layer with --local-window"));
  options.global_every = 3;
  options.global_first = 3;
  EXPECT_THAT(refusal(options), HasSubstr("below global-every, 3, and not 3"));
  options.global_first = 1;
  options.layer_groups = 1;
  EXPECT_THAT(refusal(options), HasSubstr("leave --global-every out"));
  options.layer_groups.reset();
  options.local_rotary_base = 9;
  options.positions = PositionKind::kAlibi;
  EXPECT_FALSE(resolve(options).local_rotary_base);
  options.attention.window.reset();
  EXPECT_FALSE(resolve(options).global_every);
  EXPECT_EQ(resolve(options).global_first, 0);
}

// A token reaches one window further with each layer.
TEST(LocalWindow, ATokenIsSeenAsFarAsTheWindowsOfAllLayersReach) {
  const at::NoGradGuard no_grad;
  DecoderOptions options = windowed("mha", 1);
  options.layers = 3;
  const Tensor ids = random_ids(1, kTokens, 13);
  Tensor other = ids.clone();
  other[0][0] = (ids[0][0] + 1) % 13;
  const auto change = [&](const Decoder& model) {
    return (model->hidden(ids) - model->hidden(other)).abs().amax({0, 2});  // [T]
  };
  const Decoder local = small_decoder(options);
  randomise(*local);
  EXPECT_EQ(change(local).slice(0, 4).max().item<float>(), 0);
  EXPECT_GT(change(local)[3].item<float>(), 0);
  options.global_every = 3;
  const Decoder mixed = small_decoder(options);
  randomise(*mixed);
  EXPECT_GT(change(mixed)[kTokens - 1].item<float>(), 0);
}

TEST(LocalWindow, DecodingWithACacheEqualsTheFullPass) {
  const at::NoGradGuard no_grad;
  for (const std::string& scheme : scheme_names()) {
    SCOPED_TRACE(scheme);
    const bool turned = supports(scheme, PositionKind::kRotary);
    DecoderOptions options = windowed(scheme, 2, turned ? PositionKind::kRotary : PositionKind::kLearned);
    options.global_every = 2;
    if (turned) options.local_rotary_base = 20;
    const Decoder model = small_decoder(options);
    randomise(*model);
    const Tensor ids = random_ids(2, kTokens, 13);
    DecodingState state = model->new_state(kTokens);
    std::vector<Tensor> pieces;
    for (const auto& [begin, end] : {std::pair(0, 4), {4, 5}, {5, 8}, {8, 9}}) {
      pieces.push_back(model->hidden(ids.slice(1, begin, end), &state));
    }
    const Tensor full = model->hidden(ids);
    EXPECT_LT(distance(at::cat(pieces, 1), full), 1e-5 * magnitude(full));
  }
}

// The first layer's attention reads the normed embedding itself: the same as a norm that changes nothing.
TEST(ModernBertParts, OnlyTheFirstLayersAttentionHasNoNorm) {
  const at::NoGradGuard no_grad;
  EncoderOptions options = small_encoder_options("mha", PositionKind::kRotary);
  options.norms = NormPlacement::kBeforeExceptFirst;
  options.feed_forward = FeedForwardKind::kGegluErf;
  const Encoder model = small_encoder(options);
  expect_counted(model);
  options.norms = NormPlacement::kBefore;
  const Encoder usual = small_encoder(options);
  std::set<std::string> left;
  for (const Declared& one : declared_parameters(*usual)) left.insert(one.name);
  for (const Declared& one : declared_parameters(*model)) left.erase(one.name);
  EXPECT_THAT(left, testing::ElementsAre("blocks.0.attention_norm.bias", "blocks.0.attention_norm.weight"));
  options.layer_groups = 1;
  options.norms = NormPlacement::kBeforeExceptFirst;
  EXPECT_THAT(error_message([&] { resolve(options); }), HasSubstr("have the same norms"));
}

TEST(ModernBertParts, ABlockIsItsFormula) {
  const at::NoGradGuard no_grad;
  EncoderOptions options = small_encoder_options("mha");
  options.norms = NormPlacement::kBeforeExceptFirst;
  options.feed_forward = FeedForwardKind::kGegluErf;
  options = resolve(options);
  Block block(options);
  randomise(*block);
  block->eval();
  std::map<std::string, Tensor> p;
  for (const Declared& one : declared_parameters(*block)) p[one.name] = one.tensor;
  const auto affine = [&](const Tensor& x, const std::string& name) {
    return at::linear(x, p.at("feed_forward." + name + ".weight"), p.at("feed_forward." + name + ".bias"));
  };
  const Tensor x = random_tensor({2, 5, 16}, 3, at::kFloat);
  const Tensor read = x + block->attention->self(x, {});
  const Tensor normed =
      at::layer_norm(read, {16}, p.at("feed_forward_norm.weight"), p.at("feed_forward_norm.bias"), 1e-12);
  const Tensor expected = read + affine(at::gelu(affine(normed, "gate")) * affine(normed, "expand"), "contract");
  EXPECT_LT(distance(block->forward(x, {}, nullptr), expected), 1e-5 * magnitude(expected));
}

}  // namespace local_window_test
}  // namespace headshare
