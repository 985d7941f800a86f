// Measures the quality of language models: perplexity and bits per byte from summed negative log-likelihoods.
#pragma once

#include <cstdint>
#include <string>

#include "headshare/metrics/score.h"

namespace headshare {

// An evaluation adds up these sums. They are no means: parts of a corpus combine exactly with +=.
struct LanguageSums {
  double nats = 0;     // sum over the scored tokens of -ln p(token | its context)
  int64_t tokens = 0;  // tokens scored
  int64_t bytes = 0;   // UTF-8 bytes of the text those tokens stand for; 0 when unknown

  LanguageSums& operator+=(const LanguageSums& more);
};

// The numbers depend on this setup besides the model and the text; it all goes into the signature.
struct LanguageSetup {
  std::string objective =
      "causal";                // "causal", "masked" (many tokens hidden), "pseudo" (each by itself), "translation"
  std::string tokenizer = {};  // its kind and, where there is one, its hash: "bpe-1f3a"
  int64_t context = 0;         // most tokens the model sees at once
  int64_t stride = 0;          // tokens the window moves on by; tokens of the overlap are scored once
};

// Returns exp(nats / tokens). It depends on the tokenizer: it is comparable only between equal signatures. It is
// infinite when the exponential overflows. Throws Error when no token was scored or the sum is negative or not finite.
Score perplexity(const LanguageSums& sums, const LanguageSetup& setup);

// Returns nats / (ln 2 * bytes): comparable between tokenizers, when they are lossless (Tokenizer::lossless). Throws
// Error when no byte was counted or the sum is negative or not finite.
Score bits_per_byte(const LanguageSums& sums, const LanguageSetup& setup);

}  // namespace headshare
