#include "headshare/models/encoder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <map>

#include "headshare/base/testing.h"
#include "headshare/models/size.h"
#include "headshare/models/testing.h"
#include "headshare/ops/precision.h"

namespace headshare {
namespace {

using testing::HasSubstr;

using Case = std::pair<SchemeKind, NormPlacement>;

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const SchemeKind scheme : all_schemes()) {
    for (const NormPlacement norms : {NormPlacement::kBefore, NormPlacement::kAfter}) all.push_back({scheme, norms});
  }
  return all;
}

class EncoderCase : public testing::TestWithParam<Case> {
 protected:
  static EncoderOptions options() {
    EncoderOptions options = small_encoder_options(GetParam().first);
    options.norms = GetParam().second;
    options.attention.content_bias = true;
    return options;
  }
  static Encoder model(EncoderOptions options = EncoderCase::options()) {
    Encoder model = small_encoder(options);
    randomise(*model);
    return model;
  }
};

INSTANTIATE_TEST_SUITE_P(All, EncoderCase, testing::ValuesIn(all_cases()), [](const auto& info) {
  return scheme_name(info.param.first) + (info.param.second == NormPlacement::kBefore ? "_pre" : "_post");
});

// Two rows of 9, the second padded after 6.
EncoderInput padded_input() {
  EncoderInput input{.ids = random_ids(2, 9, 13), .visible = at::ones({2, 9}, at::kBool)};
  input.visible.index_put_({at::tensor(1), at::arange(6, 9)}, false);
  input.segments = (at::arange(9) > 4).to(at::kLong).expand({2, 9});
  return input;
}

// About a third of the visible tokens.
Tensor some_targets() {
  const Tensor targets = at::full({2, 9}, kIgnoredTarget, at::kLong);
  for (const auto& [row, place] : {std::pair(0, 1), {0, 4}, {0, 8}, {1, 0}, {1, 5}}) targets[row][place] = row + place;
  return targets;
}

std::map<std::string, Tensor> gradients(Encoder& model, const EncoderInput& input, const Tensor& targets) {
  model->zero_grad();
  model->loss(input, targets).sum.backward();
  std::map<std::string, Tensor> all;
  for (const Declared& one : declared_parameters(*model)) {
    if (one.tensor.grad().defined()) all[one.name] = one.tensor.grad().clone();
  }
  return all;
}

TEST_P(EncoderCase, PaddingChangesNothing) {
  const at::NoGradGuard no_grad;
  Encoder model = EncoderCase::model();
  model->to(at::kDouble);
  EncoderInput input = padded_input();
  const Tensor padded = model->hidden(input);
  const EncoderInput alone{.ids = input.ids.narrow(0, 1, 1).narrow(1, 0, 6),
                           .segments = input.segments.narrow(0, 1, 1).narrow(1, 0, 6)};
  EXPECT_TRUE(same(padded.narrow(0, 1, 1).narrow(1, 0, 6), model->hidden(alone)));
  input.ids = input.ids.clone();
  input.ids[1][7] = (input.ids[1][7] + 1) % 13;
  EXPECT_TRUE(same(model->hidden(input)[1].narrow(0, 0, 6), padded[1].narrow(0, 0, 6)));
  EXPECT_TRUE(same(model->pooled(model->hidden(input)), model->pooled(padded)));
}

TEST_P(EncoderCase, EveryTokenSeesEveryOther) {
  const at::NoGradGuard no_grad;
  const Encoder model = EncoderCase::model();
  const Tensor ids = random_ids(1, 9, 13);
  const Tensor before = model->hidden({.ids = ids});
  Tensor changed = ids.clone();
  changed[0][8] = (changed[0][8] + 1) % 13;
  EXPECT_GT(distance(model->hidden({.ids = changed})[0][0], before[0][0]), 1e-4);
}

TEST_P(EncoderCase, MeasureCountsWhatIsThere) {
  for (const bool tied : {true, false}) {
    EncoderOptions wanted = options();
    wanted.tie_embeddings = tied;
    wanted.pooler = !tied;
    wanted.layers = 3;
    const Encoder model = small_encoder(wanted);
    int64_t total = 0;
    int64_t attention = 0;
    for (const Declared& one : declared_parameters(*model)) {
      total += one.tensor.numel();
      const bool in_attention = one.name.find(".attention.") != std::string::npos;
      if (in_attention && !one.name.ends_with(".bias")) attention += one.tensor.numel();
    }
    const ModelSize size = measure(model->options());
    EXPECT_EQ(size.total_parameters, total);
    EXPECT_EQ(size.attention_parameters, attention);
    EXPECT_EQ(size.cache_bytes_per_token, 0);
    EXPECT_EQ(parameter_bytes(model->options()), 4.0 * static_cast<double>(total));
  }
}

TEST_P(EncoderCase, EveryLearnedParameterGetsAGradientAndNoInertOne) {
  EncoderOptions wanted = options();
  wanted.pooler = false;  // the loss does not read it
  Encoder model = EncoderCase::model(wanted);
  const auto all = gradients(model, padded_input(), some_targets());
  for (const Declared& one : declared_parameters(*model)) {
    if (one.role == Role::kInert) {
      EXPECT_FALSE(all.contains(one.name)) << one.name;
    } else {
      ASSERT_TRUE(all.contains(one.name)) << one.name;
      EXPECT_GT(all.at(one.name).abs().max().item<double>(), 0) << one.name;
    }
  }
}

