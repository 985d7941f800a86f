// Tests hashed words against the vectors of HashFormers' specification, and the tokenizers made of them.
#include <gmock/gmock.h>

#include <bit>
#include <random>
#include <thread>

#include "headshare/base/testing.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/hash/digest.h"
#include "headshare/text/hash/hash_tokenizer.h"
#include "headshare/text/hash/legacy_normal.h"
#include "headshare/text/hash/word_or_symbol.h"
#include "headshare/text/test_support.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// These features are given by hand.
class GivenFeatures : public WordFeatures {
 public:
  explicit GivenFeatures(std::vector<WordFeature> features) : features_(std::move(features)) {}
  std::vector<WordFeature> features(std::string_view) const override { return features_; }
  nlohmann::json settings() const override { return {}; }

 private:
  std::vector<WordFeature> features_;
};

std::shared_ptr<const WordHasher> lsh_of(std::vector<WordFeature> features) {
  return make_lsh_hasher(std::make_shared<GivenFeatures>(std::move(features)));
}

int distance(const Signature& a, const Signature& b) {
  return std::popcount(a.high ^ b.high) + std::popcount(a.low ^ b.low);
}

TEST(HashTest, DigestsOfTheSpecification) {
  const auto hasher = make_md_hasher();
  const auto id = [&](const char* word) { return hasher->bucket(word) + HashTokenizer::kSpecials; };
  EXPECT_EQ(hasher->signature("hello").hex(), "1dec56025892c637efb2601c8e1a3ab4");
  EXPECT_EQ(hasher->signature("the").hex(), "b9386d96710ddd52bc49ff0033ead10f");
  EXPECT_EQ(hasher->signature("!").hex(), "2e9e7c379d2e38e62a269357c7e4f23f");
  EXPECT_EQ(hasher->signature("naïve").hex(), "9d95277bb7ca83fae0262eaa0ae1d98b");
  EXPECT_EQ(id("hello"), 46797);
  EXPECT_EQ(id("the"), 20664);
  EXPECT_EQ(id("!"), 41048);
  EXPECT_EQ(id("naïve"), 27928);
  EXPECT_THAT(chunk_numbers(hasher->signature("hello")),
              ElementsAre(120, 710, 385, 601, 588, 100, 508, 947, 385, 457, 903, 571, 181));
  EXPECT_THAT(chunk_numbers(hasher->signature("the")),
              ElementsAre(741, 903, 870, 626, 56, 470, 176, 74, 1021, 4, 251, 722, 16));
}

TEST(HashTest, BitsAreCountedFromTheTop) {
  const Signature signature{0x8000000000000001, 0x4000000000000000};
  EXPECT_TRUE(signature.bit(0) && signature.bit(63) && signature.bit(65));
  EXPECT_FALSE(signature.bit(1) || signature.bit(64) || signature.bit(127));
  EXPECT_EQ(remainder({1, 0}, 10), 6U);  // 2^64 = 18446744073709551616
}

TEST(HashTest, TheTwisterIsTheStandards) {
  for (const uint32_t seed : {0U, 5489U, 50264U, 0xFFFFFFFFU}) {
    std::mt19937 standard(seed);
    MersenneTwister ours(seed);
    for (int i = 0; i < 2000; ++i) ASSERT_EQ(ours(), standard()) << "seed " << seed << ", number " << i;
  }
}

TEST(HashTest, NormalNumbersAreNumpys) {
  const std::pair<uint32_t, std::vector<double>> known[] = {
      {42, {0x1.fca2a28a9307cp-2, -0x1.1b2a505de052ap-3, 0x1.4b9dd50245e68p-1, 0x1.85e548e01aa2bp+0}},
      {0, {0x1.c398ef3e5cfa5p+0, 0x1.99c2cfacc8953p-2, 0x1.f51d25222c9abp-1, 0x1.1ed5969e3314ep+1}},
      {1000, {-0x1.9be1f57144f4cp-1, 0x1.48a2478c05c17p-2, -0x1.a182f28f113d1p-6, 0x1.49e4d01640dcbp-1}},
      {50264, {-0x1.a6843a0d4d4d2p-1, 0x1.13b2333f8415cp+1, 0x1.5d7a987f8bda0p+0, -0x1.12b8352dfe2b2p+0}}};
  for (const auto& [seed, numbers] : known) {
    LegacyNormal normal(seed);
    for (const double expected : numbers) EXPECT_EQ(normal.next(), expected) << seed;  // to the last bit
  }
}

TEST(HashTest, ProjectionsOfTheSpecification) {
  const auto three = lsh_of({{1000, 1000, 1}, {2000, 2000, 0.5}, {50264, 4, 2.0 / 3}});
  EXPECT_EQ(three->signature("x").hex(), "48a021c6c965b2b1bad7dd91f64fa60f");
  EXPECT_EQ(three->bucket("x"), 2716);
  EXPECT_EQ(lsh_of({{0, 0, 1}})->bucket("x"), 15843);
  EXPECT_EQ(lsh_of({{1000, 1000, 1}})->bucket("x"), 14843);
}

