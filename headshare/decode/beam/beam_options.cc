#include "headshare/decode/beam/beam_options.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr int64_t kMostTokens = 1 << 20;
constexpr double kMostRatio = 1000;

const EnumNames<LengthNorm> kNorms = {
    {LengthNorm::kLength, "length"}, {LengthNorm::kGnmt, "gnmt"}, {LengthNorm::kNone, "none"}};
const EnumNames<EarlyStopping> kStoppings = {
    {EarlyStopping::kFalse, "false"}, {EarlyStopping::kTrue, "true"}, {EarlyStopping::kNever, "never"}};

}  // namespace

Fields fields(BeamOptions& o) {
  return {
      field("beam", &o.beam, "hypotheses that are kept for a sentence; 1 is greedy",
            {.min = 1, .max = kMostBeams, .aliases = {"beam-size", "num-beams"}}),
      field("length-penalty", &o.length_penalty, "above 0 prefers longer translations, below 0 shorter ones",
            {.min = -kMostPenalty, .max = kMostPenalty, .aliases = {"lenpen"}}),
      field("length-norm", &o.length_norm, "divides scores by length^penalty, or as GNMT, or not", kNorms),
      field("n-best", &o.n_best, "translations of each sentence, the best first; at most beam",
            {.min = 1, .max = kMostBeams, .aliases = {"nbest", "num-return-sequences"}}),
      field("min-length", &o.min_length, "tokens of a translation at least",
            {.min = 0, .max = kMostTokens, .aliases = {"min-len", "min-new-tokens"}}),
      field("max-length", &o.max_length, "tokens of a translation at most, end-of-text included",
            {.min = 1, .max = kMostTokens, .aliases = {"max-len", "max-new-tokens"}}),
      field("max-length-ratio", &o.max_length_ratio,
            "also at most this times the tokens of the source, plus max-length-extra; 0: no such limit",
            {.min = 0, .max = kMostRatio, .aliases = {"max-len-a"}}),
      field("max-length-extra", &o.max_length_extra, "tokens that max-length-ratio allows on top",
            {.min = 0, .max = kMostTokens, .aliases = {"max-len-b"}}),
      field("no-repeat-ngram", &o.no_repeat_ngram, "a translation has no n-gram of this size twice; 0: it may",
            {.min = 0, .max = kMostTokens, .aliases = {"no-repeat-ngram-size"}}),
      field("early-stopping", &o.early_stopping, "when a sentence with enough translations ends, as transformers does",
            kStoppings),
  };
}

void check_beam_options(const BeamOptions& o) {
  HS_CHECK(o.beam >= 1 && o.beam <= kMostBeams, "beam must lie in 1..", kMostBeams, ", not ", o.beam,
           "; 1 is greedy search");
  // The comparison is false for NaN, too.
  HS_CHECK(std::abs(o.length_penalty) <= kMostPenalty, "length-penalty must lie in ", -kMostPenalty, "..", kMostPenalty,
           ", not ", o.length_penalty, "; 0 turns it off");
  HS_CHECK(o.n_best >= 1, "n-best must be at least 1, not ", o.n_best);
  HS_CHECK(o.n_best <= o.beam, "n-best ", o.n_best, " needs as many hypotheses: set beam to ", o.n_best,
           " or more, it is ", o.beam);
  HS_CHECK(o.max_length >= 1 && o.max_length <= kMostTokens, "max-length must lie in 1..", kMostTokens, ", not ",
           o.max_length);
  HS_CHECK(o.min_length >= 0, "min-length must be at least 0, not ", o.min_length);
  HS_CHECK(o.min_length <= o.max_length, "min-length ", o.min_length, " is above max-length ", o.max_length,
           ": lower the first or raise the second");
  HS_CHECK(o.max_length_ratio >= 0 && o.max_length_ratio <= kMostRatio, "max-length-ratio must lie in 0..", kMostRatio,
           ", not ", o.max_length_ratio, "; 0 turns it off");
  HS_CHECK(o.max_length_extra >= 0 && o.max_length_extra <= kMostTokens, "max-length-extra must lie in 0..",
           kMostTokens, ", not ", o.max_length_extra);
  HS_CHECK(o.no_repeat_ngram >= 0, "no-repeat-ngram must be at least 0, not ", o.no_repeat_ngram,
           "; 0 lets n-grams repeat");
}

double length_divisor(const BeamOptions& options, int64_t length) {
  const auto tokens = static_cast<double>(length);
  switch (options.length_norm) {
    case LengthNorm::kNone:
      return 1;
    case LengthNorm::kLength:
      return std::pow(tokens, options.length_penalty);
    case LengthNorm::kGnmt:
      return std::pow((5 + tokens) / 6, options.length_penalty);
  }
  return 1;
}

int64_t length_limit(const BeamOptions& options, int64_t source_length) {
  if (options.max_length_ratio == 0) return options.max_length;
  const double scaled = std::floor(options.max_length_ratio * static_cast<double>(source_length)) +
                        static_cast<double>(options.max_length_extra);
  const double least = static_cast<double>(std::max<int64_t>(1, options.min_length));
  return static_cast<int64_t>(std::clamp(scaled, least, static_cast<double>(options.max_length)));
}

}  // namespace headshare
