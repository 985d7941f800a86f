#include "headshare/report/statistics/headline.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/report/statistics/comparability.h"
#include "headshare/report/statistics/decision.h"
#include "headshare/report/statistics/findings.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

constexpr int64_t kMostSeeds = 50;  // that are worth naming

std::string best_sentence(const Results& results, const std::vector<VariantRow>& rows, const VariantRow& best) {
  const Subject& subject = results.subject;
  const auto finished = static_cast<size_t>(
      std::count_if(rows.begin(), rows.end(), [](const VariantRow& row) { return row.finished() && row.trained(); }));
  std::string text = finished > 1 ? join_text(best.variant, " has the best ", quality_name(subject), " of ",
                                              plural(finished, noun(results)), ": ")
                                  : join_text(best.variant, " has a ", quality_name(subject), " of ");
  text += join_text(quality_text(subject, best.best.quality.mean),
                    best.best.seeds.size() > 1 ? join_text(" (mean of ", best.best.seeds.size(), " seeds)") : "");
  if (subject.chance) text += join_text("; guessing reaches ", quality_text(subject, *subject.chance));
  return text + ".";
}

std::string no_best_sentence() {
  return "No embedding is best by these losses: they are of different tokens. Fine-tune the encoders (--task glue, "
         "classify, ...) to compare all.";
}

std::string separation_sentence(const Results& results, const Verdicts& verdicts) {
  const std::string& reference = results.references.quality;
  if (verdicts.judged() == 0) return "";
  const std::string unjudged = verdicts.unjudged.empty()
                                   ? ""
                                   : join_text(" Not judged, for want of ", kFewestToJudge,
                                               " seeds: ", list_text(names_of(verdicts.unjudged)), ".");
  if (verdicts.better.empty() && verdicts.worse.empty()) {
    return verdicts.level.size() == 1
               ? join_text(" ", verdicts.level[0]->variant, " is not significantly different from ", reference,
                           ": the interval of its difference contains 0.", unjudged)
               : join_text(" No ", verdicts.unjudged.empty() ? "" : "judged ", noun(results),
                           " is significantly different from ", reference,
                           ": the interval of every difference contains 0.", unjudged);
  }
  std::string text;
  if (!verdicts.better.empty()) {
    text += join_text(" Significantly better than ", reference, ": ", list_text(names_of(verdicts.better)), ".");
  }
  if (!verdicts.worse.empty()) {
    const bool all = verdicts.level.empty() && verdicts.better.empty() && verdicts.unjudged.empty();
    text += all && verdicts.worse.size() > 1
                ? join_text(" Every other ", noun(results), " is significantly worse than ", reference, ".")
                : join_text(" Significantly worse than ", reference, ": ", list_text(names_of(verdicts.worse)), ".");
  }
  return text + unjudged;
}

std::string percent_of(double part, double whole) { return percent_text(part / whole, 0); }

std::string margin_text(const Results& results, const VariantRow& reference) {
  const Subject& subject = results.subject;
  const std::string share = percent_text(margin_share(results));
  return compares_loss(subject) ? join_text(share, " in perplexity (", format_fixed(margin(results, reference), 4),
                                            " in ", compared_name(subject), ")")
                                : join_text(share, " in ", quality_name(subject));
}

// Says what the cheapest variant costs, and how sure that is.
std::string cheapest_text(const Results& results, const VariantRow& reference, const VariantRow& row) {
  const Subject& subject = results.subject;
  const auto share = [](int64_t part, int64_t whole) {
    return percent_of(static_cast<double>(part), static_cast<double>(whole));
  };
  std::string text =
      join_text(" The cheapest that loses less than ", margin_text(results, reference), " is ", row.variant, ": ",
                share(row.size.attention_parameters, reference.size.attention_parameters), " of ", reference.variant,
                "'s attention parameters");
  if (reference.size.cache_bytes_per_token > 0) {
    text += join_text(" and ", share(row.size.cache_bytes_per_token, reference.size.cache_bytes_per_token),
                      " of its cache");
  }
  return text + join_text(", at ", difference_text(subject, row), " ", compared_name(subject), " ",
                          difference_interval_text(subject, row.against_reference->interval()), ".");
}

