#include "headshare/tasks/masked/masked_language_model.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/optim/adam.h>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/ops/testing.h"
#include "headshare/tasks/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kSeed = 9;

LanguageModelOptions small_masked(const std::string& scheme = "mha") {
  LanguageModelOptions options = small_language(scheme);
  options.model = EncoderOptions();  // BERT's form, whose positions every scheme takes
  options.model.context = 16;
  options.model.layers = 1;
  options.model.attention.scheme = scheme;
  options.model.attention.d_model = 16;
  options.model.attention.heads = 2;
  return options;
}

// Makes words of small_wordpiece(), cut as --validation-fraction 0.2 --test-fraction 0.1 would.
LanguageData masked_data(int words = 800) {
  LanguageData data{.tokenizer = small_wordpiece(), .splits = {}};
  std::string text;
  constexpr const char* kWords[] = {"a ", "fox ", "foxes ", "dogs ", "the ", "the ", "the ", "foxing "};
  for (int i = 0; i < words; ++i) text += kWords[(i * i % 8) ^ (i % 3)];
  const std::vector<int32_t> tokens = data.tokenizer->encode(text);
  data.splits = split_tokens(TokenData::from_memory(tokens, text.size()), 0.2, 0.1, *data.tokenizer);
  return data;
}

// Makes a text of nothing but [UNK], which is never masked.
TokenData unknown_words() { return TokenData::from_memory({1, 1, 1, 1}, 8); }

MaskedLanguageModelTask small_task(const std::string& scheme = "mha", uint64_t seed = kSeed,
                                   const MaskedOptions& masked = {}) {
  return {small_masked(scheme), masked, masked_data(), seed, at::kCPU};
}

// The gradient of a token's embedding says which tokens a batch holds and which it asks for.
TEST(MaskedLanguageModelTask, SchemesAreAskedTheSame) {
  MaskedLanguageModelTask mha = small_task();
  const int64_t targets = mha.draw(2);
  EXPECT_EQ(targets, 2 * 3 * 2);  // 15 of 100 of 14 tokens
  for (const std::string& scheme : scheme_names()) {
    MaskedLanguageModelTask other = small_task(scheme);
    EXPECT_EQ(other.draw(2), targets);
    EXPECT_EQ(other.evaluate(Part::kValidation, {}).targets, mha.evaluate(Part::kValidation, {}).targets);
    // The loss of an untrained model is nearly ln V per target, whatever its scheme.
    EXPECT_NEAR(other.loss_sum(0).item<double>() / 6, std::log(11), 0.2) << scheme;
  }
}

TEST(MaskedLanguageModelTask, MasksAreDrawnAnewAndFollowFromSeedAndBatch) {
  const auto losses = [](uint64_t seed) {
    MaskedLanguageModelTask task = small_task("mha", seed);
    std::vector<double> found;
    for (int step = 0; step < 3; ++step) {
      task.draw(1);
      found.push_back(task.loss_sum(0).item<double>());
    }
    return found;
  };
  EXPECT_EQ(losses(1), losses(1));
  EXPECT_NE(losses(1), losses(2));

  // The same text, shown twice, is asked for other tokens.
  LanguageModelOptions options = small_masked();
  options.batch_order = BatchOrder::kSequential;
  LanguageData data = masked_data();
  data.splits.train = data.splits.train.view(0, 3 * 14 + 1, *data.tokenizer);
  MaskedLanguageModelTask task(options, {}, data, kSeed, at::kCPU);
  task.draw(2);
  EXPECT_NE(task.loss_sum(0).item<double>(), task.loss_sum(1).item<double>());
}

TEST(MaskedLanguageModelTask, GoesOnFromItsPlaceInTheData) {
  MaskedLanguageModelTask task = small_task();
  task.draw(3);
  const nlohmann::json place = task.state();
  task.draw(1);
  const double expected = task.loss_sum(0).item<double>();
  MaskedLanguageModelTask again = small_task();
  again.restore(place, "here");
  again.draw(1);
  EXPECT_EQ(again.loss_sum(0).item<double>(), expected);
  EXPECT_THAT(error_message([&] { again.restore({{"batches", 3}}, "here"); }), HasSubstr("here"));
}

TEST(MaskedLanguageModelTask, EvaluatesEachPartWithMasksThatStay) {
  MaskedLanguageModelTask task = small_task();
  const Evaluation validation = task.evaluate(Part::kValidation, {});
  ASSERT_EQ(validation.scores.size(), 1u);
  EXPECT_EQ(validation.scores[0].name, "masked-perplexity");
  EXPECT_NEAR(validation.scores[0].value, std::exp(validation.loss), 1e-9);
  EXPECT_THAT(validation.scores[0].signature,
              AllOf(testing::StartsWith("masked-perplexity|objective:masked"), HasSubstr("rate:0.15")));
  EXPECT_NEAR(validation.loss, std::log(11), 0.2);
  EXPECT_EQ(task.evaluate(Part::kValidation, {}).loss, validation.loss);
  EXPECT_EQ(small_task("mha", kSeed).evaluate(Part::kValidation, {}).loss, validation.loss);
  const int64_t windows = (task.data().splits.validation.size() + 13) / 14;
  EXPECT_EQ(static_cast<int64_t>(validation.blocks.size()), windows);
  const Evaluation test = task.evaluate(Part::kTest, {});
  ASSERT_EQ(test.scores.size(), 2u);
  EXPECT_EQ(test.scores[1].name, "pseudo-perplexity");
  EXPECT_NEAR(test.scores[1].value, 11, 2);
  EXPECT_THAT(test.scores[1].signature,
              AllOf(HasSubstr("objective:pseudo"), HasSubstr("wordpiece"), HasSubstr("context:16")));
}

