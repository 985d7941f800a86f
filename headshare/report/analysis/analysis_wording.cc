#include "headshare/report/analysis/analysis_wording.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

constexpr double kSmallError = 0.1;

// Returns the cost that conversions of this model are to save.
int64_t cost_of(const HeadAnalysis& analysis, const ConversionAnalysis& row) {
  return analysis.decodes() ? row.size.cache_bytes_per_token : row.size.attention_parameters;
}
std::string cost_name(const HeadAnalysis& analysis) { return analysis.decodes() ? "cache" : "attention parameters"; }

std::string counted(int64_t count, const char* noun) { return plural(static_cast<size_t>(count), noun); }

// Returns the layer with the two heads that are most alike by their weights.
const LayerAnalysis& most_redundant(const HeadAnalysis& analysis) {
  const auto by_pair = [](const LayerAnalysis& a, const LayerAnalysis& b) {
    return most_alike(a.weights)->similarity < most_alike(b.weights)->similarity;
  };
  return *std::max_element(analysis.layer.begin(), analysis.layer.end(), by_pair);
}

template <class What>
double mean_over_layers(const HeadAnalysis& analysis, const What& what) {
  double sum = 0;
  for (const LayerAnalysis& one : analysis.layer) sum += what(one);
  return sum / static_cast<double>(analysis.layer.size());
}

std::string redundancy_text(const HeadAnalysis& analysis) {
  if (!analysis.has_spectra()) return "Only a text shows how alike these heads are (--text).";
  const double width = mean_over_layers(
      analysis, [](const LayerAnalysis& one) { return static_cast<double>(one.stacked.width_for(kEnergyShare)); });
  const LayerAnalysis& layer = most_redundant(analysis);
  const HeadPair pair = *most_alike(layer.weights);
  std::string text = join_text("The heads of a layer have ", percent_text(kEnergyShare), " of their scores' energy in ",
                               std::llround(width), " of ", analysis.full_key_width, " dimensions, on average over ",
                               plural(analysis.layer.size(), "layer"), ". Their score maps have a mean cosine of ",
                               similarity_text(mean_over_layers(
                                   analysis, [](const LayerAnalysis& one) { return *mean_similarity(one.weights); })),
                               "; heads ", pair.first + 1, " and ", pair.second + 1, " of ", layer.layer,
                               " are the most alike, with ", similarity_text(pair.similarity), ".");
  if (analysis.has_text()) {
    text += " Their attention on the text has a mean similarity of " +
            similarity_text(
                mean_over_layers(analysis, [](const LayerAnalysis& one) { return *mean_similarity(one.maps); })) +
            " (1: always the same tokens).";
  }
  return text;
}

using Candidates = std::vector<const ConversionAnalysis*>;

// Returns the time relative to the model as it is; nothing where it was not measured, or while other programs took part
// in it.
std::optional<double> time_share(const HeadAnalysis& analysis, const ConversionAnalysis& row) {
  if (analysis.busy || !row.milliseconds || analysis.before.milliseconds.value_or(0) <= 0) return std::nullopt;
  return *row.milliseconds / *analysis.before.milliseconds;
}

bool is_slow(const HeadAnalysis& analysis, const ConversionAnalysis* row) {
  return time_share(analysis, *row).value_or(1) > kMostTime;
}

// Returns ", 124% more time", "" where it is not known.
std::string time_text(const HeadAnalysis& analysis, const ConversionAnalysis& row) {
  const std::optional<double> share = time_share(analysis, row);
  if (!share) return "";
  const auto change = std::llround(100 * (*share - 1));
  if (change == 0) return ", the same time";
  return join_text(", ", std::abs(change), "% ", change > 0 ? "more" : "less", " time");
}

// Returns "(-50%) at an error of 5.00%, 12% less time", for example.
std::string price_text(const HeadAnalysis& analysis, const ConversionAnalysis& row) {
  return join_text(
      "(",
      change_text(static_cast<double>(cost_of(analysis, row)), static_cast<double>(cost_of(analysis, analysis.before))),
      ") at an error of ", error_text(error_of(row)), time_text(analysis, row));
}

