#include "headshare/decode/generate.h"

#include <gmock/gmock.h>

#include <cmath>

#include "headshare/base/error.h"

namespace headshare {
namespace generate_test {

constexpr int32_t kEnd = 256;

std::string decode_bytes(std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) text += static_cast<char>(id);
  return text;
}

// This model says `script` byte by byte and then kEnd; it keeps what it was fed.
class Reciter {
 public:
  explicit Reciter(std::string script) : script_(std::move(script)) {}

  std::vector<float> operator()(std::span<const int32_t> new_tokens) {
    fed.emplace_back(new_tokens.begin(), new_tokens.end());
    std::vector<float> logits(257, 0.0F);
    const size_t i = fed.size() - 1;
    logits[i < script_.size() ? static_cast<unsigned char>(script_[i]) : static_cast<size_t>(kEnd)] = 100;
    return logits;
  }

  std::vector<std::vector<int32_t>> fed;

 private:
  std::string script_;
};

struct Streamed {
  std::vector<int32_t> tokens;
  std::vector<std::string> texts;
  int closing_calls = 0;
};

GenerateRequest request(Streamed* streamed, std::vector<std::string> stop = {}, int64_t max_new_tokens = 100) {
  return {.prompt = {'p', 'q'},
          .sampling = {.greedy = true, .max_new_tokens = max_new_tokens, .stop = std::move(stop)},
          .end_of_text = kEnd,
          .decode = decode_bytes,
          .on_token = [streamed](std::optional<int32_t> token, std::string_view text) {
            if (token) streamed->tokens.push_back(*token);
            if (!token) ++streamed->closing_calls;
            streamed->texts.emplace_back(text);
          }};
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

TEST(GenerateTest, FeedsThePromptOnceAndThenOneTokenAtATime) {
  Reciter model("abc");
  Streamed streamed;
  const Generated result = generate(std::ref(model), request(&streamed));
  EXPECT_THAT(model.fed, testing::ElementsAre(testing::ElementsAre('p', 'q'), testing::ElementsAre('a'),
                                              testing::ElementsAre('b'), testing::ElementsAre('c')));
  EXPECT_EQ(result.reason, StopReason::kEndOfText);
  EXPECT_EQ(result.text, "abc");
  EXPECT_THAT(result.tokens, testing::ElementsAre('a', 'b', 'c'));
  EXPECT_EQ(streamed.tokens, result.tokens);
  EXPECT_THAT(streamed.texts, testing::ElementsAre("a", "b", "c"));
}

TEST(GenerateTest, StopsAfterMaxNewTokens) {
  Reciter model("abcdef");
  Streamed streamed;
  const Generated result = generate(std::ref(model), request(&streamed, {}, 2));
  EXPECT_EQ(result.reason, StopReason::kMaxNewTokens);
  EXPECT_EQ(result.text, "ab");
  EXPECT_EQ(model.fed.size(), 2u);
  Reciter unused("a");
  EXPECT_TRUE(generate(std::ref(unused), request(&streamed, {}, 0)).tokens.empty());
  EXPECT_TRUE(unused.fed.empty());
}

TEST(GenerateTest, StopStringsSpanTokensAndAreNotShown) {
  Reciter model("one EN END two");
  Streamed streamed;
  const Generated result = generate(std::ref(model), request(&streamed, {"END"}));
  EXPECT_EQ(result.reason, StopReason::kStopString);
  EXPECT_EQ(result.text, "one EN ");
  EXPECT_EQ(joined(streamed.texts), result.text);
  EXPECT_EQ(result.tokens.size(), 10u);
  EXPECT_EQ(streamed.tokens, result.tokens);
}

TEST(GenerateTest, TextThatWaitsComesInAClosingCall) {
  Reciter model("aEN");
  Streamed streamed;
  const Generated result = generate(std::ref(model), request(&streamed, {"END"}));
  EXPECT_EQ(result.reason, StopReason::kEndOfText);
  EXPECT_EQ(result.text, "aEN");
  EXPECT_EQ(streamed.closing_calls, 1);
  EXPECT_EQ(streamed.texts.back(), "EN");
}

TEST(GenerateTest, StreamsWholeCodePoints) {
  Reciter model("é€x\xE2\x82");
  Streamed streamed;
  const Generated result = generate(std::ref(model), request(&streamed));
  EXPECT_THAT(streamed.texts, testing::ElementsAre("", "é", "", "", "€", "x", "", "", "\xE2\x82"));
  EXPECT_EQ(result.text, "é€x\xE2\x82");
}

// A stop string that is itself an unfinished code point is found in what is left at the end.
TEST(GenerateTest, TheRestMayHoldTheStopString) {
  Reciter model("a\xE2\x82");
  Streamed streamed;
  const Generated result = generate(std::ref(model), request(&streamed, {"\x82"}));
  EXPECT_EQ(result.reason, StopReason::kStopString);
  EXPECT_EQ(result.text, "a\xE2");
}

TEST(GenerateTest, WithoutDecodeThereAreTokensOnly) {
  Reciter model("ab");
  const Generated result =
      generate(std::ref(model), {.prompt = {1}, .sampling = {.greedy = true}, .end_of_text = kEnd});
  EXPECT_THAT(result.tokens, testing::ElementsAre('a', 'b'));
  EXPECT_EQ(result.text, "");
}

TEST(GenerateTest, TheRepetitionPenaltySeesThePromptAndTheOutput) {
  const StepFunction step = [](std::span<const int32_t>) { return std::vector<float>{4, 3, 2.5, 0}; };
  const Generated result =
      generate(step, {.prompt = {0}, .sampling = {.greedy = true, .repetition_penalty = 2, .max_new_tokens = 2}});
  EXPECT_THAT(result.tokens, testing::ElementsAre(1, 2));
}

TEST(GenerateTest, SequencesOfABatchDiffer) {
  const StepFunction step = [](std::span<const int32_t>) { return std::vector<float>(50, 0.0F); };
  const auto run = [&](uint64_t sequence) {
    return generate(step, {.prompt = {0}, .sampling = {.max_new_tokens = 20}, .sequence = sequence}).tokens;
  };
  EXPECT_EQ(run(0), run(0));
  EXPECT_NE(run(0), run(1));
}

TEST(GenerateTest, ErrorsAndInterruptionsPassThrough) {
  const StepFunction diverged = [](std::span<const int32_t>) { return std::vector<float>{NAN}; };
  EXPECT_THROW(generate(diverged, {.prompt = {0}}), Error);
  Reciter model("abc");
  EXPECT_THROW(generate(std::ref(model), {.end_of_text = kEnd}), Error);
  EXPECT_THROW(generate(std::ref(model), {.prompt = {0}, .sampling = {.stop = {"x"}}, .end_of_text = kEnd}), Error);
  GenerateRequest interrupted = {
      .prompt = {1}, .on_token = [](std::optional<int32_t>, std::string_view) { throw Interrupted("Ctrl-C"); }};
  EXPECT_THROW(generate(std::ref(model), interrupted), Interrupted);
}

}  // namespace generate_test
}  // namespace headshare