// The pseudo-likelihood is compared with one forward pass for each token.
TEST(MaskedLanguageModelTask, ThePseudoLikelihoodMasksEveryTokenInTurn) {
  MaskedLanguageModelTask task = small_task();
  const LanguageData& data = task.data();
  const TokenData& tokens = data.splits.test;
  const Masker masker(*data.tokenizer, {});
  const MaskedSetup setup{.context = 16, .batch_size = 5};
  // The tokens make a window of 14 and one of 6.
  const std::optional<LanguageSums> found = pseudo_likelihood(task.encoder(), tokens, 20, masker, setup);
  const at::NoGradGuard no_grad;
  double nats = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const int64_t begin = i < 14 ? 0 : 14;
    const int64_t end = i < 14 ? 14 : 20;
    std::vector<int64_t> ids = {2};
    for (int64_t k = begin; k < end; ++k) ids.push_back(k == i ? 4 : tokens[k]);
    ids.push_back(3);
    const Tensor hidden = task.encoder()->hidden({.ids = at::tensor(ids, at::kLong).unsqueeze(0)});
    const Tensor logs = at::log_softmax(task.encoder()->logits(hidden[0][i - begin + 1]), -1);
    nats -= logs[tokens[i]].item<double>();
  }
  ASSERT_TRUE(found);
  EXPECT_EQ(found->tokens, 20);
  EXPECT_NEAR(found->nats, nats, 1e-4);
  EXPECT_EQ(pseudo_likelihood(task.encoder(), tokens, 1 << 20, masker, setup)->tokens, tokens.size());
  EXPECT_FALSE(pseudo_likelihood(task.encoder(), tokens, 0, masker, setup));
  EXPECT_FALSE(pseudo_likelihood(task.encoder(), unknown_words(), 5, masker, setup));
}

TEST(MaskedLanguageModelTask, LearnsMoreThanFrequencies) {
  MaskedOptions masked;
  LanguageModelOptions options = small_masked();
  options.batch_size = 8;
  LanguageData data = masked_data();
  // In "a a .. a fox fox .. fox dogs ..", a token is what stands around it.
  std::vector<int32_t> tokens;
  for (int i = 0; i < 3000; ++i) tokens.push_back(5 + i / 60 % 4);
  data.splits = split_tokens(TokenData::from_memory(tokens, 4000), 0.2, 0.1, *data.tokenizer);
  MaskedLanguageModelTask task(options, masked, data, kSeed, at::kCPU);
  EXPECT_NEAR(*task.unigram_entropy(), std::log(4), 2e-3);
  torch::optim::Adam adam(task.model()->parameters(), torch::optim::AdamOptions(0.01));
  for (int step = 0; step < 150; ++step) {
    adam.zero_grad();
    const auto targets = static_cast<double>(task.draw(1));
    (task.loss_sum(0) / targets).backward();
    adam.step();
  }
  EXPECT_LT(task.evaluate(Part::kValidation, {}).loss, 0.5 * std::log(4));
}

TEST(MaskedLanguageModelTask, SavesAnEncoderThatStandsAlone) {
  const TemporaryDirectory home;
  MaskedLanguageModelTask task = small_task("mhe_mul");
  task.save(home / "model");
  const LoadedEncoder loaded = load_encoder_model(home / "model");
  EXPECT_EQ(loaded.tokenizer->kind(), "wordpiece");
  for (const auto& [name, tensor] : model_tensors(*task.model())) {
    EXPECT_TRUE(at::equal(tensor, model_tensors(*loaded.model).at(name))) << name;
  }
}

TEST(MaskedLanguageModelTask, RefusesBeforeTraining) {
  const auto refusal = [](const LanguageModelOptions& options, LanguageData data, const MaskedOptions& masked = {}) {
    return error_message([&] { MaskedLanguageModelTask(options, masked, std::move(data), kSeed, at::kCPU); });
  };
  LanguageModelOptions options = small_masked();
  EXPECT_EQ(refusal(options, masked_data()), "no error");
  options.model.context = 5000;
  EXPECT_THAT(refusal(options, masked_data()), AllOf(HasSubstr("--context 5000"), HasSubstr("4998")));
  options = small_masked();
  options.model.context = 2;
  EXPECT_THAT(refusal(options, masked_data()), HasSubstr("no room for text"));
  EXPECT_THAT(refusal(small_masked(), small_data()), HasSubstr("--tokenizer wordpiece"));
  options = small_masked();
  options.model.attention.d_model = 1 << 20;
  EXPECT_THAT(refusal(options, masked_data()), HasSubstr("training this model needs about"));
  // Parts that cannot be masked are refused now rather than after a tenth of the training.
  const std::string unmaskable = " text holds no token that could be asked for";
  LanguageData data = masked_data();
  data.splits.validation = unknown_words();
  EXPECT_THAT(refusal(small_masked(), data), HasSubstr("the validation" + unmaskable));
  data = masked_data();
  data.splits.test = unknown_words();
  EXPECT_THAT(refusal(small_masked(), data), HasSubstr("the test" + unmaskable));
  data.splits.test = {};
  EXPECT_EQ(refusal(small_masked(), data), "no error");
}

}  // namespace
}  // namespace headshare
