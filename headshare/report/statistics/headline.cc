#include "headshare/report/statistics/headline.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

using Rows = std::vector<const VariantRow*>;

const VariantRow* find_row(const std::vector<VariantRow>& rows, const std::string& variant) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const VariantRow& row) { return row.variant == variant && row.finished(); });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<std::string> names(const Rows& rows) {
  std::vector<std::string> made;
  for (const VariantRow* row : rows) made.push_back(row->variant);
  return made;
}

// The trained variants beside the reference, by where the interval of their difference over seeds lies. One seed judges
// nobody: how a model starts moves its quality more than which part of the text is scored.
struct Verdicts {
  Rows better, level, worse, unjudged;

  size_t judged() const { return better.size() + level.size() + worse.size(); }
};

Verdicts judge(const Subject& subject, const std::vector<VariantRow>& rows) {
  const bool lower = compares_loss(subject) || subject.direction == Direction::kLowerIsBetter;
  Verdicts verdicts;
  for (const VariantRow& row : rows) {
    if (!row.against_reference || !row.trained()) continue;
    const std::optional<Interval> interval = row.against_reference->over_seeds;
    if (!interval) {
      verdicts.unjudged.push_back(&row);
    } else if (interval->low <= 0 && interval->high >= 0) {
      verdicts.level.push_back(&row);
    } else {
      ((interval->low > 0) == lower ? verdicts.worse : verdicts.better).push_back(&row);
    }
  }
  return verdicts;
}

std::string best_sentence(const Results& results, const std::vector<VariantRow>& rows, const VariantRow& best) {
  const Subject& subject = results.subject;
  const auto finished = static_cast<size_t>(
      std::count_if(rows.begin(), rows.end(), [](const VariantRow& row) { return row.finished() && row.trained(); }));
  std::string text = join_text(best.variant, finished > 1 ? " has the best " : " has a ", quality_name(subject));
  if (finished > 1) text += join_text(" of ", plural(finished, noun(results)));
  text += join_text(": ", quality_text(subject, best.best.quality.mean),
                    best.best.seeds.size() > 1 ? join_text(" (mean of ", best.best.seeds.size(), " seeds)") : "");
  if (subject.chance) text += join_text("; guessing reaches ", quality_text(subject, *subject.chance));
  return text + ".";
}

std::string separation_sentence(const Results& results, const Verdicts& verdicts) {
  const std::string& reference = results.references.quality;
  if (verdicts.judged() == 0) return "";
  if (verdicts.better.empty() && verdicts.worse.empty()) {
    return verdicts.level.size() == 1
               ? join_text(" ", verdicts.level[0]->variant, " is not significantly different from ", reference,
                           ": the interval of its difference contains 0.")
               : join_text(" No ", noun(results), " is significantly different from ", reference,
                           ": the interval of every difference contains 0.");
  }
  std::string text;
  if (!verdicts.better.empty()) {
    text += join_text(" Significantly better than ", reference, ": ", list_text(names(verdicts.better)), ".");
  }
  if (!verdicts.worse.empty()) {
    text += verdicts.level.empty() && verdicts.better.empty() && verdicts.worse.size() > 1
                ? join_text(" Every other ", noun(results), " is significantly worse than ", reference, ".")
                : join_text(" Significantly worse than ", reference, ": ", list_text(names(verdicts.worse)), ".");
  }
  return text;
}

std::string percent_of(double part, double whole) { return format_fixed(100 * part / whole, 0) + "%"; }

// By attention parameters, then by cache: what the schemes were invented to save.
std::string cheapest_sentence(const Results& results, const VariantRow& reference, const Verdicts& verdicts) {
  const Subject& subject = results.subject;
  Rows kept = verdicts.level;
  kept.insert(kept.end(), verdicts.better.begin(), verdicts.better.end());
  std::erase_if(kept,
                [&](const VariantRow* row) { return row->attention_parameters >= reference.attention_parameters; });
  if (kept.empty()) {
    const bool said = verdicts.level.empty() && verdicts.better.empty();  // that all the others are worse
    return verdicts.worse.empty() || said
               ? ""
               : join_text(" No ", noun(results), " with fewer attention parameters keeps up with ", reference.variant,
                           ".");
  }
  const VariantRow& row = **std::min_element(kept.begin(), kept.end(), [](const VariantRow* a, const VariantRow* b) {
    return std::pair(a->attention_parameters, a->cache_bytes_per_token) <
           std::pair(b->attention_parameters, b->cache_bytes_per_token);
  });
  const auto share = [](int64_t part, int64_t whole) {
    return percent_of(static_cast<double>(part), static_cast<double>(whole));
  };
  std::string text = join_text(" The cheapest that is not significantly worse than ", reference.variant, " is ",
                               row.variant, ": ", share(row.attention_parameters, reference.attention_parameters),
                               " of ", reference.variant, "'s attention parameters");
  if (reference.cache_bytes_per_token > 0) {
    text += join_text(" and ", share(row.cache_bytes_per_token, reference.cache_bytes_per_token), " of its cache");
  }
  return text + join_text(", at ", difference_text(subject, row), " ", compared_name(subject), " ",
                          difference_interval_text(subject, row.against_reference->over_seeds), ".");
}

