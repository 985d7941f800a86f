#include "headshare/metrics/language.h"

#include <cmath>
#include <numbers>

#include "headshare/base/error.h"

namespace headshare {
namespace {

void check_sum(const LanguageSums& sums) {
  HS_CHECK(std::isfinite(sums.nats) && sums.nats >= 0, "the summed negative log-likelihood of ", sums.tokens,
           " tokens is ", sums.nats, ", not a finite number >= 0: the model has diverged (train it with a smaller ",
           "--learning-rate) or its log-probabilities are not normalised");
}

std::string signature(const char* name, const LanguageSetup& setup) {
  return join_text(name, "|objective:", setup.objective, "|tokenizer:", setup.tokenizer, "|context:", setup.context,
                   "|stride:", setup.stride);
}

}  // namespace

LanguageSums& LanguageSums::operator+=(const LanguageSums& more) {
  nats += more.nats;
  tokens += more.tokens;
  bytes += more.bytes;
  return *this;
}

Score perplexity(const LanguageSums& sums, const LanguageSetup& setup) {
  HS_CHECK(sums.tokens > 0, "perplexity needs at least one scored token, not ", sums.tokens,
           ": the text is shorter than two tokens, or every token is masked");
  check_sum(sums);
  return {.name = "perplexity",
          .value = std::exp(sums.nats / static_cast<double>(sums.tokens)),
          .signature = join_text(signature("perplexity", setup), "|tokens:", sums.tokens)};
}

Score bits_per_byte(const LanguageSums& sums, const LanguageSetup& setup) {
  HS_CHECK(sums.bytes > 0, "bits per byte needs the byte count of the scored text, not ", sums.bytes,
           ": the text is empty, or its tokenizer cannot count bytes; use perplexity");
  check_sum(sums);
  return {.name = "bits-per-byte",
          .value = sums.nats / (std::numbers::ln2 * static_cast<double>(sums.bytes)),
          .signature = join_text(signature("bits-per-byte", setup), "|bytes:", sums.bytes)};
}

}  // namespace headshare
