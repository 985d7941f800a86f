// Tests the tokenizers without merges: bytes, characters, words.
#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/text/simple/byte_tokenizer.h"
#include "headshare/text/simple/character_tokenizer.h"
#include "headshare/text/simple/word_tokenizer.h"
#include "headshare/text/test_support.h"
#include "headshare/text/tokenizer_file.h"
#include "headshare/text/train_tokenizer.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ByteTokenizerTest, EveryByteSurvives) {
  const ByteTokenizer tokenizer;
  const std::string text = all_bytes() + "\xC3\xA9\xFF";
  const std::vector<int32_t> ids = tokenizer.encode(text);
  EXPECT_EQ(ids.size(), 259U);
  EXPECT_EQ(ids[255], 255);
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_TRUE(tokenizer.lossless());
  EXPECT_THAT(error_message([&] { tokenizer.decode(std::vector<int32_t>{256}); }), HasSubstr("id 256"));
  EXPECT_THAT(error_message([&] { tokenizer.decode(std::vector<int32_t>{-1}); }), HasSubstr("0 .. 255"));
}

TEST(CharacterTokenizerTest, IdsFollowTheCodePoints) {
  const auto tokenizer = train_on({.kind = TokenizerKind::kCharacters}, {"bé", "\na😀b"});
  EXPECT_EQ(tokenizer->vocabulary_size(), 5);
  EXPECT_THAT(tokenizer->encode("ab\né😀"), ElementsAre(1, 2, 0, 3, 4));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{4, 3, 1}), "😀éa");
}

TEST(CharacterTokenizerTest, UnknownCharactersAreNamedOrReplaced) {
  const auto strict = train_on({.kind = TokenizerKind::kCharacters}, {"abc"});
  EXPECT_THAT(error_message([&] { strict->encode("ab€"); }),
              testing::AllOf(HasSubstr("U+20AC '€' at byte 2"), HasSubstr("among the 3"), HasSubstr("unknown-token")));
  const auto lenient = train_on({.kind = TokenizerKind::kCharacters, .unknown_token = true}, {"abc"});
  EXPECT_EQ(lenient->vocabulary_size(), 4);
  EXPECT_THAT(lenient->encode("ab€"), ElementsAre(0, 1, 3));
  EXPECT_EQ(lenient->decode(std::vector<int32_t>{0, 3}), "a\uFFFD");
}

TEST(CharacterTokenizerTest, InvalidUtf8IsAnError) {
  const auto tokenizer = train_on({.kind = TokenizerKind::kCharacters, .unknown_token = true}, {"abc"});
  EXPECT_THAT(error_message([&] { tokenizer->encode("ab\xFF"); }), HasSubstr("not valid UTF-8 at byte 2 of 3"));
  EXPECT_THAT(error_message([&] {
                train_on({.kind = TokenizerKind::kCharacters}, {"ab", "c\xFF"});
              }),
              HasSubstr("after 2 bytes: not valid UTF-8 at byte 1"));
  EXPECT_THAT(error_message([&] { train_on({.kind = TokenizerKind::kCharacters}, {}); }), HasSubstr("empty"));
}

TEST(CharacterTokenizerTest, TinyShakespeareHas65Characters) {
  HS_NEEDS_DATA("tinyshakespeare/input.txt.gz");
  const std::string text = read_test_data("tinyshakespeare/input.txt.gz");
  const auto tokenizer = train_on({.kind = TokenizerKind::kCharacters}, {text});
  EXPECT_EQ(tokenizer->vocabulary_size(), 65);
  const std::vector<int32_t> ids = tokenizer->encode(text);
  EXPECT_EQ(ids.size(), 1115394U);
  EXPECT_EQ(tokenizer->decode(ids), text);
}

TEST(WordTokenizerTest, FrequentWordsComeFirst) {
  const auto tokenizer = train_on({.kind = TokenizerKind::kWords}, {"b a c\n", "c b c\n"});
  EXPECT_EQ(tokenizer->vocabulary_size(), 5);  // <unk> <eos> c b a
  EXPECT_THAT(tokenizer->encode("  a\tb \n\nc d"), ElementsAre(4, 3, 1, 1, 2, 0));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{4, 3, 1, 1, 2, 0}), "a b\n\nc <unk>");
}

TEST(WordTokenizerTest, ReservedWordsInTheTextGetNoTokenOfTheirOwn) {
  const auto tokenizer = train_on({.kind = TokenizerKind::kWords}, {"<unk> <eos> x <unk>\n"});
  EXPECT_EQ(tokenizer->vocabulary_size(), 3);
  EXPECT_THAT(tokenizer->encode("<unk> <eos> x\n"), ElementsAre(0, 0, 2, 1));
}

TEST(WordTokenizerTest, VocabularyIsCutBySizeAndCount) {
  const std::vector<std::string> text = {"c c c b b a d\n"};
  EXPECT_EQ(train_on({.kind = TokenizerKind::kWords, .min_count = 2}, text)->vocabulary_size(), 4);
  const auto small = train_on({.kind = TokenizerKind::kWords, .vocabulary_size = 5}, text);
  EXPECT_EQ(small->vocabulary_size(), 5);
  EXPECT_THAT(small->encode("c b a d"), ElementsAre(2, 3, 4, 0));
}

TEST(WordTokenizerTest, SplitsAtUnicodeWhiteSpace) {
  const auto tokenizer = train_on({.kind = TokenizerKind::kWords}, {"a b"});
  EXPECT_THAT(tokenizer->encode("a\u00A0b\u2003a\u3000b\x1C\u0085\u2028"), ElementsAre(2, 3, 2, 3));
  EXPECT_THAT(tokenizer->encode("a\u200Bb"), ElementsAre(0));  // zero width space is no white space
  EXPECT_THAT(error_message([&] { tokenizer->encode("a \xC3"); }), HasSubstr("at byte 2 of 3"));
}

TEST(WordTokenizerTest, WikiText2HasThePublishedCounts) {
  HS_NEEDS_DATA("wikitext-2/train.txt.gz");
  const auto tokenizer = train_on({.kind = TokenizerKind::kWords}, {read_test_data("wikitext-2/train.txt.gz")});
  EXPECT_EQ(tokenizer->vocabulary_size(), 33278);
  EXPECT_EQ(tokenizer->encode(read_test_data("wikitext-2/train.txt.gz")).size(), 2088628U);
  EXPECT_EQ(tokenizer->encode(read_test_data("wikitext-2/valid.txt.gz")).size(), 217646U);
  EXPECT_EQ(tokenizer->encode(read_test_data("wikitext-2/test.txt.gz")).size(), 245569U);
}

}  // namespace
}  // namespace headshare
