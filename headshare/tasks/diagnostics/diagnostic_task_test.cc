#include "headshare/tasks/diagnostics/diagnostic_task.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/memory.h"
#include "headshare/base/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/tasks/diagnostics/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kSeed = 9;

// Returns options of 1 layer, width 16, 2 heads, with large initial values, so that answers depend on the sequence.
DiagnosticOptions small(DiagnosticKind kind = DiagnosticKind::kOffsets) {
  DiagnosticOptions options{.kind = kind,
                            .sequence_length = 12,
                            .alphabet = 6,
                            .offsets = {1, 4},
                            .pairs = 3,
                            .queries = 4,
                            .lookups = 2,
                            .order = 1,
                            .bracket_kinds = 2,
                            .bracket_depth = 3,
                            .validation_sequences = 20,
                            .test_sequences = 30,
                            .batch_size = 3};
  if (kind == DiagnosticKind::kKGram) options.alphabet = 3;
  options.model = {.layers = 1, .init_deviation = 0.5};
  options.model.attention = {.scheme = "mha", .d_model = 16, .heads = 2};
  return options;
}

int64_t outputs_of(DiagnosticKind kind) { return make_generator(small(kind))->outputs(); }

NamedTensors tensors(DiagnosticTask& task) { return model_tensors(*task.model()); }

// Makes output `o` answer `answers[o]` to everything, with a logit of `logit` against 0.
void answer_always(DiagnosticTask& task, const std::vector<int64_t>& answers, double logit) {
  const at::NoGradGuard no_grad;
  tensors(task).at("heads.weight").zero_();
  const Tensor bias = tensors(task).at("heads.bias").zero_().view({static_cast<int64_t>(answers.size()), -1});
  for (size_t o = 0; o < answers.size(); ++o) bias[static_cast<int64_t>(o)][answers[o]] = logit;
}

// Draws sequence `number` as the contract keys it.
Sequence keyed_sequence(const DiagnosticOptions& options, uint64_t seed, const std::string& part, uint64_t number) {
  const std::string name = "diagnostic " + diagnostic_name(options.kind) + " " + part;
  return draw_sequence(*make_generator(options), stream_key(stream_key(seed, name), number));
}

struct Scored {
  double nats = 0;
  int64_t right = 0;
  int64_t targets = 0;
};

// Scores one target at a time, in double from the hidden states on.
Scored score_by_hand(DiagnosticTask& task, const Sequence& sequence, int64_t outputs) {
  const at::NoGradGuard no_grad;
  const Tensor hidden = task.decoder()->hidden(at::tensor(sequence.inputs).unsqueeze(0))[0].to(at::kDouble);  // [T, E]
  const Tensor weight = tensors(task).at("heads.weight").to(at::kDouble);
  const Tensor bias = tensors(task).at("heads.bias").to(at::kDouble);
  const int64_t vocabulary = weight.size(0) / outputs;
  Scored scored;
  for (size_t i = 0; i < sequence.targets.size(); ++i) {
    const int64_t target = sequence.targets[i];
    if (target == kIgnoredTarget) continue;
    const auto output = static_cast<int64_t>(i / sequence.inputs.size());
    const auto place = static_cast<int64_t>(i % sequence.inputs.size());
    const int64_t first = output * vocabulary;
    const Tensor logits =
        at::mv(weight.slice(0, first, first + vocabulary), hidden[place]) + bias.slice(0, first, first + vocabulary);
    scored.nats -= at::log_softmax(logits, 0)[target].item<double>();
    scored.right += logits.argmax().item<int64_t>() == target ? 1 : 0;
    ++scored.targets;
  }
  return scored;
}

