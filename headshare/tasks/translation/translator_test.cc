#include "headshare/tasks/translation/translator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/base/testing.h"
#include "headshare/decode/beam/beam_search.h"
#include "headshare/models/testing.h"
#include "headshare/tasks/translation/model_steps.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/train_tokenizer.h"

namespace headshare {
namespace {

using testing::HasSubstr;

constexpr int64_t kVocabulary = 17;

EncoderDecoder random_model(const std::string& scheme, PositionKind positions = PositionKind::kSinusoidal) {
  EncoderDecoderOptions options;
  options.vocabulary = kVocabulary;
  options.context = 24;
  options.layers = 2;
  options.positions = positions;
  options.attention.scheme = scheme;
  options.attention.d_model = 16;
  options.attention.heads = 4;
  options.marks = {.start = 0, .end = 1};
  EncoderDecoder model(resolve(options));
  initialise(*model, 1);
  randomise(*model);
  model->eval();
  return model;
}

// WholeSteps is a model without caches: every step computes every row from its first token on.
class WholeSteps : public StepScores {
 public:
  WholeSteps(const EncoderDecoder& model, const std::vector<std::vector<int32_t>>& sources)
      : model_(model), sources_(sources), rows_(sources.size()) {}

  Tensor next(const std::vector<int64_t>& last) override {
    const at::NoGradGuard no_grad;
    std::vector<Tensor> scores;
    for (size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].push_back(last[i]);
      const std::vector<int32_t>& source = sources_[i / static_cast<size_t>(beam_)];
      const std::vector<int64_t> ids(source.begin(), source.end());
      const EncodedSource read = model_->encode({.ids = at::tensor(ids, at::kLong).unsqueeze(0)});
      const Tensor hidden = model_->hidden(at::tensor(rows_[i], at::kLong).unsqueeze(0), read);
      scores.push_back(model_->logits(hidden.select(1, -1)));
    }
    return at::cat(scores);
  }
  void widen(int64_t beam) override {
    std::vector<std::vector<int64_t>> wide;
    for (const auto& row : rows_) wide.insert(wide.end(), static_cast<size_t>(beam), row);
    rows_ = wide;
    beam_ = beam;
  }
  void move(std::span<const RowMove> moves) override {
    for (const RowMove& one : moves) rows_[static_cast<size_t>(one.to)] = rows_[static_cast<size_t>(one.from)];
  }
  void keep(std::span<const int64_t> sentences) override {
    std::vector<std::vector<int64_t>> rows;
    std::vector<std::vector<int32_t>> sources;
    for (const int64_t sentence : sentences) {
      sources.push_back(sources_[static_cast<size_t>(sentence)]);
      for (int64_t row = 0; row < beam_; ++row) rows.push_back(rows_[static_cast<size_t>(sentence * beam_ + row)]);
    }
    rows_ = rows;
    sources_ = sources;
  }

 private:
  EncoderDecoder model_;
  int64_t beam_ = 1;
  std::vector<std::vector<int32_t>> sources_;
  std::vector<std::vector<int64_t>> rows_;
};

std::vector<std::vector<int32_t>> some_sources() {
  return {{5, 9, 3, 1}, {7, 1}, {2, 2, 8, 13, 4, 1}, {16, 11, 1}, {6, 1}};
}

constexpr double kRounding = 1e-4;  // rounding errors of a score

// Tells whether a hypothesis is among others, at its score. Two whose scores are equal but for rounding may change
// places.
bool is_among(const Hypothesis& one, const std::vector<Hypothesis>& others) {
  return std::any_of(others.begin(), others.end(), [&](const Hypothesis& other) {
    return other.tokens == one.tokens && std::abs(other.score - one.score) < kRounding;
  });
}

class EveryScheme : public testing::TestWithParam<std::string> {};

// Caches that are filled once, moved and cut give what a model without caches gives, to the last token.
TEST_P(EveryScheme, SearchesAsWithoutCaches) {
  for (const PositionKind positions : {PositionKind::kSinusoidal, PositionKind::kRotary, PositionKind::kAlibi}) {
    if (!supports(GetParam(), positions)) continue;
    const EncoderDecoder model = random_model(GetParam(), positions);
    for (const int64_t beam : {1, 3, 4}) {
      SearchRequest request{.options = {.beam = beam, .n_best = beam, .max_length = 9, .max_length_ratio = 1.5}};
      request.options.max_length_extra = 2;
      request.start = 0;
      request.end_of_text = 1;
      for (const auto& source : some_sources()) {
        request.sentences.push_back({.source_length = static_cast<int64_t>(source.size())});
      }
      ModelSteps steps(model, padded(some_sources(), at::kCPU), /*capacity=*/10);
      WholeSteps whole(model, some_sources());
      const auto found = beam_search(steps, request), wanted = beam_search(whole, request);
      ASSERT_EQ(found.size(), wanted.size());
      for (size_t s = 0; s < found.size(); ++s) {
        ASSERT_EQ(found[s].size(), wanted[s].size());
        for (size_t i = 0; i < found[s].size(); ++i) {
          EXPECT_TRUE(is_among(found[s][i], wanted[s]))
              << position_name(positions) << beam << s << i << testing::PrintToString(found[s][i].tokens);
          EXPECT_NEAR(found[s][i].score, wanted[s][i].score, kRounding);
          if (i > 0) EXPECT_NE(found[s][i].tokens, found[s][i - 1].tokens);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, EveryScheme, testing::ValuesIn(scheme_names()));

// The memory of a sentence is kept once, however many beams there are.
TEST(ModelStepsTest, CrossAttentionHasNoBeams) {
  const EncoderDecoder model = random_model("mha");
  const PaddedIds source = padded(some_sources(), at::kCPU);
  ModelSteps one(model, source, /*capacity=*/4), eight(model, source, /*capacity=*/4);
  one.next(std::vector<int64_t>(5, 0));
  eight.next(std::vector<int64_t>(5, 0));
  EXPECT_EQ(eight.cache_bytes(), one.cache_bytes());
  eight.widen(8);
  eight.next(std::vector<int64_t>(40, 0));
  const int64_t own = 5 * 4 * measure(model->options()).cache_bytes_per_token;
  EXPECT_EQ(eight.cache_bytes() - one.cache_bytes(), 7 * own);
}

TEST(PaddedTest, HidesPaddingAlone) {
  const PaddedIds ragged = padded(std::vector<std::vector<int32_t>>{{3, 4}, {5}}, at::kCPU);
  EXPECT_TRUE(at::equal(ragged.visible, at::tensor({1, 1, 1, 0}, at::kInt).view({2, 2}).to(at::kBool)));
  EXPECT_FALSE(padded(std::vector<std::vector<int32_t>>{{3, 4}, {5, 6}}, at::kCPU).visible.defined());
}

}  // namespace
}  // namespace headshare