TEST(HashTest, AffixesOfTheSpecification) {
  const auto hasher = make_lsh_hasher(make_affix_features());
  const auto apart = [&](const char* a, const char* b) { return distance(hasher->signature(a), hasher->signature(b)); };
  EXPECT_EQ(make_affix_features()->features("dog")[0].seed, 1897858179U);
  EXPECT_EQ(hasher->signature("dog").hex(), "4a82c651b5814156a6168ca2d2960cd9");
  EXPECT_EQ(hasher->signature("dogs").hex(), "eab07612b443e0e3ecf70da388f627da");
  EXPECT_EQ(apart("dog", "dogs"), 45);
  EXPECT_EQ(apart("run", "running"), 52);
  EXPECT_EQ(apart("running", "runner"), 58);
  EXPECT_EQ(apart("dog", "table"), 69);
}

TEST(HashTest, AffixesAreCountedAndWeighed) {
  const auto features = make_affix_features()->features("aéa");  // aéa, a éa, aé a
  ASSERT_EQ(features.size(), 4U);
  EXPECT_EQ(features[0].weight, 1);
  EXPECT_EQ(features[1].weight, 2.0 / 3);  // "a" twice, in three places
  EXPECT_EQ(features[2].weight, 1.0 / 2);
  EXPECT_EQ(features[3].weight, 1.0 / 2);
}

TEST(HashTest, LongWordsHaveNoParts) {
  EXPECT_GT(make_affix_features()->features(std::string(kLongestWordWithParts, 'x')).size(), 50U);
  EXPECT_EQ(make_affix_features()->features(std::string(kLongestWordWithParts + 1, 'x')).size(), 1U);
  EXPECT_EQ(make_affix_features()->features(std::string(10 << 20, 'x')).size(), 1U);
}

TEST(HashTest, PiecesOfBpe) {
  const auto trained = train_on({.kind = TokenizerKind::kBpe, .vocabulary_size = 259}, {"dog\ndog\ndo\ndo"});
  const auto& bpe = dynamic_cast<const BpeTokenizer&>(*trained);  // merges d+o, do+g
  const auto features = make_bpe_features(bpe)->features("dog");  // dog-d-og-do-g without "-"
  const auto id = [&](const char* text) { return static_cast<uint32_t>(bpe.encode(text).at(0)); };
  ASSERT_EQ(bpe.encode("dog").size(), 1U);
  std::vector<std::pair<uint32_t, double>> found;
  for (const WordFeature& one : features) found.emplace_back(one.seed, one.weight);
  EXPECT_THAT(found, ElementsAre(std::pair(id("dog"), 1.0), std::pair(id("d"), 1.0 / 3), std::pair(id("o"), 1.0 / 3),
                                 std::pair(id("g"), 2.0 / 3), std::pair(id("do"), 1.0 / 2)));
  EXPECT_EQ(make_bpe_features(bpe)->features("-").size(), 1U);
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (WordsAndSymbols tokens(text, "test"); tokens.next();) words.emplace_back(tokens.word());
  return words;
}

TEST(HashTest, WordsAndSymbolsOfTheSpecification) {
  EXPECT_THAT(words_of("It's 3.5% -- Café_x!?"), ElementsAre("it", "'", "s", "3", ".", "5", "%", "--", "café_x", "!?"));
  EXPECT_THAT(words_of(""), ElementsAre());
  EXPECT_THAT(words_of(" \t\u2003\n"), ElementsAre());
  EXPECT_THAT(words_of("ΟΔΟΣ"), ElementsAre("οδος"));
  EXPECT_THAT(error_message([] { words_of("ab\xFF"); }), HasSubstr("not valid UTF-8 at byte 2 of 3"));
}

TEST(HashTest, SpansAreOfTheOriginalText) {
  const auto tokenizer = train_on({.kind = TokenizerKind::kHashMd}, {});
  EXPECT_THAT(spelled(*tokenizer, "Xİy É!"), ElementsAre("Xİ", "İ", "y", "É", "!"));
  EXPECT_THAT(tokenizer->encode("Xİy É!"), ElementsAre(5, 6, 7, 8, 9));
}

TEST(HashTest, TheTokenizerNumbersWords) {
  const auto tokenizer = train_on({.kind = TokenizerKind::kHashLsh}, {});
  EXPECT_EQ(tokenizer->vocabulary_size(), 5);
  EXPECT_THAT(tokenizer->encode("The dog, the cat"), ElementsAre(5, 6, 7, 5, 8));
  EXPECT_EQ(tokenizer->vocabulary_size(), 9);
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{0, 5, 7, 8, 2}), "<s> the , cat </s>");
  EXPECT_EQ(tokenizer->words()->signatures(1, 2)[0].hex(), "4a82c651b5814156a6168ca2d2960cd9");
  EXPECT_THAT(tokenizer->encode_with_special("the <mask>"), ElementsAre(5, 4));
  EXPECT_THAT(error_message([&] { tokenizer->decode(std::vector<int32_t>{9}); }), HasSubstr("0 .. 8"));
}