TEST(DiagnosticTaskTest, LossAndAccuracyEqualALoopOverTargets) {
  for (const auto& [kind, name] : diagnostic_names()) {
    const DiagnosticOptions options = small(kind);
    const int64_t outputs = outputs_of(kind);
    DiagnosticTask task(options, kSeed, at::kCPU);
    Scored first, second, test;
    const auto add = [&](Scored* sum, uint64_t seed, const std::string& part, uint64_t number) {
      const Scored one = score_by_hand(task, keyed_sequence(options, seed, part, number), outputs);
      *sum = {sum->nats + one.nats, sum->right + one.right, sum->targets + one.targets};
      return one;
    };
    for (uint64_t i = 0; i < 3; ++i) add(&first, kSeed, "training", i);
    for (uint64_t i = 3; i < 6; ++i) add(&second, kSeed, "training", i);
    EXPECT_EQ(task.draw(2), first.targets + second.targets) << name;
    // Logits are a few units in float32, and a loss sum has some dozens of terms: hence the tolerance.
    EXPECT_NEAR(task.loss_sum(0).item<double>(), first.nats, 1e-5 * first.nats) << name;
    EXPECT_NEAR(task.loss_sum(1).item<double>(), second.nats, 1e-5 * second.nats) << name;
    const Evaluation evaluation = task.evaluate(Part::kTest, {});
    ASSERT_EQ(evaluation.blocks.size(), 30u);
    for (uint64_t i = 0; i < 30; ++i) {
      const Scored one = add(&test, 0, "test", i);
      EXPECT_DOUBLE_EQ(evaluation.blocks[i], static_cast<double>(one.right) / static_cast<double>(one.targets));
    }
    EXPECT_EQ(evaluation.targets, test.targets);
    EXPECT_NEAR(evaluation.loss, test.nats / static_cast<double>(test.targets), 1e-5 * evaluation.loss);
    EXPECT_DOUBLE_EQ(evaluation.scores[0].value, static_cast<double>(test.right) / static_cast<double>(test.targets));
    EXPECT_GT(test.right, 0) << name;
  }
}

TEST(DiagnosticTaskTest, PerfectAndConstantAnswers) {
  DiagnosticOptions options = small(DiagnosticKind::kDyck);
  options.bracket_kinds = 1;  // a closing bracket is always token 1
  DiagnosticTask task(options, kSeed, at::kCPU);
  answer_always(task, {1}, 30);
  Evaluation evaluation = task.evaluate(Part::kValidation, {});
  EXPECT_EQ(evaluation.scores[0].value, 1);
  EXPECT_NEAR(evaluation.loss, 0, 1e-9);
  EXPECT_EQ(evaluation.targets, 20 * 6);
  answer_always(task, {0}, 1);
  evaluation = task.evaluate(Part::kValidation, {});
  EXPECT_EQ(evaluation.scores[0].value, 0);
  EXPECT_NEAR(evaluation.loss, std::log(1 + std::exp(1)), 1e-6);
}

TEST(DiagnosticTaskTest, GuessingReachesChance) {
  for (const auto& [kind, name] : diagnostic_names()) {
    DiagnosticOptions options = small(kind);
    options.test_sequences = 2000;
    DiagnosticTask task(options, kSeed, at::kCPU);
    const int64_t answer = kind == DiagnosticKind::kRecall ? 7 : kind == DiagnosticKind::kDyck ? 3 : 2;
    answer_always(task, outputs_of(kind) == 2 ? std::vector<int64_t>{answer, 0} : std::vector{answer}, 1);
    const Evaluation evaluation = task.evaluate(Part::kTest, {});
    // Answers within a sequence depend on each other: the tolerance is five deviations of a mean of 2000 numbers in [0,
    // 1].
    EXPECT_NEAR(evaluation.scores[0].value, task.chance(), 5 * 0.5 / std::sqrt(2000)) << name;
  }
}

TEST(DiagnosticTaskTest, HeldOutSequencesDoNotDependOnTheSeed) {
  const DiagnosticOptions options = small();
  DiagnosticTask one(options, kSeed, at::kCPU);
  DiagnosticTask other(options, kSeed + 1, at::kCPU);
  EXPECT_FALSE(at::equal(tensors(one).at("heads.weight"), tensors(other).at("heads.weight")));
  load_tensors(*other.model(), tensors(one), "copy");
  for (const Part part : {Part::kValidation, Part::kTest}) {
    EXPECT_EQ(one.evaluate(part, {}).loss, other.evaluate(part, {}).loss);
  }
  EXPECT_NE(one.evaluate(Part::kValidation, {}).loss, one.evaluate(Part::kTest, {}).loss);
  one.draw(1);
  other.draw(1);
  EXPECT_NE(one.loss_sum(0).item<double>(), other.loss_sum(0).item<double>());  // training ones do
}

