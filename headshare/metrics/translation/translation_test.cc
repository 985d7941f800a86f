#include <gmock/gmock.h>

#include <cmath>

#include "headshare/base/testing.h"
#include "headshare/metrics/translation/bleu.h"
#include "headshare/metrics/translation/chrf.h"
#include "headshare/metrics/translation/edit_table.h"
#include "headshare/metrics/translation/ngrams.h"
#include "headshare/metrics/translation/numpy_generator.h"
#include "headshare/metrics/translation/resampling.h"
#include "headshare/metrics/translation/shifted_edits.h"
#include "headshare/metrics/translation/signature.h"
#include "headshare/metrics/translation/ter.h"
#include "headshare/metrics/translation/words.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Words = std::vector<std::string_view>;

std::string joined(const std::string& text) {
  std::string result;
  for (const std::string_view word : split_words(text)) result += (result.empty() ? "" : " ") + std::string(word);
  return result;
}

TEST(TranslationWords, AreCutAtPythonsWhiteSpace) {
  EXPECT_EQ(split_words(" a\u00a0b\u3000\x1c"
                        "c\u200bd\t"),
            (Words{"a", "b", "c\u200bd"}));
  EXPECT_EQ(split_words(" \u2003 "), Words{});
  EXPECT_EQ(strip_right(" é\u2028 \u0085"), " é");
  EXPECT_EQ(strip("\u1680 é"), "é");
}

TEST(TranslationTokenizers, CutAsTheirRulesSay) {
  EXPECT_EQ(joined(tokenize(BleuTokenizer::k13a, "\"1,000.5\" isn't 3-4, a.b &amp;quot;<skipped>c.")),
            "\" 1,000.5 \" isn't 3 - 4 , a . b & quot ; c .");
  EXPECT_EQ(joined(tokenize(BleuTokenizer::k13a, "&amp;lt;&gt;")), "< >");
  // A sign that nothing comes before stays with a number.
  EXPECT_EQ(joined(tokenize(BleuTokenizer::kIntl, "»1,000 €5… 2017.")), "»1,000 € 5 … 2017.");
  EXPECT_EQ(joined(tokenize(BleuTokenizer::kZh, "你好abc，1.5")), "你 好 abc ， 1.5");
  EXPECT_EQ(joined(tokenize(BleuTokenizer::kChar, "aé b")), "a é b");
  EXPECT_EQ(joined(tokenize(BleuTokenizer::kNone, "a.b  c")), "a.b c");
}

TEST(TranslationTokenizers, CutAsTercom) {
  const std::string line = "The man's &quot;dog&quot;, 1,000.";
  EXPECT_EQ(joined(tercom_words({}, line)), "the man's &quot;dog&quot;, 1,000.");
  EXPECT_EQ(joined(tercom_words({.case_sensitive = true, .normalized = true}, line)), "The man 's \" dog \" , 1,000 .");
  EXPECT_EQ(joined(tercom_words({.no_punctuation = true, .asian_support = true}, "a, 「b」。")), "a b");
  EXPECT_EQ(joined(tercom_words({.normalized = true, .asian_support = true}, "中文、カ")), "中 文 、 カ");
}

TEST(NgramMatcherTest, ClipsByTheReferenceThatHasMost) {
  NgramMatcher matcher(3);
  const std::vector<Symbols> references = {{1, 1, 2}, {1, 2, 1, 2}};
  EXPECT_THAT(matcher.matches({1, 1, 1, 2, 3}, references), ElementsAre(3, 2, 1));
  EXPECT_THAT(matcher.matches({}, references), ElementsAre(0, 0, 0));
  EXPECT_THAT(matcher.matches({1, 2}, std::vector<Symbols>{{}}), ElementsAre(0, 0, 0));
}

TEST(ShiftedEdits, AShiftIsOneEdit) {
  EXPECT_EQ(shifted_edits({1, 2, 3, 4}, {1, 2, 3, 4}), 0);
  EXPECT_EQ(shifted_edits({3, 4, 5, 1, 2}, {1, 2, 3, 4, 5}), 1);
  EXPECT_EQ(shifted_edits({}, {1, 2}), 2);
  EXPECT_EQ(shifted_edits({1, 2, 3}, {}), 3);
  EXPECT_EQ(shifted_edits({1, 7, 3}, {1, 2, 3, 4}), 2);
}

