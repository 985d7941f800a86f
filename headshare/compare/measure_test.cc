#include "headshare/compare/measure.h"

#include <gmock/gmock.h>

#include "headshare/compare/testing.h"

namespace headshare {
namespace {

DecoderOptions model(const std::string& scheme) {
  DecoderOptions options{.vocabulary = 16, .context = 64, .layers = 1};
  options.attention = {.scheme = scheme, .d_model = 64, .heads = 4};
  return resolve(options);
}

int64_t memory(const std::string& scheme, int64_t batch, int64_t length) {
  DecoderOptions options = model(scheme);
  options.context = length;
  return attention_memory_bytes(options, batch, at::kCPU);
}

TEST(AttentionMemoryTest, CountsParametersGradientsAndActivations) {
  const int64_t parameters = 4 * 64 * 64 * 4;  // bytes
  const int64_t one = memory("mha", 1, 8);
  EXPECT_GE(one, 2 * parameters);
  // Memory that depends on the batch grows with it, and is at least input, queries, keys, values and output.
  const int64_t two = memory("mha", 2, 8);
  EXPECT_GE(two - one, 5 * 8 * 64 * 4);
  EXPECT_LE(two - one, one);
  EXPECT_EQ(memory("mha", 1, 8), one);  // the same every time
}

TEST(AttentionMemoryTest, SharedProjectionsTakeLess) { EXPECT_LT(memory("mqa", 4, 64), memory("mha", 4, 64)); }

TEST(DecodingSpeedTest, FillsTheWholeContext) {
  Decoder decoder(model("mqa"));
  initialise(*decoder, 1);
  const DecodingSpeed speed = *decoding_speed({.task = nullptr, .options = decoder->options(), .model = decoder.ptr()});
  EXPECT_EQ(speed.context, 64);
  EXPECT_GT(speed.tokens_per_second, 1);
  EXPECT_TRUE(decoder->is_training());  // the model is back in its mode
}

TEST(SecondsPerStepTest, LargerBatchesTakeLonger) {
  ComparisonOptions options = small_diagnostic({"mha"});
  const auto experiment = open_experiment(options);
  const double small = seconds_per_step(*experiment, options, at::kCPU);
  options.batch_size *= 200;
  EXPECT_GT(seconds_per_step(*experiment, options, at::kCPU), small);
  EXPECT_GT(small, 0);
}

}  // namespace
}  // namespace headshare
