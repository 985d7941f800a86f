#include "headshare/compare/cell_run.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "headshare/attention/scheme_record.h"
#include "headshare/compare/learning_curve.h"
#include "headshare/compare/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/report/results/results_json.h"
#include "headshare/tasks/masked/masked_language_model.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Runs every planned cell in this process.
std::vector<Cell> run_all(const ComparisonOptions& options, const fs::path& home) {
  const auto experiment = open_experiment(options);
  Observer silent;
  std::vector<Cell> cells;
  for (const CellPlan& plan : plan_cells(options, *experiment)) {
    cells.push_back(run_cell(plan, *experiment, place_in(home, plan), at::kCPU, silent, kNeverStop));
  }
  return cells;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(RunCellTest, TextIsScoredOnTheTestPartByTheBestModel) {
  const TemporaryDirectory home;
  const ComparisonOptions options = small_text({"mha", "sha", "el_lossless"}, home.path());
  const std::vector<Cell> cells = run_all(options, home.path());
  ASSERT_EQ(cells.size(), 3u);
  const LanguageData data = open_language_data(options.own<TextOptions>());
  for (const Cell& cell : cells) {
    EXPECT_EQ(cell.steps, 4);
    EXPECT_EQ(cell.tokens, 4 * 3 * 8);
    EXPECT_NEAR(cell.quality, std::exp(cell.test_loss), 1e-9);
    ASSERT_EQ(cell.scores.size(), 1u);
    EXPECT_EQ(cell.scores[0].name, "bits-per-byte");
    EXPECT_EQ(cell.options.at("feed-forward-width"), cell.size.feed_forward_width);  // resolved
    EXPECT_THAT(cell.signature, HasSubstr("tokens:99"));                             // of the test part
    ASSERT_EQ(cell.curve.size(), 2u);
    EXPECT_EQ(cell.curve[1].step, 4);
    EXPECT_EQ(std::min(cell.curve[0].validation_loss, cell.curve[1].validation_loss), cell.validation_loss);
    EXPECT_EQ(cell.blocks.size(), 13u);  // 99 tokens in windows of 8
    ASSERT_EQ(cell.block_targets.size(), 13u);
    EXPECT_LT(cell.block_targets.back(), cell.block_targets.front());  // the last window is shorter
    double sum = 0;
    for (size_t i = 0; i < 13; ++i) sum += cell.blocks[i] * static_cast<double>(cell.block_targets[i]);
    const auto targets = std::accumulate(cell.block_targets.begin(), cell.block_targets.end(), int64_t{0});
    EXPECT_NEAR(sum / static_cast<double>(targets), cell.test_loss, 1e-9);
    EXPECT_GT(cell.decoding_tokens_per_second, 0);
    EXPECT_EQ(cell.decoding_context, 8);

    const LoadedModel best = load_model(home.path() / cell.model);
    const LanguageSums sums = evaluate_language(best.model, data.splits.test, *data.tokenizer, {.context = 8});
    EXPECT_NEAR(sums.nats / static_cast<double>(sums.tokens), cell.test_loss, 1e-6);
  }
  EXPECT_GT(cells[0].peak_memory_bytes, 1 << 20);
  // el_lossless has mha's weights, and so its quality, with a smaller cache; costs of training belong to mha alone.
  EXPECT_EQ(cells[2].peak_memory_bytes + cells[2].attention_memory_bytes, 0);
  EXPECT_EQ(cells[2].training_tokens_per_second, 0);
  EXPECT_EQ(cells[0].weights_of, "");
  EXPECT_EQ(cells[2].weights_of, "mha");
  EXPECT_EQ(cells[2].key.variant, "el_lossless");
  EXPECT_NEAR(cells[2].test_loss, cells[0].test_loss, 1e-6);
  EXPECT_EQ(2 * cells[2].size.cache_elements_per_token, cells[0].size.cache_elements_per_token);
  EXPECT_GT(cells[0].attention_memory_bytes, cells[1].attention_memory_bytes);
}

TEST(RunCellTest, EncodersAreAskedForTheSameTokensAndDoNotDecode) {
  const TemporaryDirectory home;
  ComparisonOptions options = small_text({"mha", "mhe_mul"}, home.path());
  options.task = "mlm";
  set_masked_defaults(&options);
  options.own<TextOptions>().tokenizer.vocabulary_size = 60;
  options.model.context = 10;
  options.model.layers = 1;
  options.model.attention.d_model = 16;
  options.model.attention.heads = 2;
  options.own<MaskedOptions>().pseudo_tokens = 20;
  const std::vector<Cell> cells = run_all(options, home.path());
  ASSERT_EQ(cells.size(), 2u);
  for (const Cell& cell : cells) {
    EXPECT_NEAR(cell.quality, std::exp(cell.test_loss), 1e-9);
    ASSERT_EQ(cell.scores.size(), 1u);
    EXPECT_EQ(cell.scores[0].name, "pseudo-perplexity");
    EXPECT_THAT(cell.signature, testing::StartsWith("masked-perplexity|"));
    EXPECT_EQ(cell.size.cache_bytes_per_token, 0);
    EXPECT_EQ(cell.decoding_tokens_per_second, 0);
    EXPECT_GT(cell.attention_memory_bytes, 0);
    EXPECT_EQ(cell.blocks.size(), cells[0].blocks.size());
    EXPECT_EQ(cell.signature, cells[0].signature);  // as many tokens
    EXPECT_EQ(cell.tokens, cells[0].tokens);
    EXPECT_EQ(load_encoder_model(home.path() / cell.model).model->options().context, 10);
  }
}

TEST(RunCellTest, WithoutATestPartTheValidationPartIsReported) {
  const TemporaryDirectory home;
  ComparisonOptions options = small_text({"mha"}, home.path());
  options.own<TextOptions>().data.test_fraction = 0;
  EXPECT_FALSE(open_experiment(options)->subject().has_test_part);
  const Cell cell = run_all(options, home.path()).front();
  EXPECT_NEAR(cell.test_loss, cell.validation_loss, 1e-9);
  options.own<TextOptions>().data.validation_fraction = 0;
  EXPECT_THAT(error_message([&] { open_experiment(options); }), HasSubstr("--validation-fraction"));
}

TEST(RunCellTest, DiagnosticTasksAreJudgedByAccuracy) {
  for (const auto task : {"offsets", "recall", "induction", "dyck"}) {
    const TemporaryDirectory home;
    ComparisonOptions options = preset_options(task, Preset::kQuick);
    options.schemes = {"mqa"};
    options.train.steps = 2;
    options.own<DiagnosticOptions>().validation_sequences = options.own<DiagnosticOptions>().test_sequences = 8;
    const Cell cell = run_all(options, home.path()).front();
    EXPECT_EQ(cell.blocks.size(), 8u);
    EXPECT_NEAR(mean(cell.blocks), cell.quality, 1e-12);
    EXPECT_TRUE(cell.scores.empty());
    EXPECT_EQ(open_experiment(options)->subject().measure, "accuracy");
  }
}

TEST(PlanTest, EverySchemeLearnsWithEveryPositionKind) {
  const TemporaryDirectory home;
  ComparisonOptions options = small_text({"all"}, home.path());
  const std::unique_ptr<Experiment> experiment = open_experiment(options);
  Fields known = fields(options);
  for (const char* positions : {"learned", "sinusoidal", "rotary", "alibi", "none"}) {
    set_field(known, "positions", positions, "test");
    std::vector<std::string> learned;
    for (const CellPlan& plan : plan_cells(options, *experiment)) {
      const Trial trial = open_trial(*experiment, plan.options, at::kCPU);
      ASSERT_GT(trial.task->draw(1), 0);
      trial.task->loss_sum(0).backward();
      for (const Tensor& parameter : trial.task->model()->parameters()) {
        const Tensor gradient = parameter.grad();  // undefined if it cannot matter, as MHE-ADD's key embedding
        EXPECT_TRUE(!gradient.defined() || at::isfinite(gradient).all().item<bool>()) << plan.directory() << positions;
      }
      EXPECT_TRUE(std::isfinite(trial.task->evaluate(Part::kValidation, {}).loss)) << plan.directory() << positions;
      learned.push_back(plan.key.variant);
    }
    std::vector<std::string> expected = scheme_names();
    // Schemes that keep raw hidden states refuse rotary positions.
    if (options.model.positions == PositionKind::kRotary) {
      std::erase_if(expected, [](const std::string& scheme) { return scheme.starts_with("el_"); });
    }
    EXPECT_THAT(learned, testing::UnorderedElementsAreArray(expected)) << positions;
  }
}

TEST(RunCellTest, KeepsTheBestModelAloneAndIsFoundAgain) {
  const TemporaryDirectory home;
  const ComparisonOptions options = small_diagnostic({"mha"});
  const Cell cell = run_all(options, home.path()).front();
  const CellPlan plan = plan_cells(options, *open_experiment(options)).front();
  int64_t models = 0;
  for (const auto& entry : fs::recursive_directory_iterator(cell_home(home.path(), plan.key))) {
    if (entry.path().extension() == ".safetensors") ++models;
  }
  EXPECT_EQ(models, 1);
  EXPECT_EQ(to_json(*finished_cell(home.path(), plan.key)), to_json(cell));

  write_file(cell_home(home.path(), plan.key) / "cell.json", "{");
  EXPECT_THAT(error_message([&] { finished_cell(home.path(), plan.key); }),
              AllOf(HasSubstr("mha-seed3"), HasSubstr("delete it")));
}

TEST(RunCellTest, AStoppedCellGoesOnToTheSameResult) {
  const TemporaryDirectory home;
  const ComparisonOptions options = small_diagnostic({"mha"});
  const Cell whole = run_all(options, home / "whole").front();
  const auto experiment = open_experiment(options);
  const CellPlan plan = plan_cells(options, *experiment).front();
  Observer silent;
  int64_t asked = 0;
  EXPECT_THROW(
      run_cell(plan, *experiment, place_in(home / "stopped", plan), at::kCPU, silent, [&] { return ++asked == 3; }),
      Interrupted);
  EXPECT_FALSE(finished_cell(home / "stopped", plan.key));
  const Cell resumed = run_cell(plan, *experiment, place_in(home / "stopped", plan), at::kCPU, silent, kNeverStop);
  EXPECT_EQ(resumed.test_loss, whole.test_loss);
  EXPECT_EQ(resumed.blocks, whole.blocks);
  EXPECT_EQ(resumed.curve.size(), whole.curve.size());
}

TEST(RunCellTest, ElLosslessNeedsTheWeightsOfMha) {
  const TemporaryDirectory home;
  const ComparisonOptions options = small_diagnostic({"mha", "el_lossless"});
  const auto experiment = open_experiment(options);
  const CellPlan plan = plan_cells(options, *experiment).back();
  Observer silent;
  EXPECT_THAT(
      error_message([&] { run_cell(plan, *experiment, place_in(home.path(), plan), at::kCPU, silent, kNeverStop); }),
      HasSubstr("mha, which was not trained"));
}

// An evaluation of a diverged model becomes no point of the curve and causes no other error.
TEST(LearningCurve, EvaluationsWithoutALossArePassedOver) {
  const TemporaryDirectory home;
  const fs::path metrics = home.path() / "metrics.jsonl";
  write_file(metrics,
             R"({"event": "evaluation", "step": 2, "loss": 3.5}
{"event": "evaluation", "step": 4, "loss": null}
{"event": "evaluation", "step": 6}
{"event": "evaluation", "step": 8, "loss": 3.25, "accuracy": 0.5}
)");
  const std::vector<CurvePoint> curve = read_curve(metrics, 0.5, "accuracy");
  ASSERT_EQ(curve.size(), 2U);
  EXPECT_EQ(curve[1].step, 8);
  EXPECT_EQ(curve[1].seconds, 4);
  EXPECT_EQ(curve[1].validation_loss, 3.25);
  EXPECT_EQ(curve[1].validation_score, 0.5);
  EXPECT_FALSE(curve[0].validation_score || read_curve(metrics, 0.5)[1].validation_score);
}

}  // namespace
}  // namespace headshare
