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

// What counts as no worse: a measure within this share of the reference's.
constexpr double kMargin = 0.02;
constexpr int64_t kMostSeeds = 50;  // that are worth naming

// The trained variants beside the reference, by where the interval of their difference lies. One seed or two judge
// nobody: how a model starts moves its quality more than which part of the text is scored.
struct Verdicts {
  Rows better, level, worse, unjudged;

  size_t judged() const { return better.size() + level.size() + worse.size(); }
};

Verdicts judge(const Subject& subject, const std::vector<VariantRow>& rows) {
  const bool lower = less_is_better(subject);
  Verdicts verdicts;
  for (const VariantRow& row : rows) {
    if (!row.against_reference || !row.trained()) continue;
    const std::optional<Interval> interval = row.against_reference->interval();
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

// The margin in the number that variants are compared by: a perplexity grows by a share where its loss grows by the
// logarithm.
double margin(const Subject& subject, const VariantRow& reference) {
  return compares_loss(subject) ? std::log1p(kMargin) : kMargin * std::abs(reference.best.quality.mean);
}

// How much worse than the reference a variant is, in the compared number.
double loss_of(const Subject& subject, const VariantRow& row) {
  return less_is_better(subject) ? row.against_reference->mean : -row.against_reference->mean;
}

// How far the interval of its difference reaches to either side.
double half_width(const VariantRow& row) {
  const Interval interval = *row.against_reference->interval();
  return (interval.high - interval.low) / 2;
}

std::string margin_text(const Subject& subject, const VariantRow& reference) {
  const std::string share = percent_of(kMargin, 1);
  return compares_loss(subject) ? join_text(share, " in perplexity (", format_fixed(margin(subject, reference), 4),
                                            " in ", compared_name(subject), ")")
                                : join_text(share, " in ", quality_name(subject));
}

// What it costs, and how sure that is.
std::string cheapest_text(const Results& results, const VariantRow& reference, const VariantRow& row) {
  const Subject& subject = results.subject;
  const auto share = [](int64_t part, int64_t whole) {
    return percent_of(static_cast<double>(part), static_cast<double>(whole));
  };
  std::string text = join_text(" The cheapest that loses less than ", margin_text(subject, reference), " is ",
                               row.variant, ": ", share(row.attention_parameters, reference.attention_parameters),
                               " of ", reference.variant, "'s attention parameters");
  if (reference.cache_bytes_per_token > 0) {
    text += join_text(" and ", share(row.cache_bytes_per_token, reference.cache_bytes_per_token), " of its cache");
  }
  return text + join_text(", at ", difference_text(subject, row), " ", compared_name(subject), " ",
                          difference_interval_text(subject, row.against_reference->interval()), ".");
}

constexpr size_t kMostNamed = 3;  // in one sentence

// Of those that may or may not be within the margin: which, and how many seeds would tell.
std::string undecided_text(const Results& results, const VariantRow& reference, const Rows& undecided) {
  const std::string which = undecided.size() <= kMostNamed
                                ? list_text(names(undecided), "or")
                                : join_text("any of ", undecided.size(), " ", noun(results),
                                            "s with fewer attention parameters than ", reference.variant);
  std::string text =
      join_text(" Whether ", which, " loses less than ", margin_text(results.subject, reference), " is not decided");
  int64_t most = 0;
  for (const VariantRow* row : undecided) {
    const double room = std::abs(margin(results.subject, reference) - loss_of(results.subject, *row));
    const auto needed = values_needed(*row->against_reference->judged, room, kMostSeeds);
    most = std::max(most, needed.value_or(kMostSeeds + 1));
  }
  return text + (most > kMostSeeds ? join_text("; it would take more than ", kMostSeeds, " seeds.")
                                   : join_text("; about ", most, " seeds would decide it."));
}

// Of the variants with fewer attention parameters, then a smaller cache: what the schemes were invented to save. Only
// one whose whole interval lies within the margin is recommended; else the noisiest would be.
std::string cheapest_sentence(const Results& results, const VariantRow& reference, const Verdicts& verdicts) {
  Rows kept, undecided;
  for (const Rows* rows : {&verdicts.better, &verdicts.level, &verdicts.worse}) {
    for (const VariantRow* row : *rows) {
      if (row->attention_parameters >= reference.attention_parameters) continue;
      const double loss = loss_of(results.subject, *row);
      const double allowed = margin(results.subject, reference);
      if (loss + half_width(*row) < allowed) {
        kept.push_back(row);
      } else if (loss - half_width(*row) < allowed) {
        undecided.push_back(row);
      }
    }
  }
  if (!kept.empty()) {
    return cheapest_text(results, reference,
                         **std::min_element(kept.begin(), kept.end(), [](const VariantRow* a, const VariantRow* b) {
                           return std::pair(a->attention_parameters, a->cache_bytes_per_token) <
                                  std::pair(b->attention_parameters, b->cache_bytes_per_token);
                         }));
  }
  if (!undecided.empty()) return undecided_text(results, reference, undecided);
  return verdicts.judged() == 0 ? ""
                                : join_text(" No ", noun(results), " with fewer attention parameters loses less than ",
                                            margin_text(results.subject, reference), ".");
}

// How large a difference could have been seen, for each of those that show none; of many the least and the most.
std::string resolution_caveat(const Subject& subject, const Verdicts& verdicts) {
  const int digits = difference_digits(subject);
  std::vector<std::pair<double, std::string>> seen;
  for (const VariantRow* row : verdicts.level) {
    const double half = half_width(*row);
    // Where every seed gives the same, as when a task is solved, seeds say nothing of what they would miss.
    if (half >= std::pow(10.0, -digits) / 2) seen.emplace_back(half, row->variant);
  }
  if (seen.empty()) return "";
  std::sort(seen.begin(), seen.end());
  const auto limit = [&](const auto& one) { return format_fixed(one.first, digits); };
  std::vector<std::string> limits;
  for (const auto& one : seen) limits.push_back(join_text(limit(one), " (", one.second, ")"));
  const std::string below = limit(seen.front()) == limit(seen.back()) ? limit(seen.front())
                            : seen.size() <= kMostNamed
                                ? list_text(limits)
                                : join_text(limits.front(), " to ", limits.back(), ", depending on the one compared,");
  return join_text("Not significantly different does not mean equal: differences in ", compared_name(subject),
                   " below ", below, " cannot be seen with these seeds.");
}

void add_seed_caveat(const Results& results, const Verdicts& verdicts, size_t seeds,
                     std::vector<std::string>* caveats) {
  if (seeds < kFewestToJudge) {
    caveats->push_back(join_text(seeds == 1 ? "One seed tells" : "Two seeds tell",
                                 " no noise from difference: other starts may change the order. Take ", kFewestToJudge,
                                 " seeds or more before deciding."));
    return;
  }
  const std::string resolution = resolution_caveat(results.subject, verdicts);
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
