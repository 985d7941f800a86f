#include "headshare/report/results/check_results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "headshare/base/error.h"

namespace headshare {
namespace {

void check_variants(const Results& results, const std::string& where) {
  for (size_t i = 0; i < results.variants.size(); ++i) {
    const std::string& name = results.variants[i].name;
    const auto same = [&](const Variant& other) { return other.name == name; };
    HS_CHECK(std::count_if(results.variants.begin(), results.variants.end(), same) == 1, where, ": \"variants\" holds ",
             name, " twice");
  }
}

// Each cell is planned, and finished or failed at most once.
void check_grid(const Results& results, const std::string& where) {
  std::map<std::tuple<std::string, std::string, int64_t>, int> seen;
  const auto entry = [](const CellKey& key) { return std::tuple(key.variant, key.setting, key.seed); };
  for (const CellKey& key : results.planned) {
    HS_CHECK(seen.emplace(entry(key), 0).second, where, ": \"planned\" holds ", name_of(key), " twice");
  }
  const auto count = [&](const CellKey& key, const char* list) {
    const auto found = seen.find(entry(key));
    HS_CHECK(found != seen.end(), where, ": ", list, " holds ", name_of(key), ", which is not planned");
    HS_CHECK(++found->second == 1, where, ": ", name_of(key), " is there twice");
  };
  for (const Cell& cell : results.cells) count(cell.key, "\"cells\"");
  for (const FailedCell& cell : results.failed) count(cell.key, "\"failed\"");
}

// Each cell has written something for each example, where there are any.
void check_examples(const Results& results, const std::string& where) {
  const size_t wanted = results.subject.examples.size();
  for (const Cell& cell : results.cells) {
    HS_CHECK(cell.examples.size() == wanted, where, ": ", name_of(cell.key), " has ", cell.examples.size(),
             " \"examples\" and \"subject\" has ", wanted);
  }
}

// Each cell of a benchmark has all of its tasks.
void check_tasks(const Results& results, const std::string& where) {
  const std::vector<std::string>& tasks = results.subject.tasks;
  const size_t chances = results.subject.task_chances.size();
  HS_CHECK(chances == 0 || chances == tasks.size(), where, ": the \"task_chances\" of \"subject\" are ", chances,
           ", its \"tasks\" ", tasks.size());
  for (const Cell& cell : results.cells) {
    const bool same = std::equal(cell.tasks.begin(), cell.tasks.end(), tasks.begin(), tasks.end(),
                                 [](const FineTunedTask& task, const std::string& name) { return task.task == name; });
    HS_CHECK(same, where, ": the \"tasks\" of ", name_of(cell.key), " are not those of \"subject\"");
  }
}

// Returns the least value of a number of this name: a perplexity is exp of a loss. Nothing where it may be any number.
std::optional<double> least_value(const std::string& name) {
  if (name.ends_with("perplexity")) return 1;
  if (name.ends_with("loss") || name == "bits-per-byte") return 0;
  return std::nullopt;
}

void check_least(double value, double least, const std::string& where, const std::string& what, const CellKey& key) {
  HS_CHECK(value >= least - kLossRounding, where, ": ", what, " of ", name_of(key), " is ", value, ", and at least ",
           least, " is possible");
}

void check_losses(const Results& results, const std::string& where) {
  const bool losses = results.subject.direction == Direction::kLowerIsBetter;
  for (const Cell& cell : results.cells) {
    for (size_t i = 0; losses && i < cell.blocks.size(); ++i) {
      check_least(cell.blocks[i], 0, where, join_text("blocks[", i, "]"), cell.key);
    }
    for (const Score& score : cell.scores) {
      const std::optional<double> least = least_value(score.name);
      if (least) check_least(score.value, *least, where, join_text("the score \"", score.name, "\""), cell.key);
    }
  }
}

void check_curves(const Results& results, const std::string& where) {
  for (const Cell& cell : results.cells) {
    int64_t before = -1;
    for (const CurvePoint& point : cell.curve) {
      HS_CHECK(point.step > before && point.step <= cell.steps, where, ": the \"curve\" of ", name_of(cell.key),
               " goes from step ", before, " to step ", point.step, ", of ", cell.steps, " \"steps\"");
      before = point.step;
    }
  }
}

// A score is at most what a perfect model reaches.
void check_measures(const Results& results, const std::string& where) {
  constexpr double kRounding = 1 + 1e-9;
  const Subject& subject = results.subject;
  const bool lower = subject.direction == Direction::kLowerIsBetter;
  HS_CHECK(subject.unknown_share <= 1, where, ": subject: \"unknown_share\" must be at most 1, not ",
           subject.unknown_share);
  for (const Cell& cell : results.cells) {
    if (lower) check_least(cell.quality, least_value(subject.measure).value_or(0), where, "the \"quality\"", cell.key);
    HS_CHECK(lower || std::abs(cell.quality) <= subject.full_scale * kRounding, where, ": the \"quality\" of ",
             name_of(cell.key), " is ", cell.quality, "; \"", subject.measure, "\" is from ", -subject.full_scale,
             " to ", subject.full_scale);
    HS_CHECK(cell.best_step <= cell.steps, where, ": the \"best_step\" of ", name_of(cell.key), " is ", cell.best_step,
             ", of ", cell.steps, " \"steps\"");
  }
}

}  // namespace

void check_results(const Results& results, const std::string& where) {
  check_variants(results, where);
  check_grid(results, where);
  check_tasks(results, where);
  check_examples(results, where);
  check_measures(results, where);
  check_losses(results, where);
  check_curves(results, where);
}

}  // namespace headshare
