#include "headshare/metrics/language.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "headshare/base/error.h"

namespace headshare {
namespace {

const LanguageSetup kSetup = {.tokenizer = "bytes", .context = 128, .stride = 64};

TEST(LanguageTest, AUniformModelHasItsVocabularyAsPerplexity) {
  const LanguageSums sums = {.nats = 10 * std::log(256.0), .tokens = 10, .bytes = 10};
  EXPECT_NEAR(perplexity(sums, kSetup).value, 256.0, 1e-10);
  EXPECT_NEAR(bits_per_byte(sums, kSetup).value, 8.0, 1e-12);
}

TEST(LanguageTest, PartsAddUp) {
  LanguageSums sums = {.nats = 3.0, .tokens = 2, .bytes = 5};
  sums += {.nats = 1.5, .tokens = 1, .bytes = 4};
  EXPECT_NEAR(perplexity(sums, kSetup).value, std::exp(1.5), 1e-12);
  EXPECT_NEAR(bits_per_byte(sums, kSetup).value, 0.5 / std::log(2.0), 1e-12);
}

TEST(LanguageTest, TheSignatureTellsHow) {
  const LanguageSums sums = {.nats = 1, .tokens = 7, .bytes = 9};
  EXPECT_EQ(perplexity(sums, kSetup).signature,
            "perplexity|objective:causal|tokenizer:bytes|context:128|stride:64|tokens:7");
  EXPECT_EQ(bits_per_byte(sums, kSetup).signature,
            "bits-per-byte|objective:causal|tokenizer:bytes|context:128|stride:64|bytes:9");
}

TEST(LanguageTest, NothingScoredOrADivergedModelIsAnError) {
  EXPECT_THROW(perplexity({}, kSetup), Error);
  EXPECT_THROW(bits_per_byte({.nats = 1, .tokens = 1}, kSetup), Error);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(perplexity({.nats = nan, .tokens = 1, .bytes = 1}, kSetup), Error);
  EXPECT_THROW(bits_per_byte({.nats = -1, .tokens = 1, .bytes = 1}, kSetup), Error);
  EXPECT_TRUE(std::isinf(perplexity({.nats = 1e6, .tokens = 1, .bytes = 1}, kSetup).value));
}

}  // namespace
}  // namespace headshare