TEST_P(EncoderCase, RecomputingGivesTheSameGradientsWithDropout) {
  EncoderOptions wanted = options();
  wanted.dropout = 0.3;
  wanted.attention.attention_dropout = 0.2;
  Encoder model = EncoderCase::model(wanted);
  model->train();
  model->clock() = {.seed = 5, .tick = 7};
  const auto kept = gradients(model, padded_input(), some_targets());
  model->set_recompute(true);
  const auto again = gradients(model, padded_input(), some_targets());
  ASSERT_EQ(again.size(), kept.size());
  for (const auto& [name, gradient] : kept) EXPECT_TRUE(at::equal(again.at(name), gradient)) << name;
  model->clock().tick = 8;
  EXPECT_GT(
      distance(gradients(model, padded_input(), some_targets()).at("token_embedding"), kept.at("token_embedding")), 0);
}

TEST_P(EncoderCase, Bf16IsCloseToFp32) {
  Encoder model = EncoderCase::model();
  const double exact = model->loss(padded_input(), some_targets()).sum.item<double>();
  const ComputeIn bf16(Precision::kBf16, at::kCPU);
  const Tensor rounded = model->loss(padded_input(), some_targets()).sum;
  EXPECT_NE(rounded.item<double>(), exact);
  EXPECT_NEAR(rounded.item<double>(), exact, 0.02 * exact);
  rounded.backward();
  for (const Declared& one : declared_parameters(*model)) {
    if (!one.tensor.grad().defined()) continue;
    EXPECT_EQ(one.tensor.grad().scalar_type(), at::kFloat) << one.name;
  }
}

TEST(Encoder, SchemesShareTheInitialValuesOfWhatTheyShare) {
  std::map<std::string, std::map<std::vector<int64_t>, Tensor>> seen;
  int shared = 0;
  for (const SchemeKind scheme : all_schemes()) {
    const Encoder model = small_encoder(small_encoder_options(scheme), /*seed=*/9);
    for (const Declared& one : declared_parameters(*model)) {
      const auto [at, fresh] = seen[one.name].emplace(one.tensor.sizes().vec(), one.tensor);
      EXPECT_TRUE(at::equal(at->second, one.tensor)) << scheme_name(scheme) << ": " << one.name;
      shared += fresh ? 0 : 1;
    }
  }
  EXPECT_GT(shared, 200);
}

// BERT: every matrix from N(0, 0.02^2), whatever reads it; biases 0, norms 1.
TEST(Encoder, StartsAsBertDoes) {
  EncoderOptions options = small_encoder_options(SchemeKind::kMha);
  options.attention.d_model = 64;
  const Encoder model = small_encoder(options);
  for (const Declared& one : declared_parameters(*model)) {
    if (one.tensor.dim() == 2) {
      EXPECT_NEAR(one.tensor.std().item<double>(), 0.02, 0.004) << one.name;
    } else {
      const bool ones = one.name.find("norm") != std::string::npos && one.name.ends_with("weight");
      EXPECT_TRUE(one.tensor.eq(ones ? 1 : 0).all().item<bool>()) << one.name;
    }
  }
}

TEST(Encoder, TheLossIsThatOfItsPlacesAlone) {
  const at::NoGradGuard no_grad;
  const Encoder model = small_encoder(small_encoder_options(SchemeKind::kMheAdd));
  randomise(*model);
  const EncoderInput input = padded_input();
  const Tensor targets = some_targets();
  const SummedLoss loss = model->loss(input, targets);
  EXPECT_EQ(loss.tokens, 5);
  const Tensor each = model->token_losses(input, targets);
  EXPECT_TRUE(close(loss.sum, each.sum(), 1e-5));
  const Tensor logs = at::log_softmax(model->logits(model->hidden(input)), -1);
  EXPECT_NEAR(each[1][5].item<double>(), -logs[1][5][6].item<double>(), 1e-5);
  EXPECT_EQ(each[0][0].item<double>(), 0);
  EXPECT_EQ(model->loss(input, at::full_like(targets, kIgnoredTarget)).tokens, 0);
}

TEST(Encoder, SegmentsAreZeroUnlessTold) {
  const at::NoGradGuard no_grad;
  const Encoder model = small_encoder(small_encoder_options(SchemeKind::kMha));
  randomise(*model);
  const Tensor ids = random_ids(2, 5, 13);
  const Tensor zeros = at::zeros_like(ids);
  EXPECT_TRUE(at::equal(model->hidden({.ids = ids}), model->hidden({.ids = ids, .segments = zeros})));
  EXPECT_GT(distance(model->hidden({.ids = ids}), model->hidden({.ids = ids, .segments = zeros + 1})), 1e-3);
}

TEST(Encoder, RefusesWhatItDoesNotHave) {
  EncoderOptions options = small_encoder_options(SchemeKind::kMha);
  options.segments = 0;
  options.pooler = options.masked_head = false;
  const Encoder model = small_encoder(options);
  const Tensor ids = random_ids(1, 4, 13);
  EXPECT_THAT(error_message([&] { model->hidden({.ids = ids, .segments = ids}); }), HasSubstr("--segments is 0"));
  EXPECT_THAT(error_message([&] { model->pooled(at::zeros({1, 4, 16})); }), HasSubstr("no pooler"));
  EXPECT_THAT(error_message([&] { model->logits(at::zeros({1, 4, 16})); }), HasSubstr("no masked-LM head"));
  EXPECT_THAT(error_message([&] { model->hidden({.ids = ids, .visible = ids}); }), HasSubstr("a truth value"));
  EXPECT_THAT(error_message([&] { model->hidden({.ids = random_ids(1, 11, 13)}); }),
              HasSubstr("longer than the model's context of 10"));
}

}  // namespace
}  // namespace headshare
