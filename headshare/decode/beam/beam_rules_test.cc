#include <gmock/gmock.h>

#include <cmath>

#include "headshare/base/testing.h"
#include "headshare/decode/beam/beam_options.h"
#include "headshare/decode/beam/token_rules.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const BeamOptions& options) {
  return error_message([&] { check_beam_options(options); });
}

TEST(BeamOptionsTest, DivisorsAreTheFormulas) {
  EXPECT_DOUBLE_EQ(length_divisor({.length_penalty = 0.6}, 10), std::pow(10, 0.6));
  EXPECT_DOUBLE_EQ(length_divisor({.length_penalty = -1}, 10), 0.1);
  EXPECT_DOUBLE_EQ(length_divisor({.length_penalty = 0.6, .length_norm = LengthNorm::kGnmt}, 7), std::pow(2, 0.6));
  EXPECT_DOUBLE_EQ(length_divisor({.length_penalty = 0.6, .length_norm = LengthNorm::kNone}, 7), 1);
}

TEST(BeamOptionsTest, LimitFollowsTheSource) {
  EXPECT_EQ(length_limit({.max_length = 50}, 1000), 50);
  EXPECT_EQ(length_limit({.max_length = 50, .max_length_ratio = 1.5, .max_length_extra = 3}, 7), 13);
  EXPECT_EQ(length_limit({.max_length = 50, .max_length_ratio = 1.5, .max_length_extra = 3}, 100), 50);
  EXPECT_EQ(length_limit({.min_length = 20, .max_length_ratio = 1.5, .max_length_extra = 3}, 7), 20);
  EXPECT_EQ(length_limit({.max_length_ratio = 0.1, .max_length_extra = 0}, 0), 1);
}

TEST(BeamOptionsTest, FieldsReadAndWriteEveryOption) {
  BeamOptions options;
  Fields list = fields(options);
  for (const Field& one : list) one.parse(field_text(one.value(), one.name));  // the defaults are in range
  set_field(list, "num-beams", "7", "test");
  set_field(list, "early-stopping", "never", "test");
  set_field(list, "length-norm", "gnmt", "test");
  EXPECT_EQ(options.beam, 7);
  EXPECT_EQ(options.early_stopping, EarlyStopping::kNever);
  EXPECT_EQ(options.length_norm, LengthNorm::kGnmt);
}

TEST(BeamOptionsTest, RefusesWhatIsOutOfRange) {
  EXPECT_EQ(refusal({}), "no error");
  EXPECT_THAT(refusal({.beam = 0}), AllOf(HasSubstr("beam"), HasSubstr("not 0"), HasSubstr("1 is greedy")));
  EXPECT_THAT(refusal({.beam = 1 << 20}), HasSubstr("1..1024"));
  EXPECT_THAT(refusal({.length_penalty = NAN}), AllOf(HasSubstr("length-penalty"), HasSubstr("nan"), HasSubstr("0")));
  EXPECT_THAT(refusal({.length_penalty = INFINITY}), HasSubstr("not inf"));
  EXPECT_THAT(refusal({.beam = 2, .n_best = 3}), HasSubstr("set beam to 3 or more, it is 2"));
  EXPECT_THAT(refusal({.n_best = 0}), HasSubstr("n-best must be at least 1, not 0"));
  EXPECT_THAT(refusal({.min_length = 9, .max_length = 8}), HasSubstr("min-length 9 is above max-length 8"));
  EXPECT_THAT(refusal({.min_length = -1}), HasSubstr("min-length must be at least 0, not -1"));
  EXPECT_THAT(refusal({.max_length = 0}), HasSubstr("max-length must lie in 1..1048576, not 0"));
  EXPECT_THAT(refusal({.max_length_ratio = NAN}), HasSubstr("max-length-ratio"));
  EXPECT_THAT(refusal({.max_length_extra = -1}), HasSubstr("max-length-extra"));
  EXPECT_THAT(refusal({.no_repeat_ngram = -2}), HasSubstr("no-repeat-ngram must be at least 0, not -2"));
}

std::vector<float> ruled(const SearchRequest& request, const RulePosition& position) {
  std::vector<float> scores = {-1, -2, -3, -4};
  TokenRules(request).apply(position, scores);
  return scores;
}

TEST(TokenRulesTest, NgramsDoNotRepeat) {
  const std::vector<int32_t> history = {0, 1, 2, 3, 1};
  SearchRequest request{.end_of_text = 3};
  request.options.no_repeat_ngram = 2;
  EXPECT_THAT(ruled(request, {.history = history, .generated = 4, .limit = 9}), ElementsAre(-1, -2, -INFINITY, -4));
  request.options.no_repeat_ngram = 1;
  EXPECT_THAT(ruled(request, {.history = std::span(history).first(3), .generated = 2, .limit = 9}),
              ElementsAre(-INFINITY, -INFINITY, -INFINITY, -4));
  request.options.no_repeat_ngram = 6;
  EXPECT_THAT(ruled(request, {.history = history, .generated = 4, .limit = 9}), ElementsAre(-1, -2, -3, -4));
}

TEST(TokenRulesTest, EndOfTextWaitsAndPaddingNeverComes) {
  SearchRequest request{.end_of_text = 3, .suppressed = {1}};
  request.options.min_length = 2;
  EXPECT_THAT(ruled(request, {.generated = 1, .limit = 9}), ElementsAre(-1, -INFINITY, -3, -INFINITY));
  EXPECT_THAT(ruled(request, {.generated = 2, .limit = 9}), ElementsAre(-1, -INFINITY, -3, -4));
}

TEST(TokenRulesTest, ForcedTokensAreCertain) {
  const SearchRequest request{.end_of_text = 3, .forced_first = 2, .forced_last = 3};
  EXPECT_THAT(ruled(request, {.behind_start = true, .generated = 0, .limit = 9}),
              ElementsAre(-INFINITY, -INFINITY, 0, -INFINITY));
  EXPECT_THAT(ruled(request, {.generated = 0, .limit = 9}), ElementsAre(-1, -2, -3, -4));  // behind a prefix
  EXPECT_THAT(ruled(request, {.generated = 8, .limit = 9}), ElementsAre(-INFINITY, -INFINITY, -INFINITY, 0));
}

TEST(TokenRulesTest, RefusesWhatContradicts) {
  const SearchRequest both{.suppressed = {5}, .forced_first = 5};
  EXPECT_THAT(error_message([&] { TokenRules{both}; }), HasSubstr("token 5 is forced as the first token"));
  const SearchRequest outside{.end_of_text = 2, .suppressed = {7}};
  EXPECT_THAT(error_message([&] { TokenRules(outside).check_vocabulary(7); }),
              AllOf(HasSubstr("token 7"), HasSubstr("vocabulary of 7")));
  const SearchRequest prefix{.end_of_text = 2, .sentences = {{}, {.prefix = {1, -1}}}};
  EXPECT_THAT(error_message([&] { TokenRules(prefix).check_vocabulary(7); }), HasSubstr("prefix of sentence 1"));
}

}  // namespace
}  // namespace headshare