// How large a difference the seeds could have shown.
std::string resolution_caveat(const Subject& subject, const Verdicts& verdicts, size_t seeds) {
  std::vector<double> halves;
  const double smallest = std::pow(10.0, -difference_digits(subject)) / 2;  // what is printed as 0
  for (const Rows* rows : {&verdicts.better, &verdicts.level, &verdicts.worse}) {
    for (const VariantRow* row : *rows) {
      const std::optional<Interval>& interval = row->against_reference->over_seeds;
      const double half = interval ? (interval->high - interval->low) / 2 : 0;
      // Where every seed gives the same, as when a task is solved, seeds say nothing of what they would miss.
      if (half >= smallest) halves.push_back(half);
    }
  }
  if (halves.empty() || verdicts.level.empty()) return "";
  return join_text("Not significantly different does not mean equal: with ", plural(seeds, "seed"), " a difference in ",
                   compared_name(subject), " below about ", format_fixed(median(halves), difference_digits(subject)),
                   " cannot be seen.");
}

void add_seed_caveat(const Results& results, const Verdicts& verdicts, size_t seeds,
                     std::vector<std::string>* caveats) {
  if (seeds == 1) {
    caveats->push_back(
        "One seed tells no noise from difference: another start may change the order. Take 3 seeds or more before "
        "deciding.");
    return;
  }
  const std::string resolution = resolution_caveat(results.subject, verdicts, seeds);
  if (!resolution.empty()) caveats->push_back(resolution);
}

std::vector<std::string> caveats_of(const Results& results, const Verdicts& verdicts, size_t seeds) {
  std::vector<std::string> caveats;
  if (!is_complete(results)) {
    caveats.push_back(join_text("Partial: ", results.cells.size(), " of ", plural(results.planned.size(), "model"),
                                " finished so far; figures will change."));
  }
  if (!results.failed.empty()) {
    caveats.push_back(plural(results.failed.size(), "model") + " failed, for the reasons listed below.");
  }
  if (seeds > 0) add_seed_caveat(results, verdicts, seeds, &caveats);
  if (!results.subject.tasks.empty() && seeds > 0) {
    caveats.push_back(join_text("All seeds of a ", noun(results),
                                " begin with one pre-trained encoder: intervals are of fine-tuning alone, and another "
                                "pre-training may change the order."));
  }
  if (!results.subject.has_test_part) {
    caveats.push_back(
        "There is no test part: the figures are of the validation part that also chose the checkpoints, and so "
        "selection-biased.");
  }
  return caveats;
}

}  // namespace

std::string Headline::text() const {
  std::string all = finding;
  for (const std::string& caveat : caveats) all += " " + caveat;
  return all;
}

Headline headline(const Results& results, const std::vector<VariantRow>& rows) {
  const VariantRow* best = best_row(results.subject, rows);
  if (best == nullptr) {
    const bool all_failed = !results.planned.empty() && is_complete(results);
    return {.finding = all_failed ? "Every model failed." : "No model is finished yet.",
            .caveats = caveats_of(results, {}, 0)};
  }
  size_t seeds = 0;
  for (const VariantRow& row : rows) seeds = std::max(seeds, row.best.seeds.size());
  const VariantRow* reference = find_row(rows, results.references.quality);
  const Verdicts verdicts = judge(results.subject, rows);
  std::string finding = best_sentence(results, rows, *best);
  if (reference == nullptr) {
    finding += join_text(" ", results.references.quality, " is not among the finished ", noun(results),
                         "s, so there is nothing to measure the others against.");
  } else {
    finding += separation_sentence(results, verdicts) + cheapest_sentence(results, *reference, verdicts);
  }
  return {.finding = finding, .caveats = caveats_of(results, verdicts, seeds)};
}

}  // namespace headshare