// Returns the conversion that saves most, of equals the closest; `all` is not empty.
const ConversionAnalysis& saves_most(const HeadAnalysis& analysis, const Candidates& all) {
  return **std::min_element(all.begin(), all.end(), [&](const auto* a, const auto* b) {
    return std::pair(cost_of(analysis, *a), error_of(*a)) < std::pair(cost_of(analysis, *b), error_of(*b));
  });
}

// Recommends one of the conversions with a small error, of which there is at least one, and names what saves more and
// takes more time.
std::string recommendation(const HeadAnalysis& analysis, const Candidates& small) {
  const std::string cost = cost_name(analysis);
  const std::string keep = join_text("keep", small.size() == 1 ? "s" : "", " the ", error_name(analysis), " within ",
                                     percent_text(kSmallError));
  const ConversionAnalysis& most = saves_most(analysis, small);
  Candidates quick = small;
  std::erase_if(quick, [&](const auto* one) { return is_slow(analysis, one); });
  if (quick.empty()) {
    return join_text(
        "No conversion is recommended: ", small.size() == 1 ? "the only one that saves " : "all that save ", cost,
        " and ", keep, small.size() == 1 ? " takes" : " take", " over ", percent_text(kMostTime - 1), " more time. ",
        most.name, " saves the most ", cost, " ", price_text(analysis, most), ".");
  }
  const ConversionAnalysis& best = saves_most(analysis, quick);
  const std::string in_time =
      analysis.busy ? "" : join_text(" and take at most ", percent_text(kMostTime - 1), " more time");
  std::string text =
      join_text("Of the conversions that keep the ", error_name(analysis), " within ", percent_text(kSmallError),
                in_time, ", ", best.name, " saves the most ", cost, " ", price_text(analysis, best), ".");
  if (cost_of(analysis, most) < cost_of(analysis, best)) {
    text += join_text(" ", most.name, " saves more ", cost, " ", price_text(analysis, most), ".");
  }
  return text;
}

std::string best_text(const HeadAnalysis& analysis) {
  if (!analysis.refusal.empty()) {
    return "Weights cannot be converted: " + analysis.refusal + ". The table has what models of other schemes cost.";
  }
  Candidates all = possible(analysis);
  std::erase_if(all, [&](const ConversionAnalysis* one) {
    return cost_of(analysis, *one) >= cost_of(analysis, analysis.before) || !std::isfinite(error_of(*one));
  });
  const std::string cost = cost_name(analysis);
  if (all.empty()) return "No conversion saves " + cost + ".";
  Candidates small = all;
  std::erase_if(small, [](const ConversionAnalysis* one) { return !(error_of(*one) <= kSmallError); });
  if (!small.empty()) return recommendation(analysis, small);
  const ConversionAnalysis& closest = **std::min_element(
      all.begin(), all.end(), [](const auto* a, const auto* b) { return error_of(*a) < error_of(*b); });
  return join_text("No conversion that saves ", cost, " keeps the ", error_name(analysis), " within ",
                   percent_text(kSmallError), "; the closest is ", closest.name, " with ",
                   error_text(error_of(closest)), time_text(analysis, closest),
                   ". A conversion with a larger error needs training afterwards.");
}

std::string attention_text(const HeadAnalysis& analysis) {
  return join_text("Attention: 1 - the mean Jensen-Shannon divergence of two heads' attention in bits, over ",
                   counted(analysis.map_tokens, "token"), ".");
}

std::vector<std::string> explanations_of_maps(const HeadAnalysis& analysis) {
  std::vector<std::string> all = {
      join_text("Dimensions: how many hold ", percent_text(kEnergyShare),
                " of the energy (squared singular values): of a head's query-key map; joint: of the sum of all heads' "
                "maps, W_Q W_K^T; stacked: of all heads' maps side by side, below which shared maps lose energy "
                "whatever they are."),
      "Cosine: between the query-key maps of two heads; 1 also where the heads have different bases.",
  };
  if (analysis.has_text()) {
    all.push_back(join_text(attention_text(analysis), " Maps and errors are weighed by what layers read in ",
                            counted(analysis.text_tokens, "token"), " of the text."));
    all.push_back(join_text("Change of output: of each layer alone, on ", counted(analysis.map_tokens, "token"),
                            ", its input being the model's own."));
  } else {
    all.emplace_back("Without --text all directions of the inputs count alike; errors on a text are often smaller.");
  }
  const bool fewer = analysis.iterations < analysis.convert_iterations;
  all.push_back(join_text("Errors are relative, means over layers, with ", counted(analysis.iterations, "iteration"),
                          " at most",
                          fewer ? join_text("; headshare convert takes ", analysis.convert_iterations,
                                            " by default (--iterations) and can be a little better.")
                                : "."));
  return all;
}

