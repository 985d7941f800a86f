#include "headshare/decode/beam/beam_search.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "headshare/base/testing.h"
#include "headshare/decode/beam/test_model.h"
#include "headshare/decode/beam/test_slow_search.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int32_t kEnd = 1;

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// Makes scores that follow from all that was seen. They have `levels` distinct values: few make ties.
HistoryScores random_scores(uint64_t seed, uint64_t levels) {
  return [=](int64_t sentence, std::span<const int64_t> history, std::span<float> scores) {
    uint64_t state = mix(seed * 1000003 + static_cast<uint64_t>(sentence));
    for (const int64_t token : history) state = mix(state + static_cast<uint64_t>(token) + 1);
    for (float& score : scores) {
      state = mix(state + 0x9E3779B97F4A7C15ULL);
      score = static_cast<float>(state % levels) * 6 / static_cast<float>(levels);
    }
  };
}

// Gives the same scores behind every history.
HistoryScores fixed_scores(const std::vector<float>& values) {
  return [=](int64_t, std::span<const int64_t>, std::span<float> scores) {
    std::copy(values.begin(), values.end(), scores.begin());
  };
}

std::vector<std::vector<Hypothesis>> search(const SearchRequest& request, int64_t vocabulary,
                                            const HistoryScores& scores) {
  HistoryModel model(static_cast<int64_t>(request.sentences.size()), vocabulary, scores);
  return beam_search(model, request);
}

std::vector<std::vector<int32_t>> tokens_of(const std::vector<Hypothesis>& hypotheses) {
  std::vector<std::vector<int32_t>> tokens;
  for (const Hypothesis& one : hypotheses) tokens.push_back(one.tokens);
  return tokens;
}

void expect_same(const std::vector<Hypothesis>& actual, const std::vector<Hypothesis>& expected) {
  ASSERT_EQ(tokens_of(actual), tokens_of(expected));
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].token_scores, expected[i].token_scores);
    EXPECT_EQ(actual[i].sum, expected[i].sum);
    EXPECT_EQ(actual[i].score, expected[i].score);
    EXPECT_EQ(actual[i].ended, expected[i].ended);
  }
}

SearchRequest random_request(std::mt19937& random, int64_t vocabulary) {
  const auto below = [&](uint32_t most) { return static_cast<int64_t>(random() % most); };
  const std::vector<double> penalties = {0, 1, 0.6, 2, -1};
  SearchRequest request{.start = 0, .end_of_text = kEnd};
  BeamOptions& options = request.options;
  options.beam = 1 + below(6);
  options.n_best = 1 + below(static_cast<uint32_t>(options.beam));
  options.length_penalty = penalties[static_cast<size_t>(below(5))];
  options.length_norm = static_cast<LengthNorm>(below(3));
  options.early_stopping = static_cast<EarlyStopping>(below(3));
  options.max_length = 1 + below(8);
  options.min_length = below(static_cast<uint32_t>(options.max_length + 1));
  if (below(3) == 0) options.max_length_ratio = 0.5;
  options.max_length_extra = below(4);
  options.no_repeat_ngram = below(4);
  if (below(2) == 0) request.suppressed = {0};
  if (below(4) == 0 && vocabulary > 3) request.forced_first = 3;
  if (below(4) == 0) request.forced_last = kEnd;
  for (int64_t i = below(6); i >= 0; --i) {
    SearchSentence& sentence = request.sentences.emplace_back();
    sentence.source_length = below(20);
    for (int64_t j = below(4); j > 0; --j) sentence.prefix.push_back(static_cast<int32_t>(below(5) % vocabulary));
  }
  return request;
}

// This test also proves that rows, moves and keeps fit what the search believes: a wrong history gives other scores.
TEST(BeamSearchTest, AgreesWithASlowSearch) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 1500; ++trial) {
    const int64_t vocabulary = std::vector<int64_t>{2, 4, 9, 70}[random() % 4];
    const HistoryScores scores = random_scores(random(), random() % 3 == 0 ? 4 : 1 << 20);
    const SearchRequest request = random_request(random, vocabulary);
    SCOPED_TRACE(join_text("trial ", trial, ", beam ", request.options.beam, ", V ", vocabulary));
    const auto results = search(request, vocabulary, scores);
    ASSERT_EQ(results.size(), request.sentences.size());
    for (size_t i = 0; i < results.size(); ++i) {
      expect_same(results[i], slow_search(request, i, vocabulary, scores));
      ASSERT_GE(results[i].size(), 1u);
    }
    if (HasFailure()) return;
  }
}

