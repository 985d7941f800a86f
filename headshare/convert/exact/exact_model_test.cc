#include "headshare/convert/exact/exact_model.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/attention/schemes/collaborative.h"
#include "headshare/attention/schemes/gqa.h"
#include "headshare/attention/schemes/mhe_options.h"
#include "headshare/base/testing.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace exact_test {

using testing::HasSubstr;

Decoder random_decoder(DecoderOptions options) {
  Decoder model = small_decoder(options);
  randomise(*model);
  return model;
}

AnyModel any(const Decoder& model) { return {.options = model->options(), .module = model.ptr()}; }

Tensor logits(const Decoder& model) {
  const at::NoGradGuard no_grad;
  return model->logits(model->hidden(random_ids(3, 10, 13)));
}

Decoder folded(const Decoder& source, const ExactTarget& to) {
  ExactReport report;
  const AnyModel result = fold_exactly(any(source), to, /*biased=*/false, &report);
  EXPECT_LE(report.in_double, kExact);
  EXPECT_LT(report.as_stored, 1e-5);
  const Decoder target = result.as<Decoder>();
  EXPECT_LT((logits(source) - logits(target)).abs().max().item<double>(), 1e-4);
  EXPECT_EQ(target->options().attention.scheme, to.scheme);
  expect_counted(target);
  return target;
}

struct Case {
  std::string from, to;
  std::vector<PositionKind> positions;
};

// Every pair of schemes, with the positions for which it is an identity.
std::vector<Case> cases() {
  const std::vector<PositionKind> all = {PositionKind::kLearned, PositionKind::kAlibi, PositionKind::kRotary};
  const std::vector<PositionKind> unturned = {PositionKind::kLearned, PositionKind::kAlibi};
  return {{"mhe_add", "mqa", unturned},
          {"mhe_mul", "mqa", unturned},
          {"mhe_add", "mha", all},
          {"mhe_mul", "mha", all},
          {"sha", "mqa", all},
          {"sha", "mha", all},
          {"gqa", "mha", all},
          {"mqa", "mha", all},
          {"mqa", "gqa", all},
          {"skv", "mha", all},
          {"mha", "el_lossless", unturned},
          {"el_lossless", "mha", unturned},
          {"el_shared", "mha", unturned},
          {"mqa", "el_lossless", unturned}};
}

class ExactFold : public testing::TestWithParam<Case> {};

