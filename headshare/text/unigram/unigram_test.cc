// Tests tokenizer "unigram": pieces, normalisation, files. That ids, spans and decoded text equal those of Hugging Face
// tokenizers is tested in tests/oracles/test_unigram.py.
#include <gmock/gmock.h>

#include <limits>

#include "headshare/base/json/json_input.h"
#include "headshare/base/testing.h"
#include "headshare/text/hf/hf_tokenizer.h"
#include "headshare/text/test_support.h"
#include "headshare/text/text_borders.h"
#include "headshare/text/tokenizer_file.h"
#include "headshare/text/unigram/unigram_file.h"

namespace headshare {
namespace unigram_test {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// ids:                                0        1        2        3        4         5         6     7      8    9    10
const std::vector<std::string> kTokens = {"<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "▁a", "b", "ab", "▁", "c", "-"};

UnigramDefinition sample_definition() {
  UnigramDefinition d;
  d.tokens = kTokens;
  d.scores = {0, 0, 0, 0, 0, -1, -2, -2.5, -1.5, -3, -1};
  d.special = {0, 1, 2, 3, 4};
  d.added = {{.id = 4, .text = "[MASK]", .special = true, .strips_left = true}};
  d.unknown = 1;
  d.steps = {replacing_step("``", "\"", "test"),
             {.kind = NormalStepKind::kDecompose},
             {.kind = NormalStepKind::kStripMarks},
             {.kind = NormalStepKind::kLowercase}};
  return d;
}

std::string normal(const std::string& text, const std::vector<NormalStep>& steps) {
  std::string result;
  for (const NormalCharacter& one : normalised(text, steps, "x")) append_utf8(one.code_point, &result);
  return result;
}

std::string refusal(const std::function<void(UnigramDefinition&)>& change) {
  UnigramDefinition d = sample_definition();
  change(d);
  return error_message([&] { UnigramTokenizer tokenizer(d, "x"); });
}

// Returns a map whose trie knows one byte, and the text that it becomes.
std::string map_of(char byte, const std::string& text) {
  std::vector<uint32_t> units(512);
  units[0] = 1 << 10;                                           // the root's children stand at 1 ^ their byte
  const uint32_t child = 1 ^ static_cast<unsigned char>(byte);  // its leaf stands at child ^ 256
  units[child] = static_cast<unsigned char>(byte) | (1 << 8) | (256 << 10);
  units[child ^ 256] = 1U << 31;  // text 0
  std::string bytes;
  const auto put = [&](uint32_t unit) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>((unit >> (8 * i)) & 0xFF);
  };
  put(static_cast<uint32_t>(4 * units.size()));
  for (const uint32_t unit : units) put(unit);
  return bytes + text + '\0';
}

TEST(UnigramTest, TakesThePiecesOfTheLargestSum) {
  const UnigramTokenizer tokenizer(sample_definition());
  EXPECT_THAT(tokenizer.encode("ab"), ElementsAre(5, 6));  // -3 against -4 for "▁", "ab"
  EXPECT_THAT(tokenizer.encode("bab c"), ElementsAre(8, 6, 7, 8, 9));
  EXPECT_THAT(tokenizer.encode("xyb x"), ElementsAre(8, 1, 6, 8, 1)) << "unknown characters are one piece";
  EXPECT_THAT(tokenizer.encode(" \n"), ElementsAre());
  EXPECT_THAT(tokenizer.encode("[MASK]"), ElementsAre(8, 1)) << "special tokens do not come from text";
  EXPECT_THAT(tokenizer.encode_with_special("a [MASK]b"), ElementsAre(5, 4, 8, 6));
}

TEST(UnigramTest, SpansAreWhereTheCharactersStand) {
  const UnigramTokenizer tokenizer(sample_definition());
  EXPECT_THAT(spelled(tokenizer, " A\u0301b  ``C"), ElementsAre("A", "b", "`", "`", "C"))
      << "a replacement stands where the last character that it replaces does";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab c")), "ab c");
  EXPECT_EQ(tokenizer.spelling(8), "▁");
  EXPECT_THAT(error_message([&] { tokenizer.spelling(-1); }), HasSubstr("the id -1"));
}

TEST(UnigramTest, TheVocabularyHasScoresAndKinds) {
  UnigramDefinition d = sample_definition();
  d.added.push_back({.id = 10, .text = "-"});
  const Vocabulary vocabulary = *UnigramTokenizer(d).vocabulary();
  EXPECT_EQ(vocabulary.scores, d.scores);
  std::vector<TokenKind> kinds;
  for (const VocabularyToken& token : vocabulary.tokens) kinds.push_back(token.kind);
  ASSERT_EQ(kinds.size(), d.tokens.size());
  EXPECT_EQ(kinds[0], TokenKind::kSpecial);
  EXPECT_EQ(kinds[1], TokenKind::kUnknown);
  EXPECT_EQ(kinds[5], TokenKind::kOrdinary);
  EXPECT_EQ(kinds[10], TokenKind::kAdded);
  EXPECT_EQ(vocabulary.tokens[8].spelling, "▁");
}

TEST(UnigramTest, VerbatimTokensAreCutOutFirst) {
  UnigramDefinition d = sample_definition();
  d.added.push_back({.id = 10, .text = "-"});
  const UnigramTokenizer tokenizer(d);
  EXPECT_THAT(tokenizer.encode("a-b--"), ElementsAre(5, 10, 8, 6, 10, 10));
  EXPECT_THAT(UnigramTokenizer(sample_definition()).encode("a-b"), ElementsAre(5, 10, 6));
  EXPECT_FALSE(tokenizer.continues_word(10));
  EXPECT_TRUE(tokenizer.continues_word(6));
  EXPECT_FALSE(tokenizer.continues_word(5));
  EXPECT_FALSE(tokenizer.continues_word(2));
}

TEST(UnigramTest, RolesAreReadFromTheTokens) {
  const UnigramTokenizer tokenizer(sample_definition());
  EXPECT_EQ(tokenizer.special(SpecialToken::kPadding), 0);
  EXPECT_EQ(tokenizer.special(SpecialToken::kUnknown), 1);
  EXPECT_EQ(tokenizer.special(SpecialToken::kClassify), 2);
  EXPECT_EQ(tokenizer.special(SpecialToken::kSeparate), 3);
  EXPECT_EQ(tokenizer.special(SpecialToken::kMask), 4);
  EXPECT_FALSE(tokenizer.special(SpecialToken::kEndOfText));
}

TEST(UnigramTest, NormalisesStepByStep) {
  const std::vector<NormalStep> steps = sample_definition().steps;
  EXPECT_EQ(normal("``\u00C9\uFB01\u0130``", steps), "\"efi\u0069\"");
  EXPECT_EQ(normal("a  b c   ", {replacing_step("", "_", "x")}), "a_b c_");
  EXPECT_EQ(normal("aaa", {replacing_step("aa", "b", "x")}), "ba");
  const NormalStep mapped = {.kind = NormalStepKind::kCharsmap,
                             .map = std::make_shared<Charsmap>(map_of('q', "kw"), "x")};
  EXPECT_EQ(normal("aqbQ", {mapped}), "akwbQ");
  EXPECT_EQ(normal("q\u0301a", {mapped}), "kwa") << "a cluster begins with a key of the map and becomes its text";
}

// fuzz_tokenizers found this: text was cut before what a map makes a letter of.
TEST(UnigramTest, TextIsCutIntoPiecesOnlyWhereWhiteSpaceStaysWhite) {
  for (const char* becomes : {"b", ""}) {
    UnigramDefinition d = sample_definition();
    d.steps = {{.kind = NormalStepKind::kCharsmap, .map = std::make_shared<Charsmap>(map_of('\n', becomes), "x")}};
    const UnigramTokenizer tokenizer(d);
    EXPECT_EQ(tokenizer.encode("a\na"), tokenizer.encode(join_text("a", becomes, "a")));
    d.added.push_back({.id = 10, .text = "-", .normalized = true});
    EXPECT_EQ(UnigramTokenizer(d).encode_with_spans("a\na").ids, tokenizer.encode("a\na"));
  }
  UnigramDefinition d = sample_definition();
  d.steps = {replacing_step("", "", "x")};
  EXPECT_EQ(UnigramTokenizer(d).encode("b  b"), UnigramTokenizer(d).encode("bb"));
}

TEST(UnigramTest, StepsThatMultiplyTextAreRefused) {
  std::vector<NormalStep> steps(16, replacing_step("a", std::string(64, 'a'), "x"));
  EXPECT_THAT(error_message([&] { normalised("aaa", steps, "x"); }), HasSubstr("its steps multiply text"));
  // One step's output is stopped as it grows, and the message names the file.
  UnigramDefinition d = sample_definition();
  d.steps = {
      {.kind = NormalStepKind::kCharsmap, .map = std::make_shared<Charsmap>(map_of('q', std::string(256, 'a')), "x")}};
  const UnigramTokenizer tokenizer(d, "a file");
  EXPECT_THAT(error_message([&] { tokenizer.encode("q"); }),
              HasSubstr("a file: its normalisation makes more than 64 characters of 1 byte"));
}

TEST(UnigramTest, OurOwnFileHasAllOfIt) {
  UnigramDefinition d = sample_definition();
  d.added.push_back({.id = 10, .text = "-"});
  d.steps.push_back({.kind = NormalStepKind::kCharsmap, .map = std::make_shared<Charsmap>(map_of('q', "kw"), "x")});
  d.steps.push_back(replacing_step("", " ", "x"));
  d.steps.push_back(replacing_step(" ", "▁", "x"));
  d.scores[6] = -2.1234567890123456;
  const UnigramTokenizer tokenizer(d);
  for (const bool ours : {true, false}) {
    const json written = ours ? tokenizer.to_json() : hf_json(tokenizer);
    const auto again = tokenizer_from_json(parse_json_input(written.dump(), "x"), "x");
    EXPECT_EQ(again->to_json(), tokenizer.to_json()) << written;
    EXPECT_EQ(again->encode("Qab ``c"), tokenizer.encode("Qab ``c"));
  }
}

// This is mBART's: a text has its language behind it or, in mBART-50, before it. Languages are pieces of the model,
// too.
UnigramDefinition definition_with_language(bool leads) {
  UnigramDefinition d = sample_definition();
  d.tokens[2] = "<s>";
  d.tokens[3] = "</s>";
  for (const char* language : {"en_XX", "ro_RO"}) {
    const auto id = static_cast<int32_t>(d.tokens.size());
    d.tokens.emplace_back(language);
    d.scores.push_back(0);
    d.added.push_back({.id = id, .text = language, .special = true});
  }
  d.language = {.id = 11, .leads = leads};
  return d;
}

TEST(UnigramTest, ALanguageSurvivesFiles) {
  for (const bool leads : {false, true}) {
    const UnigramTokenizer tokenizer(definition_with_language(leads));
    EXPECT_EQ(language_of(tokenizer), 11);
    EXPECT_EQ(tokenizer_from_json(tokenizer.to_json(), "x")->to_json(), tokenizer.to_json());
    json theirs = hf_json(tokenizer);
    EXPECT_EQ(tokenizer_from_json(theirs, "x")->to_json()["language"], tokenizer.to_json()["language"]);
    EXPECT_EQ(theirs["post_processor"]["single"].size(), 3U);
    EXPECT_EQ(theirs["post_processor"]["pair"].size(), 4U);
    theirs["post_processor"]["pair"].erase(0);
    EXPECT_THAT(error_message([&] { tokenizer_from_json(theirs, "x"); }), HasSubstr("and mBART's A B </s> en_XX and"));
  }
  EXPECT_THAT(refusal([](UnigramDefinition& d) { d.language = {.id = 6}; }),
              HasSubstr("must be a special added token"));
}

TEST(UnigramTest, TheConfigurationNamesAnotherLanguage) {
  const TemporaryDirectory folder;
  write_file(folder.path() / "tokenizer.json", hf_json(UnigramTokenizer(definition_with_language(false))).dump());
  const auto borders = [&] { return text_borders(*load_tokenizer(folder.path()), "x"); };
  EXPECT_THAT(borders().after, ElementsAre(3, 11));
  write_file(folder.path() / "tokenizer_config.json", R"({"src_lang": "ro_RO"})");
  EXPECT_THAT(borders().around({6}), ElementsAre(6, 3, 12));
  EXPECT_THAT(target_borders(*load_tokenizer(folder.path()), "x").around({6}), ElementsAre(6, 3));
  write_file(folder.path() / "tokenizer_config.json", R"({"src_lang": "romanian"})");
  EXPECT_THAT(error_message(borders), HasSubstr("src_lang: the language 'romanian' is no special token of the 13"));
}

TEST(UnigramTest, DefinitionsThatAreNotConsistentAreRefused) {
  EXPECT_THAT(refusal([](UnigramDefinition& d) { d.tokens.clear(); }), HasSubstr("x: an empty vocabulary"));
  EXPECT_THAT(refusal([](UnigramDefinition& d) { d.scores.pop_back(); }), HasSubstr("10 scores for 11 tokens"));
  EXPECT_THAT(refusal([](UnigramDefinition& d) { d.tokens[6] = "c"; }), HasSubstr("has two ids, 6 and 9"));
  EXPECT_THAT(refusal([](UnigramDefinition& d) { d.tokens[6] = ""; }), HasSubstr("has 0 bytes"));
  EXPECT_THAT(refusal([](UnigramDefinition& d) { d.tokens[6] = std::string(1025, 'a'); }), HasSubstr("1025 bytes"));
  EXPECT_THAT(refusal([](UnigramDefinition& d) { d.tokens[6] = "\xFF"; }), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal([](UnigramDefinition& d) { d.scores[6] = std::numeric_limits<double>::infinity(); }),
              HasSubstr("the token with id 6 has no finite score"));
  EXPECT_THAT(refusal([](UnigramDefinition& d) { d.unknown = 6; }), HasSubstr("unknown pieces, 6, is not among the 5"));
  EXPECT_THAT(refusal([](UnigramDefinition& d) { d.special = {1, 0}; }), HasSubstr("must ascend"));
  EXPECT_THAT(refusal([](UnigramDefinition& d) { d.added = {{.id = 11, .text = "x"}}; }), HasSubstr("the added id 11"));
  EXPECT_THAT(refusal([](UnigramDefinition& d) { d.pair_separators = 3; }), HasSubstr("3 separators"));
}

TEST(CharsmapTest, DamagedMapsAreRefusedOrHarmless) {
  const auto refused = [](const std::string& bytes) { return error_message([&] { Charsmap map(bytes, "x"); }); };
  EXPECT_THAT(refused("abc"), HasSubstr("has no size"));
  EXPECT_THAT(refused(map_of('q', "kw").substr(0, 100)), HasSubstr("a trie of 2048 bytes does not fit"));
  EXPECT_THAT(refused(map_of('q', "\xC3")), HasSubstr("not UTF-8 at byte 0"));
  EXPECT_THAT(refused(map_of('q', std::string(257, 'a'))), HasSubstr("257 bytes of a character"));
  std::string_view text;
  EXPECT_FALSE(Charsmap(std::string(4, '\0'), "x").find("q", &text));
  Philox random(5);
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = mutate(map_of('q', "kw\u00E9"), &random);
    try {
      const Charsmap map(bytes, "x");
      for (int byte = 1; byte < 256; ++byte) map.find(std::string(3, static_cast<char>(byte)), &text);
    } catch (const Error&) {
    }
  }
}

}  // namespace unigram_test
}  // namespace headshare