TEST(BeamSearchTest, SentencesDoNotDependOnTheBatch) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    const SearchRequest request = random_request(random, 9);
    const HistoryScores scores = random_scores(random(), 1 << 20);
    const auto together = search(request, 9, scores);
    for (size_t i = 0; i < together.size(); ++i) {
      SearchRequest alone = request;
      alone.sentences = {request.sentences[i]};
      expect_same(
          search(alone, 9, [&](int64_t, auto history, auto out) { scores(static_cast<int64_t>(i), history, out); })[0],
          together[i]);
    }
  }
}

// Finds the best of all sequences of up to `most` tokens, by trying each one.
void try_all(const SearchRequest& request, const HistoryScores& scores, std::vector<int64_t> history, double sum,
             double* best) {
  std::vector<float> row(4);
  scores(0, history, row);
  double total = 0;
  for (const float score : row) total += std::exp(static_cast<double>(score));
  const auto length = static_cast<int64_t>(history.size());
  for (int64_t token = 0; token < 4; ++token) {
    const double next = sum + row[static_cast<size_t>(token)] - std::log(total);
    if (token == kEnd || length == request.options.max_length) {
      *best = std::max(*best, next / length_divisor(request.options, length));
      continue;
    }
    std::vector<int64_t> longer = history;
    longer.push_back(token);
    try_all(request, scores, longer, next, best);
  }
}

TEST(BeamSearchTest, AWideBeamFindsTheOptimum) {
  for (const LengthNorm norm : {LengthNorm::kNone, LengthNorm::kLength, LengthNorm::kGnmt}) {
    for (uint64_t seed = 0; seed < 30; ++seed) {
      SearchRequest request{.end_of_text = kEnd, .sentences = {{}}};
      request.options = {.beam = 256, .length_norm = norm, .max_length = 4, .early_stopping = EarlyStopping::kNever};
      const HistoryScores scores = random_scores(seed, 1 << 20);
      double best = -INFINITY;
      try_all(request, scores, {0}, 0, &best);
      EXPECT_NEAR(search(request, 4, scores)[0][0].score, best, 1e-5) << seed;
    }
  }
}

TEST(BeamSearchTest, GreedyTakesTheBestTokenEachTime) {
  SearchRequest request{.end_of_text = kEnd, .sentences = {{}}};
  request.options = {.beam = 1, .max_length = 4};
  const Hypothesis cut = search(request, 4, fixed_scores({0, 1, 2, 2}))[0][0];
  EXPECT_THAT(cut.tokens, ElementsAre(2, 2, 2, 2));  // of equal ones the first
  EXPECT_FALSE(cut.ended);
  EXPECT_NEAR(cut.score, 2 - std::log(1 + std::exp(1) + 2 * std::exp(2)), 1e-6);
  EXPECT_NEAR(cut.sum, 4 * cut.score, 1e-5);
  const Hypothesis ended = search(request, 4, fixed_scores({0, 3, 2, 2}))[0][0];
  EXPECT_THAT(ended.tokens, ElementsAre(kEnd));
  EXPECT_TRUE(ended.ended);
}

TEST(BeamSearchTest, ABeamLargerThanTheVocabulary) {
  SearchRequest request{.end_of_text = kEnd, .sentences = {{}}};
  request.options = {.beam = 5, .n_best = 5, .max_length = 3};
  // There are only four sequences: "1", "0 1", "0 0 1", "0 0 0".
  EXPECT_THAT(
      tokens_of(search(request, 2, fixed_scores({0, 0}))[0]),
      testing::UnorderedElementsAre(ElementsAre(1), ElementsAre(0, 1), ElementsAre(0, 0, 1), ElementsAre(0, 0, 0)));
  request.end_of_text = 0;
  EXPECT_THAT(tokens_of(search(request, 1, fixed_scores({0}))[0]), ElementsAre(ElementsAre(0)));
}

