#include "headshare/compare/comparison.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/tasks/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ChosenSchemesTest, AllNamesDuplicatesAndMistakes) {
  EXPECT_EQ(chosen_schemes({"all"}).size(), scheme_names().size());
  EXPECT_EQ(chosen_schemes({"sha", "all"}), chosen_schemes({"all"}));
  EXPECT_THAT(chosen_schemes({"sha", "mha", "sha"}), ElementsAre(SchemeKind::kMha, SchemeKind::kSha));
  EXPECT_THAT(error_message([] { chosen_schemes({"mha", "mhee_add"}); }), HasSubstr("mhe_add"));
  EXPECT_THAT(error_message([] { chosen_schemes({}); }), HasSubstr("--schemes"));
}

ComparisonOptions small_comparison(const std::vector<std::string>& schemes) {
  ComparisonOptions options;
  options.schemes = schemes;
  options.language = small_language();
  options.train.steps = 4;
  options.train.evaluate_every = 2;
  options.train.seed = 3;
  return options;
}

TEST(WhyNotTest, NamesWhatAPositionKindRulesOut) {
  ComparisonOptions options = small_comparison({"all"});
  EXPECT_EQ(why_not(options, SchemeKind::kElShared), "");
  options.language.model.positions = PositionKind::kRotary;
  EXPECT_THAT(why_not(options, SchemeKind::kElShared), HasSubstr("rotary"));
  EXPECT_EQ(why_not(options, SchemeKind::kMha), "");
}

TEST(PresetTest, EveryPresetCanBeTrainedWithEveryScheme) {
  for (const char* name : {"quick", "small", "base"}) {
    const ComparisonOptions options = preset_options(parse_preset(name));
    for (const SchemeKind scheme : chosen_schemes({"all"})) EXPECT_EQ(why_not(options, scheme), "") << name;
    EXPECT_GT(options.language.data.test_fraction, 0);
    EXPECT_GT(options.language.data.validation_fraction, 0);
  }
  EXPECT_THAT(error_message([] { parse_preset("quik"); }), HasSubstr("quick"));
}

Cell made_up_cell() {
  return {.scheme = SchemeKind::kMheMul,
          .seed = 4,
          .training = {.steps = 10,
                       .tokens = 2000,
                       .best_loss = 1.25,
                       .best_step = 8,
                       .stopped_early = true,
                       .seconds = 2.5,
                       .tokens_per_second = 800,
                       .best_model = "somewhere/best"},
          .validation_loss = 1.25,
          .test_loss = 1.5,
          .perplexity = 4.5,
          .bits_per_byte = 2.1,
          .signature = "perplexity|x"};
}

TEST(CellTest, ReadsWhatItWrote) {
  Cell cell = made_up_cell();
  EXPECT_EQ(to_json(cell_from_json(to_json(cell), "here")), to_json(cell));
  cell.bits_per_byte.reset();
  EXPECT_EQ(to_json(cell_from_json(to_json(cell), "here")), to_json(cell));
  EXPECT_FALSE(cell_from_json(to_json(cell), "here").bits_per_byte);
}

TEST(CellTest, RefusesDamage) {
  const nlohmann::json whole = to_json(made_up_cell());
  for (const char* key : {"scheme", "seed", "validation_loss", "test_loss", "perplexity", "signature", "training"}) {
    for (const nlohmann::json& value : {nlohmann::json(), nlohmann::json::array()}) {
      nlohmann::json damaged = whole;
      damaged[key] = value;
      EXPECT_THAT(error_message([&] { cell_from_json(damaged, "cell.json"); }),
                  AllOf(HasSubstr("cell.json"), HasSubstr(key)));
    }
  }
  for (const char* key : {"steps", "tokens", "best_loss", "best_step", "seconds", "tokens_per_second", "best_model"}) {
    nlohmann::json damaged = whole;
    damaged["training"].erase(key);
    EXPECT_THAT(error_message([&] { cell_from_json(damaged, "cell.json"); }), HasSubstr(key));
  }
  nlohmann::json damaged = whole;
  damaged["training"]["stopped_early"] = "yes";
  EXPECT_THAT(error_message([&] { cell_from_json(damaged, "cell.json"); }), HasSubstr("stopped_early"));
  damaged = whole;
  damaged["scheme"] = "mhee_mul";
  EXPECT_THAT(error_message([&] { cell_from_json(damaged, "cell.json"); }), HasSubstr("mhe_mul"));
}

// Counts what is trained.
class Watcher : public ComparisonObserver {
 public:
  void on_cell(const CellPlan& plan) override {
    cells.push_back(join_text(scheme_name(plan.scheme), plan.seed, plan.finished ? " finished" : ""));
    EXPECT_EQ(plan.number, static_cast<int64_t>(cells.size()));
  }
  void on_step(const StepReport&) override { ++steps; }

  std::vector<std::string> cells;
  int64_t steps = 0;
};

const auto kNever = [] { return false; };