TEST(ShiftedEdits, LengthsMayBeVeryUnequal) {
  EXPECT_EQ(shifted_edits(std::vector<uint32_t>(2000, 1), {1}), 1999);
  EXPECT_EQ(shifted_edits({1, 1, 1}, std::vector<uint32_t>(2000, 1)), 1997);
}

TEST(EditTableTest, DistancesFromAPrefixAreThoseOfTheWhole) {
  const EditTable::Words reference = {1, 2, 3, 4, 5, 6};
  EditTable table(reference, 5);
  EXPECT_EQ(table.set_base({1, 3, 4, 9, 6}), 2);
  const WordAlignment alignment = table.base_alignment();
  EXPECT_THAT(alignment.word_of, ElementsAre(0, 0, 1, 2, 3, 4));
  EXPECT_THAT(alignment.reference_wrong, ElementsAre(0, 1, 0, 0, 1, 0));
  EXPECT_THAT(alignment.word_wrong, ElementsAre(0, 0, 0, 1, 0));
  const EditTable::Words other = {1, 3, 6, 4, 9};
  EXPECT_EQ(table.distance(other, 2), 4);
  EXPECT_EQ(EditTable(reference, 5).set_base(other), 4);
}

// The expected numbers are the published example of numpy's default generator; the others are compared in
// tests/oracles.
TEST(NumpyGeneratorTest, DrawsNumpysNumbers) {
  NumpyGenerator generator(12345);
  std::vector<uint32_t> numbers(8);
  generator.draw_below(3004, numbers);
  EXPECT_THAT(numbers, ElementsAre(2100, 682, 2369, 951, 613, 2395, 1930, 2031));
}

TEST(MixedNumberTest, SinglesAreContagious) {
  const MixedNumber single = MixedNumber::of_float(3);
  EXPECT_EQ((MixedNumber(1) / MixedNumber(3)).value, 1.0 / 3);
  EXPECT_EQ((MixedNumber(1) / single).value, double{1.0F / 3.0F});
  EXPECT_TRUE((MixedNumber(1) / single).single);
  EXPECT_FALSE(MixedArray(std::vector<MixedNumber>{1, single}).single());
}

const Segments kSystem = {"the cat sat on the mat", "hello world", ""};
const ReferenceTexts kReferences = {{"the cat is on the mat", "hello there world", ""},
                                    {"there is a cat on the mat", "hello world", "x"}};

double score_of(const TranslationMetric& metric, const ReferenceTexts& references) {
  return metric.score(column_sums(metric.measure(kSystem, references))).value;
}

// Counting by hand gives: 1-grams 7 of 8, 2-grams 4 of 6, 3-grams 1 of 4 ("on the mat"), 4-grams 0 of 3, smoothed to
// 1/2 of 3.
TEST(BleuTest, CountsOverReferencesAndSmooths) {
  const Bleu bleu({});
  const std::vector<MixedNumber> sums = column_sums(bleu.measure(kSystem, kReferences));
  std::vector<double> values;
  for (const MixedNumber& one : sums) values.push_back(one.value);
  EXPECT_THAT(values, ElementsAre(8, 8, 7, 4, 1, 0, 8, 6, 4, 3));
  EXPECT_NEAR(bleu.score(sums).value, 100 * std::pow(7.0 / 8 * 4 / 6 * 1 / 4 / 6, 0.25), 1e-12);
  EXPECT_EQ(bleu.detail(sums), "87.5/66.7/25.0/16.7 (BP = 1.000 ratio = 1.000 hyp_len = 8 ref_len = 8)");
  EXPECT_EQ(Bleu({.smoothing = BleuSmoothing::kNone}).score(sums).value, 0);
}

TEST(BleuTest, RefusesValuesThatNoMethodTakes) {
  EXPECT_THAT(error_message([&] { Bleu({.smooth_value = 1}); }), HasSubstr("exp has none"));
  EXPECT_THAT(error_message([&] { Bleu({.smoothing = BleuSmoothing::kFloor, .smooth_value = -1}); }),
              HasSubstr("not -1"));
}

TEST(ChrfTest, TakesTheBetterReference) {
  const Chrf chrf({.char_order = 1});
  const SegmentTable table = chrf.measure({"ab"}, {{"ax"}, {"ab"}});
  EXPECT_THAT(table.values, ElementsAre(2, 2, 2));
  EXPECT_EQ(chrf.score(column_sums(table)).value, 100);
  EXPECT_EQ(Chrf({.word_order = 2}).name(), "chrF2++");
  // chrF++ sets one sign apart: "(hi)" is "(hi" and ")", but "(hi" is "(" and "hi".
  EXPECT_THAT(Chrf({.char_order = 0, .word_order = 1}).measure({"(hi) (x"}, {{"(hi )"}}).values, ElementsAre(4, 3, 2));
}