TEST(BeamSearchTest, ASentenceWithoutAllowedTokensEndsAsItIs) {
  for (const int64_t beam : {1, 3}) {
    SearchRequest request{.end_of_text = kEnd, .suppressed = {0}, .sentences = {{}}};
    request.options = {.beam = beam, .min_length = 9, .max_length = 9, .no_repeat_ngram = 1};
    const Hypothesis one = search(request, 3, fixed_scores({0, 0, 0}))[0][0];
    EXPECT_THAT(one.tokens, ElementsAre(2));
    EXPECT_FALSE(one.ended);
    request.suppressed = {0, 2};
    EXPECT_THAT(search(request, 3, fixed_scores({0, 0, 0}))[0][0].tokens, IsEmpty());
  }
}

TEST(BeamSearchTest, FinishedSentencesLeaveTheBatch) {
  SearchRequest request{.end_of_text = kEnd, .sentences = {{}, {}, {}, {}}};
  request.options = {.beam = 2, .max_length = 10, .early_stopping = EarlyStopping::kTrue};
  // Sentence i ends after i + 1 tokens.
  HistoryModel model(4, 8, [](int64_t sentence, std::span<const int64_t> history, std::span<float> scores) {
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<float>(i) / 100;
    scores[kEnd] = static_cast<int64_t>(history.size()) > sentence + 1 ? 20 : -20;
  });
  const auto results = beam_search(model, request);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(results[i][0].tokens.size(), i + 2);
  EXPECT_EQ(model.steps, 5);
  EXPECT_EQ(model.rows_fed, 4 + 2 * (4 + 3 + 2 + 1));  // at first one row for each
}

// A sentence's room is its own: one with little does not cut the others.
TEST(BeamSearchTest, RoomEndsASentence) {
  SearchRequest request{.end_of_text = kEnd, .sentences = {{}, {.room = 3}, {.room = 1}}};
  request.options = {.beam = 2, .min_length = 6, .max_length = 6};
  const auto results = search(request, 50, random_scores(6, 1 << 20));
  EXPECT_EQ(results[0][0].tokens.size(), 6U);
  EXPECT_EQ(results[1][0].tokens.size(), 3U);
  EXPECT_EQ(results[2][0].tokens.size(), 1U);
}

TEST(BeamSearchTest, CanBeEndedAtEachStep) {
  SearchRequest request{.end_of_text = kEnd, .sentences = {{}}};
  request.options = {.beam = 2, .min_length = 9, .max_length = 9};
  int steps = 0;
  request.each_step = [&steps] {
    if (++steps == 4) throw Error("stopped");
  };
  EXPECT_EQ(error_message([&] { search(request, 50, random_scores(6, 1 << 20)); }), "stopped");
}

// The vocabulary has enough scores for several threads, whose tensors may come from either mode of the caller.
TEST(BeamSearchTest, ThreadsFindTheSame) {
  const int64_t vocabulary = 40000;
  const HistoryScores scores = random_scores(8, 1 << 20);
  SearchRequest request{.end_of_text = kEnd, .sentences = {{}, {}, {}, {}}};
  request.options = {.beam = 2, .max_length = 4};
  const auto plain = search(request, vocabulary, scores);
  const c10::InferenceMode inference;
  const auto results = search(request, vocabulary, scores);
  for (size_t i = 0; i < results.size(); ++i) {
    expect_same(results[i], slow_search(request, i, vocabulary, scores));
    expect_same(plain[i], results[i]);
  }
}

// Greedy rows never move, nor does the first branching: all rows of a sentence have seen the same tokens.
TEST(BeamSearchTest, RowsThatAgreeAreNotCopied) {
  SearchRequest request{.end_of_text = kEnd, .forced_first = 3, .sentences = {{}}};
  for (const auto& [beam, length] : {std::pair{1, 9}, std::pair{4, 3}}) {
    request.options = {.beam = beam, .max_length = length};
    HistoryModel model(1, 50, random_scores(6, 1 << 20));
    beam_search(model, request);
    EXPECT_EQ(model.moved, 0) << beam;
  }
  request.options.max_length = 9;
  HistoryModel model(1, 50, random_scores(6, 1 << 20));
  beam_search(model, request);
  EXPECT_GT(model.moved, 0);
}

