#include "headshare/tasks/translation/corpus_scores.h"

#include <gmock/gmock.h>

#include <numeric>

#include "headshare/base/error.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kReferences = {"the cat sat on the mat today .", "a dog runs in the green park now .",
                                              "two men are talking to each other .", "it rains ."};
const std::vector<std::string> kTranslations = {"the cat sat on a mat today .", "a dog runs in the park .",
                                                "two men talk to each other .", "it rains ."};

// sacreBLEU 2.6.0 gives BLEU 53.3764... and chrF2 76.9... on these lines; tests/oracles/test_translation_scores.py
// compares the metrics themselves. Here the jackknife is computed with the scores of what is left.
TEST(CorpusScores, PseudoValuesAreTheJackknife) {
  const CorpusScores all = score_corpus(kTranslations, kReferences);
  ASSERT_EQ(all.pseudo_values.size(), 4u);
  for (size_t left_out = 0; left_out < 4; ++left_out) {
    std::vector<std::string> translations = kTranslations, references = kReferences;
    translations.erase(translations.begin() + static_cast<ptrdiff_t>(left_out));
    references.erase(references.begin() + static_cast<ptrdiff_t>(left_out));
    const double without = score_corpus(translations, references).bleu.value;
    EXPECT_NEAR(all.pseudo_values[left_out], 4 * all.bleu.value - 3 * without, 1e-9);
  }
}

TEST(CorpusScores, OfManySentencesAverageToBleu) {
  std::vector<std::string> translations, references;
  for (int i = 0; i < 400; ++i) {
    translations.push_back(kTranslations[static_cast<size_t>(i * i % 7 % 4)]);
    references.push_back(kReferences[static_cast<size_t>(i * i % 7 % 4)]);
  }
  const CorpusScores scores = score_corpus(translations, references);
  const double mean = std::accumulate(scores.pseudo_values.begin(), scores.pseudo_values.end(), 0.0) / 400;
  EXPECT_NEAR(mean, scores.bleu.value, 0.05);
  EXPECT_THAT(scores.bleu.signature, HasSubstr("bleu|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:headshare"));
  EXPECT_THAT(scores.chrf.signature, HasSubstr("nc:6|nw:0"));
  ASSERT_TRUE(scores.chrf.interval);  // its numbers: tests/cli/test_translation.py, against sacreBLEU
  EXPECT_LT(scores.chrf.interval->low, scores.chrf.value);
  EXPECT_GT(scores.chrf.interval->high, scores.chrf.value);
}

TEST(CorpusScores, RefusesUnequalFiles) {
  EXPECT_THROW(score_corpus({"a", "b"}, {"a"}), Error);
  EXPECT_THROW(score_corpus({}, {}), Error);
}

}  // namespace
}  // namespace headshare