// Explains numbers of a model whose weights do not say what heads compare.
std::vector<std::string> explanations_of_scores(const HeadAnalysis& analysis) {
  if (!analysis.has_spectra()) return {};
  return {join_text("Dimensions: how many hold ", percent_text(kEnergyShare),
                    " of the energy (squared singular values) of scores: of every token's query with every token's key "
                    "among ",
                    counted(analysis.text_tokens, "token"),
                    " of the text, after the norms and before positions turn them. Joint: of the sum of all heads' "
                    "scores; stacked: of all heads' scores side by side."),
          "Cosine: between the scores of two heads.", attention_text(analysis)};
}

}  // namespace

std::string subject_text(const HeadAnalysis& analysis) {
  return join_text(
      analysis.kind, " of scheme ", analysis.scheme, ", ", counted(analysis.depth, "layer"),
      analysis.depth > analysis.layers ? " that share " + counted(analysis.layers, "set") + " of parameters" : "", "; ",
      counted(analysis.heads, "head"), " of width ", analysis.head_width);
}

std::string finding_text(const HeadAnalysis& analysis) {
  const std::string busy = " The machine was busy, so times were left out of account: measure them on an idle machine.";
  return join_text(redundancy_text(analysis), " ", best_text(analysis), analysis.busy ? busy : "");
}

std::vector<std::string> explanations(const HeadAnalysis& analysis) {
  std::vector<std::string> all =
      analysis.refusal.empty() ? explanations_of_maps(analysis) : explanations_of_scores(analysis);
  all.push_back(join_text("Time: attention of the first layer, measured here, ",
                          analysis.decodes() ? "decoding one token after " : "reading ",
                          counted(analysis.decodes() ? analysis.timed_tokens - 1 : analysis.timed_tokens, "token"),
                          analysis.busy ? ". The machine was busy: these times can be wrong in any direction, measure "
                                          "again on an idle machine."
                                        : "."));
  return all;
}

double error_of(const ConversionAnalysis& conversion) {
  return conversion.output().value_or(conversion.larger().value_or(0));
}

std::string error_name(const HeadAnalysis& analysis) {
  return analysis.has_text() ? "change of layers' outputs" : "larger error of scores and values";
}

std::vector<const ConversionAnalysis*> possible(const HeadAnalysis& analysis) {
  std::vector<const ConversionAnalysis*> all;
  for (const ConversionAnalysis& one : analysis.conversions) {
    if (one.impossible.empty()) all.push_back(&one);
  }
  return all;
}

std::string row_name(const HeadAnalysis& analysis, const ConversionAnalysis& row) {
  return &row == &analysis.before ? row.name + ", as it is" : row.name;
}

std::string error_text(double error) { return percent_text(error, 2); }

std::string change_text(double after, double before) {
  const double change = before > 0 ? 100 * (after / before - 1) : 0;
  const auto rounded = std::llround(change);
  return join_text(rounded > 0 ? "+" : rounded == 0 ? "±" : "", rounded, "%");
}

std::string time_heading(const HeadAnalysis& analysis) { return analysis.busy ? "time, busy machine" : "time"; }

std::string width_text(const Spectrum& spectrum) {
  return join_text(spectrum.width_for(kEnergyShare), " of ", spectrum.dimensions);
}

std::string pair_text(const std::optional<HeadPair>& heads) {
  if (!heads) return "-";
  return join_text(heads->first + 1, " and ", heads->second + 1, ": ", similarity_text(heads->similarity));
}

std::string similarity_text(std::optional<double> similarity) {
  if (!similarity) return "-";
  const std::string text = format_fixed(*similarity, 2);
  return text == "-0.00" ? "0.00" : text;
}

std::string milliseconds_text(std::optional<double> milliseconds) {
  return milliseconds ? format_fixed(*milliseconds, *milliseconds < 10 ? 3 : 1) : "-";
}

}  // namespace headshare
