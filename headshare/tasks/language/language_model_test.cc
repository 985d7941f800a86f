#include "headshare/tasks/language/language_model.h"

#include <gmock/gmock.h>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/memory.h"
#include "headshare/base/notice.h"
#include "headshare/base/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/ops/allocation_meter.h"
#include "headshare/tasks/testing.h"
#include "headshare/text/tokenizer_file.h"
#include "headshare/train/trainer.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kSeed = 9;

TEST(LanguageModelTaskTest, SchemesSeeTheSameBatches) {
  // Every task computes its losses on what a batcher of these options hands out.
  for (const std::string scheme : {"mha", "mhe_mul", "skv"}) {
    const LanguageModelOptions options = small_language(scheme);
    LanguageModelTask task(options, small_data(), kSeed, at::kCPU);
    Batcher batcher(small_data().splits.train, {.batch_size = options.batch_size, .context = 8, .seed = kSeed});
    for (int step = 0; step < 2; ++step) {
      ASSERT_EQ(task.draw(2), 2 * 3 * 8);
      for (int64_t i = 0; i < 2; ++i) {
        const Batch batch = batcher.next();
        const Tensor expected =
            task.decoder()
                ->loss(to_tensor(batch.inputs, batch, at::kCPU), to_tensor(batch.targets, batch, at::kCPU))
                .sum;
        EXPECT_EQ(task.loss_sum(i).item<double>(), expected.item<double>());
      }
    }
  }
}

TEST(LanguageModelTaskTest, SchemesBeginWithTheSameValuesForWhatTheyShare) {
  LanguageModelTask mha(small_language(), small_data(), kSeed, at::kCPU);
  const NamedTensors reference = model_tensors(*mha.model());
  for (const std::string& scheme : scheme_names()) {
    LanguageModelTask other(small_language(scheme), small_data(), kSeed, at::kCPU);
    size_t shared = 0;
    for (const auto& [path, tensor] : model_tensors(*other.model())) {
      const auto found = reference.find(path);
      if (found == reference.end() || found->second.sizes() != tensor.sizes()) continue;
      EXPECT_TRUE(at::equal(tensor, found->second)) << scheme << " " << path;
      ++shared;
    }
    EXPECT_GE(shared, 10u) << scheme;  // embeddings, norms, the feed-forward part
  }
  LanguageModelTask other_seed(small_language(), small_data(), kSeed + 1, at::kCPU);
  EXPECT_FALSE(at::equal(model_tensors(*other_seed.model()).at("token_embedding"), reference.at("token_embedding")));
}

TEST(LanguageModelTaskTest, EvaluatesEachPart) {
  LanguageModelTask task(small_language(), small_data(), kSeed, at::kCPU);
  EXPECT_TRUE(task.has(Part::kValidation));
  EXPECT_TRUE(task.has(Part::kTest));
  const Evaluation validation = task.evaluate(Part::kValidation, {});
  EXPECT_EQ(validation.targets, 199);
  EXPECT_EQ(task.evaluate(Part::kTest, {}).targets, 99);
  ASSERT_EQ(validation.scores.size(), 2u);
  EXPECT_EQ(validation.scores[0].name, "perplexity");
  EXPECT_NEAR(validation.scores[0].value, std::exp(validation.loss), 1e-9);
  EXPECT_THAT(validation.scores[0].signature, AllOf(HasSubstr("context:8"), HasSubstr("stride:8"), HasSubstr("bytes")));
  EXPECT_NEAR(validation.scores[1].value, validation.loss / std::log(2), 1e-9);
  EXPECT_EQ(validation.blocks.size(), 25u);  // windows of 8 over 199 targets
}

TEST(LanguageModelTaskTest, EvaluatesOverAStrideAndTheFirstTokens) {
  LanguageModelOptions options = small_language();
  options.stride = 3;
  options.evaluation_tokens = 50;
  LanguageModelTask task(options, small_data(), kSeed, at::kCPU);
  const Evaluation validation = task.evaluate(Part::kValidation, {});
  EXPECT_EQ(validation.targets, 49);
  EXPECT_EQ(validation.blocks.size(), 1u + (49 - 8 + 2) / 3);
  EXPECT_THAT(validation.scores[0].signature, HasSubstr("stride:3"));
}