TEST(DiagnosticTaskTest, SchemesSeeTheSameSequencesAndBeginWithTheSameValues) {
  DiagnosticTask mha(small(), kSeed, at::kCPU);
  mha.draw(1);
  answer_always(mha, {1, 2}, 1);
  const double expected = mha.loss_sum(0).item<double>();
  DiagnosticTask fresh(small(), kSeed, at::kCPU);
  for (const std::string& scheme : scheme_names()) {
    DiagnosticOptions options = small();
    options.model.attention.scheme = scheme;
    DiagnosticTask other(options, kSeed, at::kCPU);
    size_t shared = 0;
    const NamedTensors theirs = tensors(other);
    for (const auto& [path, tensor] : tensors(fresh)) {
      const auto found = theirs.find(path);
      if (found == theirs.end() || found->second.sizes() != tensor.sizes()) continue;
      EXPECT_TRUE(at::equal(tensor, found->second)) << scheme << " " << path;
      ++shared;
    }
    EXPECT_GE(shared, 12u) << scheme;  // embeddings, norms, the feed-forward part, the output heads
    other.draw(1);
    answer_always(other, {1, 2}, 1);
    EXPECT_EQ(other.loss_sum(0).item<double>(), expected) << scheme;
  }
}

TEST(DiagnosticTaskTest, EveryParameterGetsAGradient) {
  for (const std::string& scheme : scheme_names()) {
    DiagnosticOptions options = small();
    options.model.attention.scheme = scheme;
    DiagnosticTask task(options, kSeed, at::kCPU);
    task.draw(1);
    task.loss_sum(0).backward();
    for (const Declared& one : declared_parameters(*task.model())) {
      if (one.role == Role::kInert) continue;
      ASSERT_TRUE(one.tensor.grad().defined()) << scheme << " " << one.name;
      EXPECT_GT(one.tensor.grad().abs().max().item<double>(), 0) << scheme << " " << one.name;
    }
  }
}

TEST(DiagnosticTaskTest, SplittingBatchesChangesNothing) {
  DiagnosticOptions options = small();
  options.sequence_length = 40;
  options.validation_sequences = 300;
  DiagnosticTask small_batches(options, kSeed, at::kCPU);
  options.batch_size = 300;
  DiagnosticTask large_batches(options, kSeed, at::kCPU);
  EXPECT_EQ(small_batches.draw(100), large_batches.draw(1));
  double sum = 0;
  for (int64_t i = 0; i < 100; ++i) sum += small_batches.loss_sum(i).item<double>();
  EXPECT_NEAR(large_batches.loss_sum(0).item<double>(), sum, 1e-5 * sum);

  std::vector<int64_t> done;
  const Evaluation parts = small_batches.evaluate(Part::kValidation, [&](int64_t now, int64_t total) {
    done.push_back(now);
    EXPECT_EQ(total, 300);
  });
  const Evaluation whole = large_batches.evaluate(Part::kValidation, {});
  EXPECT_THAT(done, testing::ElementsAre(102, 204, 300));  // 4096 / 40 sequences at a time
  EXPECT_EQ(parts.blocks, whole.blocks);
  EXPECT_NEAR(parts.loss, whole.loss, 1e-6 * whole.loss);
  double mean = 0;
  for (const double block : whole.blocks) mean += block / 300;
  EXPECT_NEAR(mean, whole.scores[0].value, 1e-12);
}

TEST(DiagnosticTaskTest, EvaluationLeavesTheModelAsItWas) {
  DiagnosticOptions options = small();
  options.model.dropout = 0.5;
  DiagnosticTask task(options, kSeed, at::kCPU);
  task.model()->eval();
  const double judged = task.evaluate(Part::kTest, {}).loss;
  EXPECT_FALSE(task.model()->is_training());
  task.model()->train();
  EXPECT_EQ(task.evaluate(Part::kTest, {}).loss, judged);  // without dropout
  EXPECT_TRUE(task.model()->is_training());
  task.draw(1);
  const double loss = task.loss_sum(0).item<double>();
  task.clock().tick = 1;
  EXPECT_NE(task.loss_sum(0).item<double>(), loss);  // the clock reaches the decoder's dropout
}