TEST(BeamSearchTest, SamplingDrawsWhatTheSamplerDraws) {
  const HistoryScores scores = random_scores(7, 1 << 20);
  SearchRequest request{.sampling = SamplingOptions{.top_k = 5, .repetition_penalty = 1.3, .seed = 11},
                        .end_of_text = kEnd,
                        .suppressed = {0}};
  request.options = {.beam = 1, .min_length = 3, .max_length = 12};
  for (const uint64_t sequence : {5, 9, 5}) request.sentences.push_back({.prefix = {4}, .sequence = sequence});
  const auto results = search(request, 20, [&](int64_t, auto history, auto out) { scores(0, history, out); });
  EXPECT_EQ(results[0][0].tokens, results[2][0].tokens);
  EXPECT_NE(results[0][0].tokens, results[1][0].tokens);
  Sampler sampler(*request.sampling, 5);
  std::vector<int32_t> history = {0, 4};
  for (size_t i = 0; i < results[0][0].tokens.size(); ++i) {
    std::vector<float> row(20);
    scores(0, std::vector<int64_t>(history.begin(), history.end()), row);
    const Tensor plain = at::log_softmax(at::tensor(row), 0);
    row[0] = -INFINITY;
    if (i < 3) row[kEnd] = -INFINITY;
    history.push_back(sampler.next(row, history));
    EXPECT_EQ(results[0][0].tokens[i], history.back());
    EXPECT_FLOAT_EQ(results[0][0].token_scores[i], plain[history.back()].item<float>());
  }
}

TEST(BeamSearchTest, NoSentencesNeedNoModel) {
  HistoryModel model(0, 4, fixed_scores({0, 0, 0, 0}));
  EXPECT_THAT(beam_search(model, {}), IsEmpty());
  EXPECT_EQ(model.steps, 0);
}

TEST(BeamSearchTest, RefusesBadScores) {
  SearchRequest request{.end_of_text = kEnd, .sentences = {{}, {}}};
  for (const int64_t beam : {1, 3}) {
    request.options.beam = beam;
    const auto failure = [&](float bad) {
      return error_message([&] {
        search(request, 6, [=](int64_t sentence, std::span<const int64_t> history, std::span<float> scores) {
          for (size_t i = 0; i < scores.size(); ++i) scores[i] = i == kEnd ? -9.0F : 0.0F;
          if (sentence == 1 && history.size() == 3) {
            if (bad < 0) std::fill(scores.begin(), scores.end(), bad);
            scores[4] = bad;
          }
        });
      });
    };
    EXPECT_THAT(failure(NAN), HasSubstr("sentence 1 of the batch, after 2 tokens: the score of token 4 is nan"));
    EXPECT_THAT(failure(INFINITY), AllOf(HasSubstr("token 4 is inf"), HasSubstr("checkpoint")));
    EXPECT_THAT(failure(-INFINITY), HasSubstr("scores of all 6 tokens are -infinity"));
    EXPECT_EQ(failure(0), "no error");
  }
}

TEST(BeamSearchTest, RefusesWhatDoesNotFit) {
  SearchRequest request{.end_of_text = kEnd, .sentences = {{}}};
  HistoryModel narrow(1, 6, fixed_scores({0, 0, 0, 0, 0, 0}));
  request.options.beam = 0;
  EXPECT_THAT(error_message([&] { beam_search(narrow, request); }), HasSubstr("beam must lie in 1..1024, not 0"));
  request.options.beam = 2;
  request.options.length_penalty = NAN;
  EXPECT_THAT(error_message([&] { beam_search(narrow, request); }), HasSubstr("length-penalty"));
  request.options.length_penalty = 1;
  request.sampling = SamplingOptions{};
  EXPECT_THAT(error_message([&] { beam_search(narrow, request); }), HasSubstr("set beam to 1, it is 2"));
  request.sampling.reset();
  request.end_of_text = 6;
  EXPECT_THAT(error_message([&] { beam_search(narrow, request); }),
              HasSubstr("end-of-text is token 6, outside the model's vocabulary of 6"));
}

}  // namespace
}  // namespace headshare