TEST(HashTest, ARenewedTokenizerHasNoWordsAndTheSameHashes) {
  const HashTokenizer before(make_lsh_hasher(make_affix_features()));
  before.encode("a dog");
  const auto renewed = before.renewed();
  EXPECT_EQ(renewed->words()->size(), 0);
  EXPECT_EQ(before.words()->size(), 2);
  EXPECT_EQ(renewed->to_json(), before.to_json());
  EXPECT_THAT(renewed->encode("dog"), ElementsAre(5));
  EXPECT_EQ(renewed->words()->signatures(0, 1)[0].hex(), "4a82c651b5814156a6168ca2d2960cd9");
}

TEST(HashTest, FilesKeepTheSettingsAndNotTheWords) {
  const auto bpe = train_on({.kind = TokenizerKind::kBpe, .vocabulary_size = 259}, {"dog\ndog\ndo\ndo"});
  const HashTokenizer pieces(make_lsh_hasher(make_bpe_features(dynamic_cast<const BpeTokenizer&>(*bpe))));
  const HashTokenizer affixes(make_lsh_hasher(make_affix_features()));
  const HashTokenizer digests(make_md_hasher());
  for (const HashTokenizer* tokenizer : {&pieces, &affixes, &digests}) {
    const nlohmann::json before = tokenizer->to_json();
    tokenizer->encode("dogs run");
    EXPECT_EQ(tokenizer->to_json(), before);
    const auto again = tokenizer_from_json(before, "test");
    EXPECT_EQ(again->to_json(), before);
    again->encode("dogs run");
    EXPECT_EQ(again->words()->signatures(0, 2), tokenizer->words()->signatures(0, 2));
  }
  EXPECT_NE(fingerprint(affixes), fingerprint(pieces));
  EXPECT_EQ(train_on({.kind = TokenizerKind::kBytes}, {})->words(), nullptr);
  nlohmann::json wrong = affixes.to_json();
  wrong["features"] = "afix";
  EXPECT_THAT(error_message([&] { tokenizer_from_json(wrong, "t.json"); }), HasSubstr("affix"));
}

TEST(HashTest, OptionsOfVocabulariesAreRefused) {
  EXPECT_THAT(error_message([] { train_on({.kind = TokenizerKind::kHashMd, .vocabulary_size = 100}, {}); }),
              HasSubstr("hash-md and hash-lsh have none"));
  EXPECT_THAT(error_message([] { train_on({.kind = TokenizerKind::kHashMd, .hash_merges = "x"}, {}); }),
              HasSubstr("hash-merges is for the tokenizer hash-lsh"));
}

TEST(HashTest, TheTableIsBoundedAndChecksWhatIsAdded) {
  const auto hasher = make_md_hasher();
  WordTable table(*hasher, 2);
  EXPECT_EQ(table.add("the", {1, 2}), 0);
  EXPECT_EQ(table.signatures(0, 1)[0], (Signature{1, 2}));
  EXPECT_EQ(table.number("hello"), 1);
  EXPECT_EQ(table.buckets(0, 2)[1], 46792);
  EXPECT_THAT(error_message([&] { table.add("the", {1, 3}); }), HasSubstr("another tokenizer"));
  EXPECT_THAT(error_message([&] { table.number("x"); }), HasSubstr("more than 2 different words"));
  EXPECT_THAT(error_message([&] { table.word(2); }), HasSubstr("0 .. 1"));
  EXPECT_THAT(error_message([&] { table.signatures(0, 3); }), HasSubstr("there are 2 words"));
  WordTable small(*hasher, 2, /*most_bytes=*/8);
  EXPECT_EQ(small.number("hello"), 0);
  EXPECT_THAT(error_message([&] { small.number("four"); }), HasSubstr("take more than 8 bytes"));
  EXPECT_EQ(small.number("two"), 1);
}

TEST(HashTest, ThreadsShareATable) {
  const HashTokenizer tokenizer(make_lsh_hasher(make_affix_features()));
  std::vector<std::string> decoded(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < decoded.size(); ++t) {
    threads.emplace_back([&, t] {
      std::string text;
      for (size_t i = 0; i < 300; ++i) text += "w" + std::to_string((i * (t + 1)) % 100) + " ";
      const std::vector<int32_t> ids = tokenizer.encode(text);
      for (const int32_t id : ids) tokenizer.words()->signatures(id - 5, id - 4);
      decoded[t] = tokenizer.decode(ids) + " ";
      EXPECT_EQ(decoded[t], text);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tokenizer.words()->size(), 100);
  const auto all = tokenizer.words()->signatures(0, 100);
  for (int32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(all[static_cast<size_t>(i)], tokenizer.hasher().signature(tokenizer.words()->word(i)));
  }
}

}  // namespace
}  // namespace headshare