constexpr size_t kMostInSentence = 3;  // in one sentence
constexpr size_t kMostListed = 10;     // in brackets

// Says which variants may or may not be within the margin, and how many seeds would tell.
std::string undecided_text(const Results& results, const VariantRow& reference, const Rows& undecided) {
  const std::string which =
      undecided.size() <= kMostInSentence
          ? list_text(names_of(undecided), "or")
          : join_text("any of ", undecided.size(), " ", noun(results), "s with fewer attention parameters than ",
                      reference.variant,
                      undecided.size() <= kMostListed ? join_text(" (", list_text(names_of(undecided)), ")") : "");
  std::string text =
      join_text(" Whether ", which, " loses less than ", margin_text(results, reference), " is not decided");
  const size_t more_looks = results.looks.empty() ? 0 : 1;
  const std::optional<int64_t> seeds = seeds_to_decide(results, reference, undecided, kMostSeeds, more_looks);
  return text + (seeds ? join_text("; about ", *seeds, " seeds would decide it.")
                       : join_text("; it would take more than ", kMostSeeds, " seeds."));
}

// The cheapest is the one with the fewest attention parameters, then the smallest cache. Only one whose whole interval
// lies within the margin is recommended; else the noisiest would be.
std::string cheapest_sentence(const Results& results, const std::vector<VariantRow>& rows, const VariantRow& reference,
                              const Verdicts& verdicts) {
  const Decision decision = decide(results, rows, reference);
  if (!decision.kept.empty()) {
    const auto cost = [](const VariantRow* row) {
      return std::pair(row->size.attention_parameters, row->size.cache_bytes_per_token);
    };
    return cheapest_text(results, reference, **std::ranges::min_element(decision.kept, {}, cost));
  }
  if (!decision.undecided.empty()) return undecided_text(results, reference, decision.undecided);
  return verdicts.judged() == 0 ? ""
                                : join_text(" No ", noun(results), " with fewer attention parameters loses less than ",
                                            margin_text(results, reference), ".");
}

// Says how small a difference can be seen, by the half-widths of intervals and whose they are, not empty; of many the
// smallest and the largest half-width.
std::string limits_text(std::vector<std::pair<double, std::string>> seen, int digits) {
  std::sort(seen.begin(), seen.end());
  const auto limit = [&](const auto& one) { return format_fixed(one.first, digits); };
  std::vector<std::string> limits;
  for (const auto& one : seen) limits.push_back(join_text(limit(one), " (", one.second, ")"));
  if (limit(seen.front()) == limit(seen.back())) return limit(seen.front());
  return seen.size() <= kMostInSentence
             ? list_text(limits)
             : join_text(limits.front(), " to ", limits.back(), ", depending on the one compared,");
}

// Says how large a difference could have been seen, for each variant that shows none.
std::string resolution_caveat(const Results& results, const Verdicts& verdicts) {
  const Subject& subject = results.subject;
  const int digits = difference_digits(subject);
  std::vector<std::pair<double, std::string>> seen;
  std::vector<std::string> blind;  // no two values of the measure are so far apart
  for (const VariantRow* row : verdicts.level) {
    const double half = half_width(*row);
    if (!compares_loss(subject) && half >= subject.full_scale) {
      blind.push_back(row->variant);
    } else if (half >= std::pow(10.0, -digits) / 2) {
      // Where every seed gives the same, as when a task is solved, seeds say nothing of what they would miss.
      seen.emplace_back(half, row->variant);
    }
  }
  if (seen.empty() && blind.empty()) return "";
  const std::string none_for = blind.size() <= kMostInSentence
                                   ? list_text(blind, "or")
                                   : join_text("any of ", plural(blind.size(), noun(results)));
  std::string text = "Not significantly different does not mean equal: ";
  if (seen.empty()) {
    return join_text(text, "no difference in ", compared_name(subject), " can be seen for ", none_for,
                     " with these seeds.");
  }
  text += join_text("differences in ", compared_name(subject), " below ", limits_text(seen, digits),
                    " cannot be seen with these seeds");
  return text + (blind.empty() ? "." : join_text("; no difference can be seen for ", none_for, "."));
}

