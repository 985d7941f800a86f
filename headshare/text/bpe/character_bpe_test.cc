// Tests BPE over characters with byte fallback. That its ids equal those of Hugging Face tokenizers is tested in
// tests/oracles/test_decoder_tokenizers.py.
#include "headshare/text/bpe/character_bpe.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/text/bpe/character_bpe_file.h"
#include "headshare/text/hf/hf_parts.h"
#include "headshare/text/hf/hf_tokenizer.h"
#include "headshare/text/text_borders.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int32_t kFirstCharacter = 259;

// <unk>, <s>, </s>, the 256 bytes, these characters and what the merges make of them.
CharacterBpeDefinition small_characters(const std::vector<std::pair<std::string, std::string>>& merges) {
  CharacterBpeDefinition d;
  d.tokens = {"<unk>", "<s>", "</s>"};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    d.tokens.emplace_back(name);
  }
  for (const char* character : {"▁", "a", "b", "c", "é"}) d.tokens.emplace_back(character);
  for (const auto& [left, right] : merges) d.tokens.push_back(left + right);
  d.merges = merges_of_texts(merges, d.tokens, "small");
  d.special = {0, 1, 2};
  d.unknown = 0;
  d.begin_of_text = 1;
  d.end_of_text = 2;
  return d;
}

std::vector<std::string> spellings(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> result;
  for (const int32_t id : tokenizer.encode(text)) result.push_back(tokenizer.spelling(id));
  return result;
}

TEST(CharacterBpeTest, MergesCrossSpacesWhereTheVocabularyDoes) {
  const CharacterBpeTokenizer words(small_characters({{"a", "b"}, {"▁", "ab"}}));
  EXPECT_THAT(spellings(words, "ab ab"), ElementsAre("▁ab", "▁ab"));
  EXPECT_THAT(spellings(words, "  a"), ElementsAre("▁", "▁", "▁", "a"));
  EXPECT_THAT(spellings(words, ""), ElementsAre());
  const CharacterBpeTokenizer across(small_characters({{"b", "▁"}, {"b▁", "a"}, {"▁", "▁"}}));
  EXPECT_THAT(spellings(across, "ab a  b"), ElementsAre("▁", "a", "b▁a", "▁▁", "b"));
}