TEST(ChrfTest, RefusesOrders) {
  EXPECT_THAT(error_message([&] { Chrf({.char_order = 65}); }), HasSubstr("must be 0..64, not 65"));
  EXPECT_THAT(error_message([&] { Chrf({.char_order = 0}); }), HasSubstr("both 0"));
  EXPECT_THAT(error_message([&] { Chrf({.beta = 0}); }), HasSubstr("beta must be 1..1000, not 0"));
}

TEST(TerTest, FewestEditsOverTheMeanLength) {
  const Ter ter({});
  EXPECT_THAT(ter.measure(kSystem, kReferences).values, ElementsAre(1, 6.5, 0, 2.5, 0, 0.5));
  EXPECT_NEAR(score_of(ter, kReferences), 100 / 9.5, 1e-12);
  EXPECT_EQ(Ter({}).score(std::vector<MixedNumber>{3, 0}).value, 100);
  EXPECT_EQ(Ter({}).score(std::vector<MixedNumber>{0, 0}).value, 0);
}

TEST(TranslationMetricTest, RefusesWhatDoesNotFitTogether) {
  const Ter ter({});
  EXPECT_THAT(error_message([&] { ter.measure({}, {{}}); }), HasSubstr("at least one segment"));
  EXPECT_THAT(error_message([&] { ter.measure({"a"}, {}); }), HasSubstr("at least one reference"));
  EXPECT_THAT(error_message([&] {
                ter.measure({"a"}, {{"a"}, {"a", "b"}});
              }),
              HasSubstr("the system has 1, reference 2 has 2"));
}

TEST(SignatureTest, HasSacrebleusOrder) {
  const Bleu bleu({.lowercase = true, .smoothing = BleuSmoothing::kFloor});
  EXPECT_EQ(signature(bleu, {.references = 2, .bootstrap = 100, .seed = 7, .version = "headshare-0"}),
            "nrefs:2|bs:100|seed:7|case:lc|eff:no|tok:13a|smooth:floor[0.10]|version:headshare-0");
  EXPECT_EQ(signature(Chrf({}), {.randomisation = 9, .version = "x"}),
            "nrefs:1|ar:9|seed:12345|case:mixed|eff:yes|nc:6|nw:0|space:no|version:x");
  EXPECT_EQ(signature(Ter({}), {.version = "x"}), "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:x");
}

TEST(ResamplingTest, EqualSystemsAreNotDifferentByChance) {
  const Ter ter({});
  const SegmentTable table = ter.measure(kSystem, kReferences);
  const Resampling resampling{.samples = 99};
  for (const auto& results :
       {paired_bootstrap(ter, {table, table}, resampling), paired_randomisation(ter, {table, table}, resampling)}) {
    EXPECT_FALSE(results[0].p_value);
    EXPECT_EQ(results[1].p_value, 0.01);  // none of the 99 was above 0
  }
}

TEST(ResamplingTest, CanBeInterrupted) {
  const Ter ter({});
  const SegmentTable table = ter.measure(kSystem, kReferences);
  Resampling resampling{.check_interrupted = [] { throw Interrupted("stop"); }};
  EXPECT_THROW(bootstrap_interval(ter, table, resampling), Interrupted);
  EXPECT_THROW(paired_randomisation(ter, {table, table}, resampling), Interrupted);
}

TEST(ResamplingTest, RefusesWhatCannotBeCompared) {
  const Ter ter({});
  const SegmentTable table = ter.measure(kSystem, kReferences);
  EXPECT_THAT(error_message([&] { paired_bootstrap(ter, {table}, {}); }), HasSubstr("two or more systems, not 1"));
  EXPECT_THAT(error_message([&] { bootstrap_interval(ter, table, {.samples = 1}); }),
              HasSubstr("at least 2 samples, not 1"));
  const SegmentTable shorter = ter.measure({"a"}, {{"a"}});
  EXPECT_THAT(error_message([&] {
                paired_randomisation(ter, {table, shorter}, {});
              }),
              HasSubstr("system 2 has 1, the first has 3"));
}

}  // namespace
}  // namespace headshare