void add_seed_caveat(const Results& results, const Verdicts& verdicts, size_t seeds,
                     std::vector<std::string>* caveats) {
  if (seeds < kFewestToJudge) {
    caveats->push_back(join_text(few_seeds_text(seeds), ": other seeds may change the order. Take ", kFewestToJudge,
                                 " seeds or more before deciding."));
    return;
  }
  const std::string resolution = resolution_caveat(results, verdicts);
  if (!resolution.empty()) caveats->push_back(resolution);
}

// Tells whether several seeds of a variant were fine-tuned from one encoder.
bool shares_encoders(const Results& results) {
  std::set<std::pair<std::string, int64_t>> seen;
  return std::any_of(results.cells.begin(), results.cells.end(), [&](const Cell& cell) {
    return !cell.encoder_seed || !seen.emplace(cell.key.variant, *cell.encoder_seed).second;
  });
}

// Returns "Fewer seeds than planned: mqa (2 of 3). ..."; "" where every variant that has any has all.
std::string missing_seeds_text(const std::vector<VariantRow>& rows) {
  std::vector<std::string> names;
  for (const VariantRow& row : rows) {
    if (lacks_seeds(row.best)) names.push_back(join_text(row.variant, " (", seeds_text(row.best), ")"));
  }
  if (names.empty()) return "";
  const std::string which =
      names.size() <= kMostListed ? list_text(names) : join_text(names.size(), " of ", rows.size(), " rows");
  return join_text("Fewer seeds than planned: ", which, ". Their numbers are provisional, and reports show them grey.");
}

std::vector<std::string> caveats_of(const Results& results, const std::vector<VariantRow>& rows,
                                    const Verdicts& verdicts, size_t seeds) {
  std::vector<std::string> caveats;
  if (!is_complete(results)) {
    caveats.push_back(join_text("Partial: ", results.cells.size(), " of ", plural(results.planned.size(), "model"),
                                " finished so far; figures will change."));
  }
  if (const std::string fewer = missing_seeds_text(rows); !fewer.empty()) caveats.push_back(fewer);
  if (!results.failed.empty()) {
    caveats.push_back(plural(results.failed.size(), "model") + " failed, for the reasons listed below.");
  }
  if (seeds > 0) add_seed_caveat(results, verdicts, seeds, &caveats);
  if (!results.subject.tasks.empty() && seeds > 0 && shares_encoders(results)) {
    caveats.push_back(join_text("All seeds of a ", noun(results),
                                " begin with one pre-trained encoder: intervals are of fine-tuning alone, and another "
                                "pre-training may change the order."));
  }
  if (!results.subject.has_test_part) {
    caveats.push_back(
        "There is no test part: the numbers come from the validation part, which also chose the checkpoints, so they "
        "are selection-biased.");
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
  const VariantRow* best = best_row(results, rows);
  const bool finished = std::any_of(rows.begin(), rows.end(), [](const VariantRow& row) { return row.finished(); });
  if (!finished) {
    const bool all_failed = !results.planned.empty() && is_complete(results);
    return {.finding = all_failed ? "Every model failed." : "No model is finished yet.",
            .caveats = caveats_of(results, rows, {}, 0)};
  }
  const size_t seeds = most_seeds(rows);
  const VariantRow* reference = reference_row(results, rows);
  const Verdicts verdicts = verdicts_of(results.subject, rows);
  std::string finding = best == nullptr ? no_best_sentence() : best_sentence(results, rows, *best);
  if (reference == nullptr) {
    finding += join_text(" ", results.references.quality, " is not among the finished ", noun(results),
                         "s, so there is nothing to measure the others against.");
  } else {
    finding += separation_sentence(results, verdicts) + cheapest_sentence(results, rows, *reference, verdicts);
  }
  return {.finding = finding, .caveats = caveats_of(results, rows, verdicts, seeds)};
}

}  // namespace headshare