TEST(LanguageModelTaskTest, GoesOnFromItsPlaceInTheData) {
  LanguageModelTask task(small_language(), small_data(), kSeed, at::kCPU);
  task.draw(3);
  const nlohmann::json place = task.state();
  task.draw(1);
  const double expected = task.loss_sum(0).item<double>();
  LanguageModelTask again(small_language(), small_data(), kSeed, at::kCPU);
  again.restore(place, "here");
  EXPECT_DOUBLE_EQ(again.epochs(), 3 * 3 * 8 / 700.0);
  again.draw(1);
  EXPECT_EQ(again.loss_sum(0).item<double>(), expected);
  EXPECT_THAT(error_message([&] { again.restore(nlohmann::json(), "here"); }), HasSubstr("here"));
  EXPECT_THAT(error_message([&] { again.restore({{"batches", 3}}, "here"); }), HasSubstr("here"));
  LanguageModelTask other_text(small_language(), small_data(1001), kSeed, at::kCPU);
  EXPECT_THAT(error_message([&] { other_text.restore(place, "here"); }), HasSubstr("other text"));
}

// The best so far is a loss of one validation part, and means nothing on another.
TEST(LanguageModelTaskTest, GoesOnWithTheSamePartsOnly) {
  const TemporaryDirectory home;
  RunDirectory run(home.path());
  const TrainOptions training{.steps = 2, .evaluate_every = 1, .save_every = 1, .keep_last = 2};
  LanguageModelTask task(small_language(), small_data(), kSeed, at::kCPU);
  Trainer(task, training, run, {}).run();
  // A checkpoint of a program that noted no parts passes; it is not taken in place of one that does not fit.
  const fs::path first = run.step_checkpoints().front() / "training.json";
  nlohmann::json state = nlohmann::json::parse(read_file(first));
  ASSERT_EQ(state["task"].erase("judged"), 1u);
  write_file(first, state.dump());
  const auto refusal = [&](const std::function<void(LanguageData*)>& change) {
    LanguageData data = small_data();
    change(&data);
    LanguageModelTask again(small_language(), data, kSeed, at::kCPU);
    return error_message([&] { Trainer(again, training, run, {}).resume(); });
  };
  EXPECT_EQ(refusal([](LanguageData*) {}), "no error");
  EXPECT_THAT(refusal([](LanguageData* data) { data->splits.validation = byte_tokens("Another text to judge by."); }),
              AllOf(HasSubstr("cannot go on with another validation part"), HasSubstr("training.json")));
  EXPECT_THAT(refusal([](LanguageData* data) { data->splits.test = {}; }), HasSubstr("another test part"));
  fs::remove_all(run.step_checkpoints().back());
  fs::remove(run.checkpoints() / "last");
  std::string noted;
  const NoticeHandler before = set_notice_handler([&](const std::string& one) { noted += one; });
  EXPECT_EQ(refusal([](LanguageData* data) { data->splits.test = {}; }), "no error");
  set_notice_handler(before);
  EXPECT_THAT(noted, HasSubstr("does not say which validation and test data the run has"));
}

TEST(LanguageModelTaskTest, SavesAModelThatStandsAlone) {
  const TemporaryDirectory home;
  LanguageModelTask task(small_language(), small_data(), kSeed, at::kCPU);
  task.save(home / "model");
  const LoadedModel loaded = load_model(home / "model");
  EXPECT_EQ(loaded.tokenizer->kind(), "bytes");
  for (const auto& [name, tensor] : model_tensors(*task.model())) {
    EXPECT_TRUE(at::equal(tensor, model_tensors(*loaded.model).at(name))) << name;
  }
}

TEST(LanguageModelTaskTest, RefusesBeforeTraining) {
  const auto refusal = [](const LanguageModelOptions& options, LanguageData data, TrainingShape shape = {}) {
    return error_message([&] { const LanguageModelTask task(options, std::move(data), kSeed, at::kCPU, shape); });
  };
  LanguageModelOptions options = small_language();
  EXPECT_EQ(refusal(options, small_data()), "no error");
  options.model.context = 700;
  EXPECT_THAT(refusal(options, small_data()), AllOf(HasSubstr("training text"), HasSubstr("700"), HasSubstr("701")));
  options = small_language();
  options.stride = 9;
  EXPECT_THAT(refusal(options, small_data()), AllOf(HasSubstr("stride"), HasSubstr("8"), HasSubstr("9")));
  LanguageData one_token = small_data();
  one_token.splits.test = one_token.splits.test.view(0, 1, *one_token.tokenizer);
  EXPECT_THAT(refusal(small_language(), one_token), AllOf(HasSubstr("test text"), HasSubstr("--test-fraction")));
  options = small_language();
  options.model.layers = 1000;
  options.model.attention.d_model = 65536;
  EXPECT_THAT(refusal(options, small_data()), AllOf(HasSubstr("needs about"), HasSubstr("are available")));
  options = small_language();
  options.model.attention.heads = 3;
  EXPECT_THAT(refusal(options, small_data()), AllOf(HasSubstr("3"), HasSubstr("16")));
}

