#include "headshare/models/encoder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <map>

#include "headshare/attention/schemes/mhe_options.h"
#include "headshare/base/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/size.h"
#include "headshare/models/testing.h"
#include "headshare/ops/precision.h"

namespace headshare {
namespace {

using testing::HasSubstr;

using Case = std::pair<std::string, NormPlacement>;

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const std::string& scheme : scheme_names()) {
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
  return info.param.first + (info.param.second == NormPlacement::kBefore ? "_pre" : "_post");
});

// Makes two rows of 9, the second padded after 6.
EncoderInput padded_input() {
  EncoderInput input{.ids = random_ids(2, 9, 13), .visible = at::ones({2, 9}, at::kBool)};
  input.visible.index_put_({at::tensor(1), at::arange(6, 9)}, false);
  input.segments = (at::arange(9) > 4).to(at::kLong).expand({2, 9});
  return input;
}

// Gives targets to about a third of the visible tokens.
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
  EXPECT_TRUE(same(model->pooled(input).slice(0, 1), model->pooled(alone)));
}

// If only some positions go through the last block's feed-forward sub-layer, values and gradients are the same.
TEST_P(EncoderCase, SomePlacesAreWhatAllWouldBe) {
  Encoder model = EncoderCase::model();
  model->to(at::kDouble);
  model->train();
  const EncoderInput input = padded_input();
  const Tensor places = at::tensor({14, 0, 3, 3}, at::kLong);
  const Tensor direction = random_tensor({4, 16}, 7, at::kDouble);
  const auto gradient_of = [&](const Tensor& rows) {
    model->zero_grad();
    (rows * direction).sum().backward();
    std::map<std::string, Tensor> all;
    for (const Declared& one : declared_parameters(*model)) {
      if (one.tensor.grad().defined()) all[one.name] = one.tensor.grad().clone();
    }
    return all;
  };
  const Tensor expected = model->hidden(input).flatten(0, 1).index_select(0, places);
  EXPECT_TRUE(same(model->hidden_at(input, places), expected));
  const auto wanted = gradient_of(expected);
  for (const bool recompute : {false, true}) {
    model->set_recompute(recompute);
    const auto found = gradient_of(model->hidden_at(input, places));
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [name, gradient] : wanted) EXPECT_LT(distance(found.at(name), gradient), 1e-10) << name;
  }
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
    if (tied) wanted.task_head = {.kind = TaskHeadKind::kWords, .outputs = 3};
    const Encoder model = small_encoder(wanted);
    expect_counted(model);
    EXPECT_EQ(measure(model->options()).cache_bytes_per_token, 0);
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
  expect_shared_starts([](const std::string& scheme) {
    EncoderOptions options = small_encoder_options(scheme);
    options.attention.own.get<MheOptions>().deviation =
        0.1;  // sums and factors start with the same values up to a factor
    return small_encoder(options, /*seed=*/9);
  });
}

// BERT draws every matrix from N(0, 0.02^2), whatever reads it; biases start at 0, norms at 1.
TEST(Encoder, StartsAsBertDoes) {
  EncoderOptions options = small_encoder_options("mha");
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
  const Encoder model = small_encoder(small_encoder_options("mhe_add"));
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
  const Encoder model = small_encoder(small_encoder_options("mha"));
  randomise(*model);
  const Tensor ids = random_ids(2, 5, 13);
  const Tensor zeros = at::zeros_like(ids);
  EXPECT_TRUE(at::equal(model->hidden({.ids = ids}), model->hidden({.ids = ids, .segments = zeros})));
  EXPECT_GT(distance(model->hidden({.ids = ids}), model->hidden({.ids = ids, .segments = zeros + 1})), 1e-3);
}

TEST(Encoder, TaskHeadsReadTheirTokens) {
  const at::NoGradGuard no_grad;
  const EncoderInput input{.ids = random_ids(2, 6, 13)};
  EncoderOptions options = small_encoder_options("mha");
  const auto made = [&](TaskHeadKind kind) {
    options.task_head = {.kind = kind, .outputs = 3, .labels = {"a", "b", "c"}};
    Encoder model = small_encoder(options);
    randomise(*model);
    return model;
  };
  const auto map = [](const Encoder& model, const Tensor& read) {
    const NamedTensors all = model_tensors(*model);
    return at::linear(read, all.at("task_head.output.weight"), all.at("task_head.output.bias"));
  };
  const Encoder text = made(TaskHeadKind::kText);
  EXPECT_TRUE(close(text->text_scores(input), map(text, text->pooled(input)), 1e-5));
  const Encoder token = made(TaskHeadKind::kToken);
  EXPECT_TRUE(close(token->token_scores(input), map(token, token->hidden(input)), 1e-5));
  const Encoder words = made(TaskHeadKind::kWords);
  Tensor weights = at::zeros({2, 2, 6});
  weights[0][0][2] = 1;
  weights[0][1].slice(0, 3, 5) = 0.5;
  weights[1][1][5] = 1;
  const Tensor all = words->hidden(input);
  const Tensor zero = at::zeros({16});
  const Tensor read = at::stack({at::cat({words->pooled(input)[0], all[0][2], (all[0][3] + all[0][4]) / 2}),
                                 at::cat({words->pooled(input)[1], zero, all[1][5]})});
  EXPECT_TRUE(close(words->word_scores(input, weights), map(words, read), 1e-5));
}

TEST(Encoder, RefusesWhatItDoesNotHave) {
  EncoderOptions options = small_encoder_options("mha");
  options.segments = 0;
  options.pooler = options.masked_head = false;
  const Encoder model = small_encoder(options);
  const Tensor ids = random_ids(1, 4, 13);
  EXPECT_THAT(error_message([&] { model->hidden({.ids = ids, .segments = ids}); }), HasSubstr("--segments is 0"));
  EXPECT_THAT(error_message([&] { model->pooled({.ids = ids}); }), HasSubstr("no pooler"));
  EXPECT_THAT(error_message([&] { model->text_scores({.ids = ids}); }), HasSubstr("headshare finetune"));
  EXPECT_THAT(error_message([&] { model->logits(at::zeros({1, 4, 16})); }), HasSubstr("no masked-LM head"));
  EXPECT_THAT(error_message([&] { model->hidden({.ids = ids, .visible = ids}); }), HasSubstr("a truth value"));
  EXPECT_THAT(error_message([&] { model->hidden({.ids = random_ids(1, 11, 13)}); }),
              HasSubstr("longer than the model's context of 10"));
}

}  // namespace
}  // namespace headshare