TEST_P(ExactFold, ComputesTheSame) {
  for (const PositionKind positions : GetParam().positions) {
    for (const bool biases : {false, true}) {
      SCOPED_TRACE(position_name(positions) + (biases ? ", biases" : ""));
      DecoderOptions options = small_options(GetParam().from, positions);
      options.attention.projection_bias = options.attention.content_bias = biases;
      options.attention.scale = 0.4;  // which the target's usual scale must not change
      folded(random_decoder(options), {.scheme = GetParam().to});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, ExactFold, testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.from + "_to_" + one.param.to; });

// A factor on cosines is in the maps of neither model, and what turns stays the same part.
TEST(ExactModel, ScaledAndPartialRotationsAreKept) {
  for (const std::string from : {"gqa", "mhe_add", "mhe_mul", "skv"}) {
    for (const bool partial : {false, true}) {
      SCOPED_TRACE(from + (partial ? ", a part" : ""));
      DecoderOptions options = small_options(from, PositionKind::kRotary);
      options.attention.projection_bias = true;
      options.attention.rotary_scaling = {
          .kind = RotaryScalingKind::kYarn, .factor = 4, .original_context = 16, .attention_factor = 1.5};
      if (partial) options.attention.rotary_dimensions = 2;
      const Decoder target = folded(random_decoder(options), {.scheme = "mha"});
      EXPECT_EQ(target->options().attention.rotary_scaling, options.attention.rotary_scaling);
      EXPECT_EQ(target->options().attention.rotary_dimensions, options.attention.rotary_dimensions);
    }
  }
}

TEST(ExactModel, WindowsAndTheirRotationsAreKept) {
  DecoderOptions options = small_options("gqa", PositionKind::kRotary);
  options.attention.window = 2;
  options.global_every = 2;
  options.local_rotary_base = 50;
  const Decoder target = folded(random_decoder(options), {.scheme = "mha"});
  EXPECT_FALSE(target->attention(0)->scheme().options().window);
  EXPECT_EQ(target->attention(1)->scheme().options().window, 2);
  EXPECT_EQ(target->attention(1)->scheme().options().rotary_base, 50);
}

TEST(ExactModel, ShaBecomesOneHead) {
  DecoderOptions options = small_options("sha", PositionKind::kRotary);
  options.attention.projection_bias = true;
  const Decoder small = folded(random_decoder(options), {.scheme = "sha"});
  EXPECT_EQ(small->options().attention.heads, 1);
  EXPECT_EQ(small->options().attention.head_width, 4);
  const ModelSize size = measure(small->options());
  EXPECT_EQ(size.attention_parameters, size.attention_parameters_effective);
}

TEST(ExactModel, HeadsWithDifferentSlopesAreNotOne) {
  ExactReport report;
  const Decoder source = random_decoder(small_options("sha", PositionKind::kAlibi));
  EXPECT_THAT(error_message([&] { fold_exactly(any(source), {.scheme = "sha"}, false, &report); }),
              HasSubstr("layer 1: ALiBi gives every head a slope of its own"));
}

TEST(ExactModel, NarrowCollaborativeKeysHaveRoomInAHead) {
  for (const int64_t width : {2, 3, 4}) {  // a head is 4 wide: at 3 a content bias takes the last dimension
    for (const bool content : {false, true}) {
      DecoderOptions options = small_options("collaborative");
      options.attention.key_width = width;
      options.attention.content_bias = content;
      const Decoder target = folded(random_decoder(options), {.scheme = "mha"});
      EXPECT_EQ(target->options().attention.key_width, 16);
      EXPECT_EQ(target->options().attention.content_bias, content && width == 4);
    }
  }
}

TEST(ExactModel, NarrowKeysOfMhaBecomeUsualOnes) {
  DecoderOptions options = small_options("mha");
  options.attention.key_width = 8;
  EXPECT_EQ(folded(random_decoder(options), {.scheme = "mha"})->options().attention.scale, 0.5);
}

TEST(ExactModel, TheOffsetOfMheMulIsPartOfItsFactors) {
  DecoderOptions options = small_options("mhe_mul");
  options.attention.own.get<MheMulOptions>().offset = 0;
  folded(random_decoder(options), {.scheme = "mqa"});
}

TEST(ExactModel, ConvertsEncodersAndEncoderDecoders) {
  ExactReport report;
  EncoderOptions options = small_encoder_options("mhe_mul");
  Encoder encoder = small_encoder(options);
  randomise(*encoder);
  fold_exactly({.options = encoder->options(), .module = encoder.ptr()}, {.scheme = "mha"}, false, &report);
  EXPECT_LE(report.in_double, kExact);
  options.embedding.kind = TokenEmbeddingKind::kHashAdd;
  options.masked_head = false;
  encoder = small_encoder(options);
  randomise(*encoder);
  fold_exactly({.options = encoder->options(), .module = encoder.ptr()}, {.scheme = "mha"}, false, &report);
  EXPECT_LE(report.in_double, kExact);

  const EncoderDecoder translator = random_translator("mhe_add", "skv");
  const AnyModel unfolded =
      fold_exactly({.options = translator->options(), .module = translator.ptr()}, {.scheme = "mha"}, false, &report);
  EXPECT_LE(report.in_double, kExact);
  EXPECT_EQ(unfolded.options.as<EncoderDecoderOptions>().sites->cross.scheme, "mha");
}

std::string refusal(const DecoderOptions& options, const ExactTarget& to) {
  ExactReport report;
  const Decoder source = random_decoder(options);
  return error_message([&] { fold_exactly(any(source), to, false, &report); });
}

TEST(ExactModel, WhatHasNoExactFormIsRefusedWithTheReason) {
  EXPECT_THAT(refusal(small_options("mha"), {.scheme = "mqa"}),
              testing::AllOf(HasSubstr("layer 1: heads 1 and 2 differ in their keys"), HasSubstr("choose --to mha")));
  EXPECT_THAT(refusal(small_options("mhe_add", PositionKind::kRotary), {.scheme = "mqa"}),
              HasSubstr("rotary positions turn what each head has of its own in its keys"));
  EXPECT_THAT(refusal(small_options("el_shared"), {.scheme = "skv"}), HasSubstr("not as skv"));
  DecoderOptions options = small_options("gqa");
  options.attention.qk_norm = true;
  EXPECT_THAT(refusal(options, {.scheme = "mha"}), HasSubstr("(--qk-norm)"));
  options = small_options("gqa");
  options.attention.gate = OutputGate::kHead;
  EXPECT_THAT(refusal(options, {.scheme = "mha"}), HasSubstr("(--output-gate)"));
  options.attention.sinks = true;
  EXPECT_THAT(refusal(options, {.scheme = "mha"}), HasSubstr("(--attention-sinks)"));
  options = small_options("mqa");
  options.attention.kv_shift = true;
  EXPECT_THAT(refusal(options, {.scheme = "mha"}), HasSubstr("(kv-shift, key-offset)"));
  options = small_options("mqa", PositionKind::kRotary);
  options.attention.rotary_dimensions = 2;
  options.attention.key_offset = true;
  EXPECT_THAT(refusal(options, {.scheme = "mha"}), HasSubstr("(kv-shift, key-offset)"));
  options = small_options("skv", PositionKind::kRotary);
  Fields list = fields(options.attention);
  set_field(list, "skv-rotary", "counter", "a test");
  EXPECT_THAT(refusal(options, {.scheme = "mha"}), HasSubstr("rotary positions turn the values of skv"));
  options = small_options("collaborative");
  options.attention.key_width = 6;
  EXPECT_THAT(refusal(options, {.scheme = "mha"}), HasSubstr("compare 6 dimensions, and a head is 4 wide"));
  options = small_options("collaborative", PositionKind::kRotary);
  options.attention.key_width = 4;
  options.attention.own.get<CollaborativeOptions>().rotary_width = 2;
  EXPECT_THAT(refusal(options, {.scheme = "mha"}), HasSubstr("by other angles"));
}

TEST(ExactModel, TheFormIsKnownFromTheOptions) {
  EXPECT_EQ(memory_heads(resolve(small_options("mhe_mul")).attention).keys, 1);
  EXPECT_EQ(memory_heads(resolve(small_options("mhe_mul", PositionKind::kRotary)).attention).keys, 4);
  EXPECT_EQ(memory_heads(resolve(small_options("gqa")).attention).values, 2);
  const ModelOptions options = exact_model_options(resolve(small_options("mhe_add")), {.scheme = "mqa"});
  EXPECT_EQ(options.common().attention.scheme, "mqa");
}

}  // namespace exact_test
}  // namespace headshare
