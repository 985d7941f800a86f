#include "headshare/metrics/retention.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"

namespace headshare {
namespace {

// Both ratios are linear in r = M / M_reference, so values and intervals pass through one line.
struct Line {
  double offset = 0;
  double slope = 0;

  double operator()(double r) const { return offset + slope * r; }
  Interval operator()(const Interval& r) const {
    const double a = (*this)(r.low);
    const double b = (*this)(r.high);
    return {std::min(a, b), std::max(a, b)};
  }
};

Line prr_line(const PrrQuestion& question) {
  return question.direction == Direction::kHigherIsBetter ? Line{0, 100} : Line{200, -100};
}

// Requires P > P_SHA. The difference is taken between integers, so that it is exact.
Line peop_line(const PeopQuestion& question) {
  const double growth =
      static_cast<double>(question.parameters - question.parameters_sha) / static_cast<double>(question.parameters_sha);
  const double sign = question.direction == Direction::kHigherIsBetter ? 1.0 : -1.0;
  return {-sign / growth, sign / growth};
}

std::string prr_rule(Direction direction) {
  return direction == Direction::kHigherIsBetter
             ? "PRR = 100 * M / M_MHA"
             : "PRR = 100 * (2 - M / M_MHA), M = the measure, of which less is better";
}

std::string peop_rule(Direction direction) {
  const std::string counts = ", P = attention parameters without biases";
  return direction == Direction::kHigherIsBetter
             ? "PEoP = (M / M_SHA - 1) / (P / P_SHA - 1)" + counts
             : "PEoP = (1 - M / M_SHA) / (P / P_SHA - 1), M = the measure, of which less is better" + counts;
}

// Returns why M / M_reference is not to be had; "" when it is.
std::string why_no_ratio(double quality, double reference, double full_scale, const char* reference_name) {
  if (!std::isfinite(quality)) return join_text("the quality is ", quality, ": the run diverged");
  if (!std::isfinite(reference)) {
    return join_text("the quality of ", reference_name, " is ", reference, ": the run diverged");
  }
  if (reference < 0.01 * full_scale) {
    return join_text("the quality of ", reference_name, " is ", reference, ", near or below 0 on a scale to ",
                     full_scale);
  }
  return "";
}

std::string why_no_prr(const PrrQuestion& question) {
  return why_no_ratio(question.quality, question.quality_mha, question.full_scale, "MHA");
}

std::string why_no_peop(const PeopQuestion& question) {
  HS_CHECK(question.parameters > 0 && question.parameters_sha > 0,
           "PEoP needs the attention parameters of the variant and of SHA, not ", question.parameters, " and ",
           question.parameters_sha);
  if (question.is_sha) return "SHA is the reference itself";
  if (question.parameters == question.parameters_sha) {
    return join_text("the variant has as many attention parameters as SHA: ", question.parameters);
  }
  if (question.parameters < question.parameters_sha) {
    return join_text("the variant has fewer attention parameters than SHA: ", question.parameters, " < ",
                     question.parameters_sha);
  }
  return why_no_ratio(question.quality, question.quality_sha, question.full_scale, "SHA");
}

Retention undefined(std::string reason, std::string rule) {
  Retention result;
  result.interval_rule = "no interval: the ratio is undefined";
  result.reason_undefined = std::move(reason);
  result.rule = std::move(rule);
  return result;
}

Retention defined(double value, std::string rule) {
  Retention result;
  result.value = value;
  result.rule = std::move(rule);
  result.interval_rule = "no interval: one pair of qualities";
  return result;
}

// Returns the mean for `quality` of a question; NaN when a seed diverged, which the question then reports.
double mean_or_nan(std::span<const double> values) {
  for (const double value : values) {
    if (!std::isfinite(value)) return value;
  }
  return mean(values);
}

void add_seed_interval(Retention* result, const Line& line, std::span<const double> quality,
                       std::span<const double> reference, double confidence) {
  const size_t seeds = quality.size();
  if (seeds < kFewestToJudge) {
    result->interval_rule =
        join_text("no interval: ", seeds == 1 ? "one seed says nothing of the spread" : "two seeds may agree by luck",
                  "; run at least ", kFewestToJudge, ", better 5");
  } else if (const std::optional<Interval> ratio = ratio_interval(quality, reference, confidence)) {
    result->interval = line(*ratio);
    result->interval_rule = join_text(100 * confidence, "% Fieller interval over ", seeds, " paired seeds");
  } else {
    result->interval_rule =
        join_text("no interval: over ", seeds, " seeds the reference is not distinguishable from 0");
  }
}

}  // namespace

Retention prr(const PrrQuestion& question) {
  const std::string reason = why_no_prr(question);
  if (!reason.empty()) return undefined(reason, prr_rule(question.direction));
  return defined(prr_line(question)(question.quality / question.quality_mha), prr_rule(question.direction));
}

Retention peop(const PeopQuestion& question) {
  const std::string reason = why_no_peop(question);
  if (!reason.empty()) return undefined(reason, peop_rule(question.direction));
  return defined(peop_line(question)(question.quality / question.quality_sha), peop_rule(question.direction));
}

Retention prr_over_seeds(PrrQuestion question, std::span<const double> quality, std::span<const double> quality_mha,
                         double confidence) {
  question.quality = mean_or_nan(quality);
  question.quality_mha = mean_or_nan(quality_mha);
  Retention result = prr(question);
  if (result.value) add_seed_interval(&result, prr_line(question), quality, quality_mha, confidence);
  return result;
}

Retention peop_over_seeds(PeopQuestion question, std::span<const double> quality, std::span<const double> quality_sha,
                          double confidence) {
  question.quality = mean_or_nan(quality);
  question.quality_sha = mean_or_nan(quality_sha);
  Retention result = peop(question);
  if (result.value) add_seed_interval(&result, peop_line(question), quality, quality_sha, confidence);
  return result;
}

}  // namespace headshare