// Activations alone would not fit; recomputed blocks would.
TEST(LanguageModelTaskTest, RecomputingCountsWhenMemoryIsChecked) {
  LanguageModelOptions options = small_language();
  options.model.attention.d_model = 64;
  options.model.context = 64;
  options.model.layers = 20;
  DecoderOptions model = options.model;
  model.vocabulary = 256;
  model = resolve(model);
  // The batch lies between what fits with recomputing and what fits without.
  const auto needed = [&](int64_t batch, bool recompute) {
    return training_bytes(model, {.batch = batch, .length = 64, .recompute = recompute});
  };
  const double available = available_memory_bytes();
  while (needed(options.batch_size, false) < 1.5 * available) options.batch_size *= 2;
  if (needed(options.batch_size, true) > available / 2) GTEST_SKIP() << "too little memory to tell";
  const auto refusal = [&](bool recompute) {
    return error_message(
        [&] { const LanguageModelTask task(options, small_data(), kSeed, at::kCPU, {.recompute = recompute}); });
  };
  EXPECT_THAT(refusal(false), HasSubstr("--activation-checkpointing"));
  EXPECT_EQ(refusal(true), "no error");
}

// A whole part at once would take far more than the training of one short sequence.
TEST(LanguageModelTaskTest, AnEvaluationTakesNoMoreMemoryThanWasAskedFor) {
  LanguageModelOptions options = small_language("collaborative");
  options.model.attention.key_width = 1 << 16;
  LanguageModelTask task(options, small_data(), kSeed, at::kCPU);
  const double parameters = 4.0 * static_cast<double>(measure(task.decoder()->options()).total_parameters);
  const double promised =
      training_bytes(task.decoder()->options(), {.batch = options.batch_size, .length = options.model.context});
  const AllocationMeter meter;
  task.evaluate(Part::kValidation, {});
  EXPECT_LT(static_cast<double>(meter.peak()), promised - 4 * parameters);
}

TEST(LanguageModelTaskTest, PartsThatAreNotThere) {
  LanguageData data = small_data();
  data.splits.test = {};
  LanguageModelTask task(small_language(), data, kSeed, at::kCPU);
  EXPECT_FALSE(task.has(Part::kTest));
  EXPECT_THAT(error_message([&] { task.evaluate(Part::kTest, {}); }), HasSubstr("--test-fraction"));
}

class OpenLanguageDataTest : public testing::Test {
 protected:
  void SetUp() override {
    write_file(home_ / "text.txt", text_);
    options_.data.text = {(home_ / "text.txt").string()};
    options_.data.cache_directory = home_ / "cache";
    options_.data.test_fraction = 0.1;
  }

  const std::string text_ = sentences(3000);
  TemporaryDirectory home_;
  LanguageModelOptions options_;
};

TEST_F(OpenLanguageDataTest, TrainsEachKindOfTokenizer) {
  for (const auto& [kind, name] :
       {std::pair(TokenizerKind::kBytes, "bytes"), std::pair(TokenizerKind::kCharacters, "characters"),
        std::pair(TokenizerKind::kWords, "words"), std::pair(TokenizerKind::kBpe, "bpe")}) {
    options_.tokenizer.kind = kind;
    options_.tokenizer.vocabulary_size = kind == TokenizerKind::kBpe ? std::optional<int64_t>(280) : std::nullopt;
    const LanguageData data = open_language_data(options_);
    EXPECT_EQ(data.tokenizer->kind(), name);
    const TextSplits& splits = data.splits;
    const int64_t all = splits.train.size() + splits.validation.size() + splits.test.size();
    EXPECT_EQ(splits.train.size(), static_cast<int64_t>(static_cast<double>(all) * (1 - 0.1 - 0.1))) << name;
    std::vector<int32_t> ids(static_cast<size_t>(splits.train.size()));
    splits.train.copy(0, splits.train.size(), ids.data());
    for (const int32_t id : ids) ASSERT_LT(id, data.tokenizer->vocabulary_size());
    if (!data.tokenizer->lossless()) continue;
    EXPECT_EQ(data.tokenizer->decode(ids), text_.substr(0, data.tokenizer->decode(ids).size())) << name;
    EXPECT_EQ(likely_vocabulary(options_) >= data.tokenizer->vocabulary_size(), true) << name;
  }
}

