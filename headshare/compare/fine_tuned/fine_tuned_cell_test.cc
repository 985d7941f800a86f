#include "headshare/compare/fine_tuned/fine_tuned_cell.h"

#include <gmock/gmock.h>

#include "headshare/attention/scheme_record.h"
#include "headshare/compare/cell_run.h"
#include "headshare/compare/fine_tuned/benchmark.h"
#include "headshare/compare/fine_tuned/encoders.h"
#include "headshare/compare/method.h"
#include "headshare/compare/testing.h"
#include "headshare/models/testing.h"
#include "headshare/report/results/results_cases.h"
#include "headshare/report/results/results_json.h"
#include "headshare/tasks/finetune/fine_tuning_options.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSeed = 7;

std::string encoder_directory(const std::string& scheme, int64_t seed) {
  return join_text("cells/", scheme, "-seed", seed, "/checkpoints/best");
}

// Writes a comparison of encoders below `home`, in which `schemes` are finished with every seed though untrained.
void write_encoders(const fs::path& home, const std::vector<std::string>& schemes,
                    const std::vector<int64_t>& seeds = {kSeed}) {
  Results results = loss_results({});
  results.subject.name = "masked-language-model";
  results.subject.measure = "masked-perplexity";
  const auto tokenizer = small_wordpiece();
  for (const std::string& scheme : schemes) {
    EncoderOptions options = small_encoder_options(scheme_record(scheme).name);
    options.vocabulary = tokenizer->vocabulary_size();
    options.context = 16;
    for (const int64_t seed : seeds) {
      Cell cell = loss_cell(scheme, seed, 3.0);
      cell.model = encoder_directory(scheme, seed);
      save_model(home / cell.model, small_encoder(options), tokenizer.get());
      results.planned.push_back(cell.key);
      results.cells.push_back(cell);
    }
  }
  write_file(home / "results.json", to_text(to_json(results)));
}

// Writes a table of texts with and without a fox and returns its path.
std::string fox_table(const fs::path& path, int rows) {
  std::string text = "text\tlabel\n";
  for (int i = 0; i < rows; ++i)
    text += std::string(i % 2 == 0 ? "a the dogs" : "a fox dogs") + "\t" + std::to_string(i % 2) + "\n";
  write_file(path, text);
  return path.string();
}

ComparisonOptions small_classification(const fs::path& home) {
  ComparisonOptions options = preset_options("classify", Preset::kQuick);
  options.schemes = {"mha", "sha"};
  options.seeds = 2;
  options.own<BenchmarkOptions>().encoders = (home / "encoders").string();
  options.own<BenchmarkOptions>().job.files.train = fox_table(home / "train.tsv", 12);
  options.own<BenchmarkOptions>().job.files.validation = fox_table(home / "dev.tsv", 6);
  options.own<BenchmarkOptions>().job.tuning.epochs = 2;
  options.own<BenchmarkOptions>().job.tuning.batch_size = 4;
  options.own<BenchmarkOptions>().tuning.learning_rates = {{1e-3, "1e-3"}, {1e-2, "1e-2"}};
  return options;
}

class FineTunedCellTest : public testing::Test {
 protected:
  FineTunedCellTest() { write_encoders(home_.path() / "encoders", {"mha", "sha"}); }

  TemporaryDirectory home_;
  Observer silent_;
};

TEST_F(FineTunedCellTest, IsTheBestOfItsLearningRates) {
  const ComparisonOptions options = small_classification(home_.path());
  const std::vector<CellPlan> plans = plan_variants(options, {scheme_variant("mha"), scheme_variant("sha")});
  ASSERT_EQ(plans.size(), 4u);
  EXPECT_EQ(plans[3].directory(), "sha-seed1");
  // The process of a cell reads its plan in this way.
  const CellPlan plan = plan_from_json(to_json(plans[2]), "plan");
  const Cell cell = run_fine_tuned_cell(plan, place_in(home_.path(), plan), at::kCPU, silent_, kNeverStop);
  EXPECT_EQ(cell.key, plans[2].key);
  ASSERT_EQ(cell.tasks.size(), 1u);
  EXPECT_EQ(cell.tasks[0].task, "classify");
  EXPECT_EQ(cell.tasks[0].examples, 6);
  EXPECT_DOUBLE_EQ(cell.quality, cell.tasks[0].score);
  EXPECT_EQ(cell.steps, 2 * 3);
  EXPECT_EQ(cell.tokens, 6 * 4);
  EXPECT_EQ(cell.curve.size(), 2u);
  EXPECT_EQ(cell.encoder_seed, kSeed);
  EXPECT_EQ(cell.size.cache_bytes_per_token, 0);
  double best = -1;
  for (const char* rate : {"lr-0.001", "lr-0.01"}) {
    const auto result = nlohmann::json::parse(read_file(home_.path() / cell.model / "classify" / rate / "result.json"));
    best = std::max(best, result["parts"][0]["goal"].get<double>());
  }
  EXPECT_DOUBLE_EQ(cell.quality, 100 * best);
  const std::optional<Cell> again = finished_cell(home_.path(), plans[2].key);
  ASSERT_TRUE(again);
  EXPECT_EQ(to_json(*again), to_json(cell));
  // A second run trains nothing and finds everything as it was except for the measured memory.
  Cell repeated = run_fine_tuned_cell(plan, place_in(home_.path(), plan), at::kCPU, silent_, [] { return false; });
  repeated.peak_memory_bytes = cell.peak_memory_bytes;
  EXPECT_EQ(repeated.waited, WaitShares());  // nothing was trained again
  repeated.waited = cell.waited;
  EXPECT_EQ(to_json(repeated), to_json(cell));
}