TEST(RunComparisonTest, TrainsEachSchemeAndSeedOnceAndTakesOverWhatIsFinished) {
  const TemporaryDirectory home;
  ComparisonOptions options = small_comparison({"el_lossless", "sha", "mha"});
  options.seeds = 2;
  options.train.log_every = 1;
  Watcher first;
  const std::vector<Cell> cells = run_comparison(options, small_data(), home.path(), at::kCPU, first, kNever);
  EXPECT_THAT(first.cells, ElementsAre("mha3", "sha3", "mha4", "sha4"));
  EXPECT_EQ(first.steps, 4 * 4);
  ASSERT_EQ(cells.size(), 6u);
  for (const Cell& cell : cells) {
    EXPECT_EQ(cell.training.steps, 4);
    EXPECT_EQ(cell.training.tokens, 4 * 3 * 8);
    EXPECT_GT(cell.test_loss, 1);
    EXPECT_NEAR(cell.perplexity, std::exp(cell.test_loss), 1e-9);
    EXPECT_TRUE(cell.bits_per_byte);
    EXPECT_THAT(cell.signature, HasSubstr("tokens:99"));  // the test part's
  }
  EXPECT_EQ(cells[4].scheme, SchemeKind::kElLossless);
  EXPECT_EQ(cells[4].test_loss, cells[0].test_loss);
  EXPECT_EQ(cells[5].test_loss, cells[2].test_loss);
  EXPECT_NE(cells[0].test_loss, cells[2].test_loss);  // another seed

  // The figures are those of the best model on disk.
  const LoadedModel best = load_model(cells[0].training.best_model);
  const LanguageData data = small_data();
  const LanguageSums sums = evaluate_language(best.model, data.splits.test, *data.tokenizer, {.context = 8});
  EXPECT_NEAR(sums.nats / static_cast<double>(sums.tokens), cells[0].test_loss, 1e-6);

  Watcher second;
  fs::remove(home / "cells" / "sha-seed3" / "cell.json");  // finished training, not scored
  fs::remove_all(home / "cells" / "sha-seed4");            // not begun
  const std::vector<Cell> again = run_comparison(options, small_data(), home.path(), at::kCPU, second, kNever);
  EXPECT_THAT(second.cells, ElementsAre("mha3 finished", "sha3", "mha4 finished", "sha4"));
  EXPECT_EQ(second.steps, 4);
  ASSERT_EQ(again.size(), 6u);
  for (size_t i = 0; i < cells.size(); ++i) EXPECT_EQ(again[i].test_loss, cells[i].test_loss) << i;
}

TEST(RunComparisonTest, AStoppedComparisonGoesOnInsideACell) {
  const TemporaryDirectory home;
  const ComparisonOptions options = small_comparison({"mha", "mqa"});
  Watcher whole_watcher;
  const std::vector<Cell> whole =
      run_comparison(options, small_data(), home / "whole", at::kCPU, whole_watcher, kNever);
  Watcher watcher;
  int64_t asked = 0;
  const auto stop_in_the_second = [&] { return watcher.cells.size() == 2 && ++asked == 3; };
  EXPECT_THROW(run_comparison(options, small_data(), home / "stopped", at::kCPU, watcher, stop_in_the_second),
               Interrupted);
  EXPECT_TRUE(fs::exists(home / "stopped" / "cells" / "mha-seed3" / "cell.json"));
  EXPECT_FALSE(fs::exists(home / "stopped" / "cells" / "mqa-seed3" / "cell.json"));
  Watcher going_on;
  const std::vector<Cell> resumed = run_comparison(options, small_data(), home / "stopped", at::kCPU, going_on, kNever);
  EXPECT_EQ(resumed[1].test_loss, whole[1].test_loss);
  EXPECT_EQ(resumed[1].training.best_loss, whole[1].training.best_loss);
  EXPECT_THAT(going_on.cells, ElementsAre("mha3 finished", "mqa3"));
}

TEST(RunComparisonTest, ADamagedCellIsNamedWithTheWayOut) {
  const TemporaryDirectory home;
  const fs::path path = home / "cells" / "mha-seed3" / "cell.json";
  make_directories(path.parent_path());
  write_file(path, "{");
  Watcher watcher;
  EXPECT_THAT(error_message([&] {
                run_comparison(small_comparison({"mha"}), small_data(), home.path(), at::kCPU, watcher, kNever);
              }),
              AllOf(HasSubstr(path.string()), HasSubstr("delete it")));
}

TEST(RunComparisonTest, WhatCannotBeComparedIsRefusedBeforeTraining) {
  const TemporaryDirectory home;
  Watcher watcher;
  const auto refusal = [&](const ComparisonOptions& options, const LanguageData& data) {
    const std::string text =
        error_message([&] { run_comparison(options, data, home.path(), at::kCPU, watcher, kNever); });
    EXPECT_EQ(watcher.steps, 0);
    return text;
  };
  EXPECT_THAT(refusal(small_comparison({"el_lossless"}), small_data()), HasSubstr("add mha"));
  ComparisonOptions rotary = small_comparison({"el_shared"});
  rotary.language.model.positions = PositionKind::kRotary;
  EXPECT_THAT(refusal(rotary, small_data()), HasSubstr("none of the schemes"));
  LanguageData data = small_data();
  data.splits.test = {};
  EXPECT_THAT(refusal(small_comparison({"mha"}), data), HasSubstr("--test-fraction"));
  data = small_data();
  data.splits.validation = {};
  EXPECT_THAT(refusal(small_comparison({"mha"}), data), HasSubstr("--validation-fraction"));
}

}  // namespace
}  // namespace headshare