TEST(DiagnosticTaskTest, ScoresSayWhatTheyMeasure) {
  DiagnosticTask task(small(), kSeed, at::kCPU);
  const Evaluation evaluation = task.evaluate(Part::kTest, {});
  ASSERT_EQ(evaluation.scores.size(), 1u);
  EXPECT_EQ(evaluation.scores[0].name, "accuracy");
  EXPECT_EQ(evaluation.scores[0].signature,
            "accuracy|task:offsets|alphabet:6|offsets:1,4|sequence-length:12|sequences:30");
}

TEST(DiagnosticTaskTest, GoesOnFromItsPlace) {
  DiagnosticTask task(small(), kSeed, at::kCPU);
  const double beginning = (task.draw(1), task.loss_sum(0).item<double>());
  task.draw(3);
  const nlohmann::json place = task.state();
  task.draw(1);
  const double expected = task.loss_sum(0).item<double>();
  EXPECT_NE(expected, beginning);
  for (const nlohmann::json& state : {place, nlohmann::json::parse(place.dump())}) {
    DiagnosticTask again(small(), kSeed, at::kCPU);
    again.restore(state, "here");
    again.draw(1);
    EXPECT_EQ(again.loss_sum(0).item<double>(), expected);
    EXPECT_EQ(again.state(), task.state());
  }
  for (const char* damaged : {"null", "[]", "{}", R"({"sequences": -1})", R"({"sequences": "3"})"}) {
    EXPECT_THAT(error_message([&] { task.restore(nlohmann::json::parse(damaged), "here"); }), HasSubstr("here: "));
  }
}

TEST(DiagnosticTaskTest, SavesWhatCanBeLoadedAgainButIsNoLanguageModel) {
  const TemporaryDirectory home;
  DiagnosticTask task(small(), kSeed, at::kCPU);
  task.save(home / "model");
  DiagnosticTask again(small(), kSeed + 1, at::kCPU);
  load_tensors(*again.model(), read_tensors(home / "model/model.safetensors"), "model");
  EXPECT_EQ(again.evaluate(Part::kTest, {}).loss, task.evaluate(Part::kTest, {}).loss);
  const auto config = nlohmann::json::parse(read_file(home / "model/config.json"));
  EXPECT_EQ(config.at("task"), "offsets");
  EXPECT_EQ(config.at("difficulty").at("offsets").dump(), "[1,4]");
  EXPECT_EQ(config.at("model").at("d-model"), 16);
  const auto refused =
      AllOf(HasSubstr("config.json"), HasSubstr("diagnostic task \"offsets\""), HasSubstr("headshare compare --task"));
  EXPECT_THAT(error_message([&] { load_model(home / "model"); }), refused);
  EXPECT_THAT(error_message([&] { read_options(home / "model"); }), refused);
}

TEST(DiagnosticTaskTest, RefusesBeforeTraining) {
  const auto refusal = [](const DiagnosticOptions& options) {
    return error_message([&] { const DiagnosticTask task(options, kSeed, at::kCPU); });
  };
  DiagnosticOptions options = small();
  options.offsets = {12};
  EXPECT_THAT(refusal(options), HasSubstr("12 places back in 12 tokens"));
  options = small();
  options.model.attention.heads = 3;
  EXPECT_THAT(refusal(options), AllOf(HasSubstr("3"), HasSubstr("16")));
  options = small();
  options.model.layers = 1000;
  options.model.attention.d_model = 65536;
  EXPECT_THAT(refusal(options), AllOf(HasSubstr("needs about"), HasSubstr("are available")));
  // This model fits into memory, but the logits of its two outputs do not.
  options = small();
  options.alphabet = 1 << 16;
  options.batch_size = 1;
  DecoderOptions model = decoder_options(options);
  while (training_bytes(model, {.batch = options.batch_size, .length = 12}) < 0.6 * available_memory_bytes()) {
    options.batch_size += options.batch_size / 8 + 1;
  }
  EXPECT_THAT(refusal(options), HasSubstr("--batch-size"));
}

}  // namespace
}  // namespace headshare