TEST_F(OpenLanguageDataTest, TheTokenizerKnowsTheHeldOutPartToo) {
  write_file(home_ / "text.txt", text_ + "\xE2\x82\xAC");  // a character that is only at the end
  options_.tokenizer.kind = TokenizerKind::kCharacters;
  const LanguageData data = open_language_data(options_);
  EXPECT_EQ(data.tokenizer->decode(std::vector<int32_t>{data.splits.test[data.splits.test.size() - 1]}),
            "\xE2\x82\xAC");
}

TEST_F(OpenLanguageDataTest, LoadsATokenizer) {
  options_.tokenizer.kind = TokenizerKind::kCharacters;
  const LanguageData trained = open_language_data(options_);
  save_tokenizer(*trained.tokenizer, home_ / "tokenizer.json");
  LanguageModelOptions loading = options_;
  loading.tokenizer = {};
  loading.tokenizer_path = (home_ / "tokenizer.json").string();
  const LanguageData loaded = open_language_data(loading);
  EXPECT_EQ(loaded.tokenizer->kind(), "characters");
  EXPECT_EQ(loaded.splits.train.fingerprint(), trained.splits.train.fingerprint());
}

TEST_F(OpenLanguageDataTest, TextThatCannotBeReadIsNamed) {
  for (const TokenizerKind kind :
       {TokenizerKind::kBytes, TokenizerKind::kCharacters, TokenizerKind::kWords, TokenizerKind::kBpe}) {
    options_.tokenizer.kind = kind;
    write_file(home_ / "text.txt", "");
    EXPECT_THAT(error_message([&] { open_language_data(options_); }), AllOf(HasSubstr("text.txt"), HasSubstr("empty")));
    write_file(home_ / "text.txt", std::string("a\0b", 3));
    const std::string binary = error_message([&] { open_language_data(options_); });
    write_file(home_ / "text.txt", "caf\xE9 au lait");
    const std::string text = error_message([&] { open_language_data(options_); });
    if (kind == TokenizerKind::kBytes) {  // any bytes are text for it
      EXPECT_EQ(binary, "no error");
      EXPECT_EQ(text, "no error");
    } else {
      EXPECT_THAT(binary, AllOf(HasSubstr("text.txt"), HasSubstr("NUL")));
      EXPECT_THAT(text, AllOf(HasSubstr("text.txt"), HasSubstr("not UTF-8"), HasSubstr("--invalid-utf8")));
    }
  }
  options_.data.text = {};
  EXPECT_THAT(error_message([&] { open_language_data(options_); }), HasSubstr("--text"));
}

// One batch of 36 windows and three of 12 give the same weights; so do the gradients of the step.
TEST(LanguageModelTaskTest, MicroBatchesEqualOneBatch) {
  LanguageModelOptions options = small_language();
  options.batch_order = BatchOrder::kShuffled;
  TrainOptions train{.steps = 1, .max_gradient_norm = 0};
  train.schedule.learning_rate = 0.05;
  train.optimizer.epsilon = 1e-3;  // no rounding of a gradient near 0 becomes a step of full length
  const TemporaryDirectory home;
  options.batch_size = 36;
  LanguageModelTask whole(options, small_data(2000), kSeed, at::kCPU);
  RunDirectory first(home / "whole");
  Trainer(whole, train, first, {}).run();
  options.batch_size = 12;
  train.accumulation = 3;
  LanguageModelTask parts(options, small_data(2000), kSeed, at::kCPU);
  RunDirectory second(home / "parts");
  Trainer(parts, train, second, {}).run();
  const std::vector<Declared> left = declared_parameters(*whole.model()), right = declared_parameters(*parts.model());
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_LT((left[i].tensor - right[i].tensor).abs().max().item<double>(), 1e-6) << left[i].name;
    if (left[i].role == Role::kInert) continue;
    const Tensor gradient = left[i].tensor.grad();
    EXPECT_LT((gradient - right[i].tensor.grad()).abs().max().item<double>(), 1e-6) << left[i].name;
    EXPECT_GT(gradient.abs().max().item<double>(), 1e-5) << left[i].name;  // the comparison says something
  }
}

}  // namespace
}  // namespace headshare
