#include "headshare/tasks/language/evaluate_language.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/models/testing.h"
#include "headshare/tasks/testing.h"

namespace headshare {
namespace {

constexpr int64_t kContext = 10;

Decoder byte_model() {
  DecoderOptions options = small_options("mha");
  options.vocabulary = 256;
  return small_decoder(options);
}

// Returns -log p of each token but the first, one window at a time, one token at a time: window k begins at k * stride,
// and scores what no window before it did.
std::vector<double> token_losses(const Decoder& model, const std::string& text, int64_t stride) {
  const at::NoGradGuard no_grad;
  std::vector<double> losses;
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t begin = 0; static_cast<int64_t>(losses.size()) < size - 1; begin += stride) {
    const int64_t length = std::min(kContext, size - 1 - begin);
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < length; ++i) ids.push_back(static_cast<uint8_t>(text[static_cast<size_t>(begin + i)]));
    const Tensor logits = model->logits(model->hidden(at::tensor(ids).unsqueeze(0))).to(at::kDouble)[0];  // [T, V]
    for (int64_t target = static_cast<int64_t>(losses.size()) + 1; target <= begin + length; ++target) {
      const Tensor row = at::log_softmax(logits[target - 1 - begin], 0);
      losses.push_back(-row[static_cast<uint8_t>(text[static_cast<size_t>(target)])].item<double>());
    }
  }
  return losses;
}

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}

TEST(EvaluateLanguageTest, EqualsALoopOverTokens) {
  const Decoder model = byte_model();
  for (const size_t size : {2, 10, 11, 12, 95}) {
    const std::string text = sentences(size);
    for (const int64_t stride : {kContext, int64_t{4}, int64_t{1}}) {
      for (const int64_t batch : {1, 3, 100}) {
        const std::vector<double> expected = token_losses(model, text, stride);
        const LanguageSums sums =
            evaluate_language(model, byte_tokens(text), ByteTokenizer(),
                              {.batch_size = batch, .context = kContext, .stride = stride}, /*progress=*/{});
        EXPECT_EQ(sums.tokens, static_cast<int64_t>(size) - 1);
        EXPECT_EQ(sums.bytes, static_cast<int64_t>(size) - 1);
        // Each loss is about ln 256 = 5.5, computed in float32.
        EXPECT_NEAR(sums.nats, sum(expected), 2e-6 * 5.5 * static_cast<double>(size)) << size << " " << stride;
      }
    }
  }
}

TEST(EvaluateLanguageTest, WindowMeansAreThoseOfTheWindows) {
  const Decoder model = byte_model();
  const std::string text = sentences(25);  // 24 targets: windows of 10, 10 and 4
  const std::vector<double> losses = token_losses(model, text, kContext);
  const WindowLosses windows = evaluate_windows(model, byte_tokens(text), ByteTokenizer(),
                                                {.batch_size = 2, .context = kContext, .stride = 0}, {});
  ASSERT_EQ(windows.window_means.size(), 3u);
  EXPECT_NEAR(windows.window_means[1], sum({losses.begin() + 10, losses.begin() + 20}) / 10, 1e-5);
  EXPECT_NEAR(windows.window_means[2], sum({losses.begin() + 20, losses.end()}) / 4, 1e-5);
}

TEST(EvaluateLanguageTest, TurnsDropoutOffAndTheModeBack) {
  DecoderOptions options = small_options("mha");
  options.vocabulary = 256;
  options.dropout = 0.5;
  Decoder model = small_decoder(options);
  const TokenData tokens = byte_tokens(sentences(50));
  const double expected = evaluate_language(model, tokens, ByteTokenizer(), {.context = kContext}).nats;
  model->train();
  EXPECT_EQ(evaluate_language(model, tokens, ByteTokenizer(), {.context = kContext}).nats, expected);
  EXPECT_TRUE(model->is_training());
  EXPECT_THROW(evaluate_language(model, tokens, ByteTokenizer(), {.context = kContext},
                                 [](int64_t, int64_t) { throw Interrupted("stop"); }),
               Interrupted);
  EXPECT_TRUE(model->is_training());
}

TEST(EvaluateLanguageTest, ReportsWindowsDone) {
  std::vector<std::pair<int64_t, int64_t>> seen;
  evaluate_language(byte_model(), byte_tokens(sentences(45)), ByteTokenizer(), {.batch_size = 2, .context = kContext},
                    [&](int64_t done, int64_t total) { seen.emplace_back(done, total); });
  EXPECT_THAT(seen, testing::ElementsAre(testing::Pair(2, 5), testing::Pair(4, 5), testing::Pair(5, 5)));
}

}  // namespace
}  // namespace headshare