TEST(CharacterBpeTest, UnknownCharactersAreBytes) {
  const CharacterBpeTokenizer tokenizer(small_characters({}));
  EXPECT_THAT(spellings(tokenizer, "éö"), ElementsAre("▁", "é", "<0xC3>", "<0xB6>"));
  EXPECT_THAT(spellings(tokenizer, "\xC3"), ElementsAre("▁", "<0xC3>"));
  for (const std::string text : {"a öé\n日本\xFF\xC3 b", " a", "  ", "\x80"}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
  EXPECT_TRUE(tokenizer.continues_word(tokenizer.encode("ö").back()));
  EXPECT_FALSE(tokenizer.continues_word(kFirstCharacter));
}

TEST(CharacterBpeTest, SpaceBeforeText) {
  CharacterBpeDefinition d = small_characters({{"▁", "a"}});
  d.special.push_back(static_cast<int32_t>(d.tokens.size()));
  d.added = {{.id = d.special.back(), .text = "[X]", .special = true}};
  d.tokens.emplace_back("[X]");
  const auto of = [&d](SpaceBefore space, bool replaces_first, std::string_view text) {
    CharacterBpeDefinition changed = d;
    changed.space_before = space;
    changed.replaces_first = replaces_first;
    return spellings(CharacterBpeTokenizer(changed), text);
  };
  EXPECT_THAT(of(SpaceBefore::kEvenSpace, true, " a[X]a"), ElementsAre("▁", "▁a", "[X]", "▁a"));
  EXPECT_THAT(of(SpaceBefore::kEachPart, false, " a[X]a[X] a"), ElementsAre("▁a", "[X]", "▁a", "[X]", "▁a"));
  EXPECT_THAT(of(SpaceBefore::kFirst, false, "a[X]a"), ElementsAre("▁a", "[X]", "a"));
  EXPECT_THAT(of(SpaceBefore::kFirst, false, "[X]a"), ElementsAre("[X]", "a"));
  EXPECT_THAT(of(SpaceBefore::kNever, true, "a a[X]a"), ElementsAre("a", "▁a", "[X]", "a"));
}

TEST(CharacterBpeTest, SpansAreOfTheText) {
  const CharacterBpeTokenizer tokenizer(small_characters({{"▁", "a"}, {"b", "▁"}}));
  const std::string text = "a éöb a";
  const TokensWithSpans tokens = tokenizer.encode_with_spans(text);
  EXPECT_EQ(tokens.ids, tokenizer.encode(text));
  std::vector<std::string> parts;
  for (const TextSpan& span : tokens.spans) parts.push_back(text.substr(span.begin, span.end - span.begin));
  EXPECT_THAT(parts, ElementsAre("a", " ", "é", "ö", "ö", "b", " a"));
}

TEST(CharacterBpeTest, SurvivesFilesAndHasItsRoles) {
  const CharacterBpeTokenizer tokenizer(small_characters({{"a", "b"}, {"▁", "ab"}}));
  EXPECT_EQ(begins_texts(tokenizer), 1);
  EXPECT_EQ(tokenizer.special(SpecialToken::kEndOfText), 2);
  EXPECT_EQ(tokenizer.special(SpecialToken::kUnknown), 0);
  EXPECT_THAT(tokenizer.encode_with_special("<s>"), ElementsAre(1));
  EXPECT_GT(tokenizer.encode("<s>").size(), 1U) << "a text must not forge it";
  for (const nlohmann::json& file : {tokenizer.to_json(), hf_json(tokenizer)}) {
    const auto again = tokenizer_from_json(file, "t.json");
    EXPECT_EQ(again->to_json(), tokenizer.to_json());
    EXPECT_THAT(spellings(*again, "ab c"), ElementsAre("▁ab", "▁", "c"));
  }
  EXPECT_EQ(tokenizer.vocabulary()->tokens[3].kind, TokenKind::kByte);
  CharacterBpeDefinition other = small_characters({});
  other.begin_of_pair = BeginOfPair::kOnceOneSegment;  // Llama 2
  const CharacterBpeTokenizer once(other);
  for (const nlohmann::json& file : {once.to_json(), hf_json(once)}) {
    EXPECT_EQ(tokenizer_from_json(file, "t.json")->to_json(), once.to_json());
  }
  nlohmann::json nothing = hf_json(tokenizer);
  nothing["post_processor"] = template_json(kEmptyTemplate, {});
  EXPECT_EQ(begins_texts(*tokenizer_from_json(nothing, "t.json")), std::nullopt);
}

TEST(CharacterBpeTest, DamagedOnesAreRefused) {
  const auto refused = [](const CharacterBpeDefinition& d) {
    return error_message([&] { CharacterBpeTokenizer(d, "t.json"); });
  };
  const CharacterBpeDefinition whole = small_characters({{"a", "b"}});
  CharacterBpeDefinition d = whole;
  d.tokens[3] = "zero";
  EXPECT_THAT(refused(d), HasSubstr("no token <0x00>"));
  d = whole;
  d.merges[0].result = kFirstCharacter;
  EXPECT_THAT(refused(d), HasSubstr("merge 0 of \"a\" and \"b\" makes \"▁\""));
  d.merges[0].left = 3;
  EXPECT_THAT(refused(d), HasSubstr("a special token or a byte's"));
  d.merges[0].left = 9999;
  EXPECT_THAT(refused(d), HasSubstr("names the id 9999"));
  d = whole;
  d.special = {2, 1};
  EXPECT_THAT(refused(d), HasSubstr("must ascend"));
  d = whole;
  d.padding = 5;
  EXPECT_THAT(refused(d), HasSubstr("has a role"));
  d = whole;
  d.tokens.emplace_back("a");
  EXPECT_THAT(refused(d), HasSubstr("two ids"));
}

}  // namespace
}  // namespace headshare
