#include "headshare/report/statistics/findings.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/base/strings/visible.h"
#include "headshare/report/statistics/decision.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

constexpr size_t kMostNamed = 3;      // in one title
constexpr size_t kMostUndecided = 5;  // in one title that says nothing else of them
constexpr size_t kLongestName = 24;   // characters

// Names variants as the subject of a sentence: "sha", "mqa and sha", "8 schemes". A variant may have any name.
std::string subject_of(const Results& results, const Rows& rows, size_t most_named = kMostNamed) {
  if (rows.size() > most_named) return plural(rows.size(), noun(results));
  std::vector<std::string> names;
  for (const VariantRow* row : rows) names.push_back(abbreviated(row->variant, kLongestName));
  return list_text(names);
}

std::string verb(const Rows& rows, const char* of_one, const char* of_many) {
  return rows.size() == 1 ? of_one : of_many;
}

// Returns "about 5%", "about 5% to 9%".
std::string loss_text(const Subject& subject, const VariantRow& reference, const Rows& rows) {
  std::vector<double> losses;
  for (const VariantRow* row : rows) losses.push_back(relative_loss(subject, reference, *row));
  const auto [least, most] = std::minmax_element(losses.begin(), losses.end());
  if (losses.empty()) return "";
  const std::string low = percent_text(*least, 0);
  const std::string high = percent_text(*most, 0);
  return "about " + (low == high ? low : low + " to " + high);
}

// Returns "three seeds" where the differences of all have so many, else "these seeds".
std::string seeds_of(const Rows& rows) {
  const int64_t seeds = rows.front()->against_reference->seeds;
  const bool same = std::all_of(rows.begin(), rows.end(),
                                [seeds](const VariantRow* row) { return row->against_reference->seeds == seeds; });
  return same ? number_of_seeds(static_cast<size_t>(seeds)) : "these seeds";
}

std::string judged_finding(const Results& results, const VariantRow& reference, const Verdicts& verdicts) {
  const Subject& subject = results.subject;
  Rows keep, lose, undecided;
  for (const Rows* rows : {&verdicts.level, &verdicts.worse}) {
    for (const VariantRow* row : *rows) {
      const bool keeps = keeps_quality(results, reference, *row);
      (keeps ? keep : rows == &verdicts.worse ? lose : undecided).push_back(row);
    }
  }
  std::string title;
  // `what` is said of these rows; the first part names the reference.
  const auto add = [&](const Rows& those, const std::string& what, const char* to) {
    if (those.empty()) return;
    title += join_text(title.empty() ? "" : "; ", subject_of(results, those), what,
                       title.empty() ? to + reference.variant : "");
  };
  const std::string limit = percent_text(margin_share(results));
  add(verdicts.better, verb(verdicts.better, " is significantly better", " are significantly better"), " than ");
  add(keep, verb(keep, " loses less than ", " lose less than ") + limit, " against ");
  add(lose, verb(lose, " loses ", " lose ") + loss_text(subject, reference, lose), " against ");
  if (undecided.empty()) return title;
  return join_text(title, title.empty() ? "Undecided: " : "; undecided: ", seeds_of(undecided), " cannot tell ",
                   subject_of(results, undecided, kMostUndecided), " apart from ", reference.variant);
}

}  // namespace

std::string few_seeds_text(size_t seeds) {
  return join_text(seeds == 1 ? "One seed" : "Two seeds", " cannot separate noise from a real difference");
}

std::string plan_caveat(size_t variants, size_t seeds) {
  constexpr size_t kEnough = 5;
  if (variants < 2 || seeds >= kEnough) return "";
  const auto visible = [variants](size_t n) { return format_fixed(judging_half_width(1, n, variants - 1), 1); };
  if (seeds < kFewestToJudge) {
    return join_text(few_seeds_text(seeds), ": take ", kFewestToJudge, " seeds or more, better ", kEnough);
  }
  return join_text("With ", seeds, " seeds a difference must be ", visible(seeds),
                   " times as large as the deviation of differences between seeds to be significant; with ", kEnough,
                   " seeds ", visible(kEnough), " times");
}

std::string comparison_finding(const Results& results, const std::vector<VariantRow>& rows) {
  const size_t seeds = most_seeds(rows);
  if (seeds == 0) {
    return !results.planned.empty() && is_complete(results) ? "Every model failed" : "No model is finished yet";
  }
  const VariantRow* reference = reference_row(results, rows);
  const Verdicts verdicts = verdicts_of(results.subject, rows);
  if (reference != nullptr && verdicts.judged() > 0) return judged_finding(results, *reference, verdicts);
  if (seeds < kFewestToJudge) return few_seeds_text(seeds);
  if (reference == nullptr) return join_text(results.references.quality, " is missing, so no difference can be judged");
  return join_text("Nothing to compare ", reference->variant, " with");
}

std::string difference_finding(const Results& results, const std::vector<VariantRow>& rows) {
  const Verdicts verdicts = verdicts_of(results.subject, rows);
  if (verdicts.judged() == 0) return few_seeds_text(std::min(most_seeds(rows), kFewestToJudge - 1));
  const std::string& reference = results.references.quality;
  if (verdicts.better.empty() && verdicts.worse.empty()) {
    return verdicts.level.size() == 1
               ? join_text(verdicts.level[0]->variant, " is not significantly different from ", reference)
               : join_text("No ", noun(results), " is significantly different from ", reference);
  }
  std::string text;
  const auto add = [&](const Rows& those, const std::string& what) {
    if (those.empty()) return;
    text += join_text(text.empty() ? "" : "; ", subject_of(results, those), verb(those, " is ", " are "), what);
  };
  add(verdicts.better, "significantly better than " + reference);
  add(verdicts.worse, "significantly worse than " + reference);
  add(verdicts.level, "not significantly different");
  return text;
}

std::string frontier_finding(const Results& results, const std::vector<VariantRow>& rows, const Rows& frontier,
                             const std::string& cost) {
  const VariantRow* reference = reference_row(results, rows);
  if (reference == nullptr) {
    return join_text(results.references.quality, " is missing, so no Pareto frontier against ", cost, " can be judged");
  }
  if (!means_are_decided(results, rows)) {
    return join_text("Undecided: ", number_of_seeds(most_seeds(rows)), " cannot tell which ", noun(results),
                     "s lie on the Pareto frontier against ", cost);
  }
  const bool alone = frontier.size() == 1;
  const std::string members = subject_of(results, frontier, kMostNamed + 2);
  return join_text(alone ? "Only " : "", members, alone ? " lies" : " lie", " on the Pareto frontier against ", cost);
}

std::string seed_finding(const Results& results, const std::vector<VariantRow>& rows) {
  if (most_seeds(rows) < 2) return "Each " + noun(results) + " was trained with one seed";
  std::vector<double> means;
  double widest = 0;
  for (const VariantRow& row : rows) {
    if (!row.finished()) continue;
    means.push_back(row.best.quality.mean);
    widest = std::max(widest, row.best.quality.max - row.best.quality.min);
  }
  const auto [least, most] = std::minmax_element(means.begin(), means.end());
  const Subject& subject = results.subject;
  const std::string text = join_text(capitalised(quality_name(subject)), " differs by up to ",
                                     quality_text(subject, widest), " between seeds of one ", noun(results));
  if (means.size() < 2) return text;
  return join_text(text, " and by up to ", quality_text(subject, *most - *least), " between ", noun(results), "s");
}

}  // namespace headshare