TEST_F(FineTunedCellTest, AStepHasTheMicroBatchesOfFineTuning) {
  ComparisonOptions options = small_classification(home_.path());
  options.train.accumulation = 2;  // of pre-training
  options.own<BenchmarkOptions>().tuning.accumulation = 8;
  EXPECT_EQ(comparison_method(options).accumulation(options), 8);
}

TEST_F(FineTunedCellTest, ARateThatDivergesIsPassedOver) {
  ComparisonOptions options = small_classification(home_.path());
  options.own<BenchmarkOptions>().tuning.max_gradient_norm = 0;
  options.own<BenchmarkOptions>().tuning.learning_rates = {{1e30, "1e30"}, {1e-3, "1e-3"}};
  const std::vector<CellPlan> plans = plan_variants(options, {scheme_variant("mha")});
  EXPECT_EQ(run_fine_tuned_cell(plans[0], place_in(home_.path(), plans[0]), at::kCPU, silent_, kNeverStop)
                .tasks[0]
                .learning_rate,
            1e-3);
  options.own<BenchmarkOptions>().tuning.learning_rates = {{1e30, "1e30"}};
  const std::vector<CellPlan> alone = plan_variants(options, {scheme_variant("sha")});
  EXPECT_THAT(error_message([&] {
                run_fine_tuned_cell(alone[0], place_in(home_.path(), alone[0]), at::kCPU, silent_, kNeverStop);
              }),
              AllOf(HasSubstr("classify with learning rate 1e+30"), HasSubstr("--finetune-learning-rate")));
}

TEST_F(FineTunedCellTest, EncodersAreLookedForByScheme) {
  const EncoderSet encoders = find_encoders(home_.path() / "encoders");
  EXPECT_THAT(encoders.seeds, ElementsAre(kSeed));
  for (const int64_t seed : {0, 7}) {  // one encoder serves all seeds
    EXPECT_EQ(encoder_of(encoders, "sha", seed), home_.path() / "encoders" / encoder_directory("sha", kSeed));
  }
  EXPECT_EQ(first_encoder(encoders, "sha"), encoder_of(encoders, "sha", 0));
  EXPECT_THAT(error_message([&] { encoder_of(encoders, "gqa", 0); }),
              AllOf(HasSubstr("no encoder of gqa"), HasSubstr("--schemes")));
  check_comparable(encoders, {scheme_variant("mha"), scheme_variant("sha")});
  fs::remove(home_.path() / "encoders" / encoder_directory("sha", kSeed) / "model.safetensors");
  EXPECT_THAT(error_message([&] { encoder_of(find_encoders(home_.path() / "encoders"), "sha", 0); }),
              HasSubstr("its model is gone"));
}

TEST_F(FineTunedCellTest, EachSeedBeginsWithTheEncoderOfThatSeed) {
  write_encoders(home_.path() / "encoders", {"mha", "sha"}, {0, 1, 2});
  const EncoderSet encoders = find_encoders(home_.path() / "encoders");
  EXPECT_EQ(encoder_of(encoders, "mha", 2), home_.path() / "encoders" / encoder_directory("mha", 2));
  EXPECT_THAT(error_message([&] { encoder_of(encoders, "mha", 3); }),
              AllOf(HasSubstr("seed 3"), HasSubstr("seeds 0 to 2"), HasSubstr("--seeds 3")));
  const ComparisonOptions options = small_classification(home_.path());
  for (const CellPlan& plan : plan_variants(options, {scheme_variant("mha")})) {
    const Cell cell = run_fine_tuned_cell(plan, place_in(home_.path(), plan), at::kCPU, silent_, kNeverStop);
    EXPECT_EQ(cell.encoder_seed, plan.key.seed);
    EXPECT_EQ(finished_cell(home_.path(), plan.key)->encoder_seed, plan.key.seed);
  }
  // If the encoder of one seed is gone, that seed is missing and the others serve.
  fs::remove(home_.path() / "encoders" / encoder_directory("sha", 1) / "model.safetensors");
  const EncoderSet damaged = find_encoders(home_.path() / "encoders");
  EXPECT_TRUE(damaged.has("sha"));
  EXPECT_FALSE(damaged.has("shared"));
  EXPECT_EQ(encoder_of(damaged, "sha", 0), first_encoder(damaged, "sha"));
  EXPECT_THAT(error_message([&] { encoder_of(damaged, "sha", 1); }), HasSubstr("no encoder of sha seed 1"));
}

TEST_F(FineTunedCellTest, DataIsReadBeforeThereAreEncoders) {
  const ComparisonOptions options = small_classification(home_.path());
  const LoadedEncoder stand_in = stand_in_encoder(options);
  const std::vector<BenchmarkTask> tasks =
      read_benchmark({.options = options, .encoder = stand_in, .device = at::kCPU});
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].examples, 12);
  const Subject subject = benchmark_subject(
      options, tasks,
      {.home = home_.path(), .data = "book.txt", .objective = "masked LM", .size = "2 layers", .match = "steps"});
  EXPECT_EQ(subject.encoders, "masked LM, 2 layers");
  EXPECT_EQ(
      subject.data,
      "classify 12 + 6 examples to train and validate on (train.tsv, dev.tsv); encoders that learned from book.txt "
      "(masked LM, 2 layers)");
  EXPECT_FALSE(subject.has_test_part);
  EXPECT_THAT(subject.tasks, ElementsAre("classify"));
  ComparisonOptions wrong = options;
  wrong.own<BenchmarkOptions>().job.files.validation.clear();
  EXPECT_THAT(error_message([&] { read_benchmark({.options = wrong, .encoder = stand_in, .device = at::kCPU}); }),
              HasSubstr("--finetune-validation-fraction"));
}

}  // namespace
}  // namespace headshare
