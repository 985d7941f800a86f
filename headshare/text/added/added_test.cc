// Tests where added tokens are found, and what is refused. That the ids equal those of Hugging Face tokenizers is
// tested in tests/oracles/test_added_tokens.py.
#include <gmock/gmock.h>

#include <optional>

#include "headshare/base/json/json_input.h"
#include "headshare/base/testing.h"
#include "headshare/text/added/added_tokens.h"
#include "headshare/text/hf/hf_tokenizer.h"
#include "headshare/text/test_support.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Returns the parts of a text, tokens in angle brackets.
std::vector<std::string> parts(const std::vector<AddedToken>& tokens, const std::string& text) {
  std::vector<std::string> result;
  AddedSearch(tokens).for_each_part(text, [&](TextSpan span, const AddedToken* token) {
    const std::string part = text.substr(span.begin, span.end - span.begin);
    result.push_back(token == nullptr ? part : "<" + part + ">");
  });
  return result;
}

TEST(AddedSearchTest, TheFirstTokenCountsAndOfThoseThatBeginThereTheLongest) {
  const std::vector<AddedToken> tokens = {{.text = "ab"}, {.text = "abcd"}, {.text = "bc"}};
  EXPECT_THAT(parts(tokens, "xabcab"), ElementsAre("x", "<ab>", "c", "<ab>"));
  EXPECT_THAT(parts(tokens, "abcdabc"), ElementsAre("<abcd>", "<ab>", "c"));
  EXPECT_THAT(parts(tokens, "abcxbc"), ElementsAre("<ab>", "cx", "<bc>"));
  EXPECT_THAT(parts(tokens, ""), ElementsAre());
  EXPECT_THAT(parts({}, "ab"), ElementsAre("ab"));
  EXPECT_TRUE(AddedSearch().empty());
}

TEST(AddedSearchTest, WhiteSpaceOfUnicodeIsTakenOnEitherSide) {
  const std::vector<AddedToken> left = {{.text = "x", .strips_left = true}, {.text = "y"}};
  const std::vector<AddedToken> right = {{.text = "x", .strips_right = true}, {.text = "y"}};
  for (const std::string space : {" ", "\t", "\n", "\v", "\f", "\r", "\u0085", "\u00A0", "\u1680", "\u2000", "\u200A",
                                  "\u2028", "\u2029", "\u202F", "\u205F", "\u3000", " \u3000\t"}) {
    EXPECT_THAT(parts(left, "a" + space + "x" + space + "y"), ElementsAre("a", "<" + space + "x>", space, "<y>"));
    EXPECT_THAT(parts(right, "a" + space + "x" + space + "y"), ElementsAre("a" + space, "<x" + space + ">", "<y>"));
  }
  for (const std::string other : {"\x1C", "\x1D", "\x1E", "\x1F", "\u180E", "\u200B", "\uFEFF", "\xFF", "\x80"}) {
    EXPECT_THAT(parts(left, "a" + other + "x"), ElementsAre("a" + other, "<x>"));
    EXPECT_THAT(parts(right, "x" + other + "a"), ElementsAre("<x>", other + "a"));
  }
  EXPECT_THAT(parts({{.text = "x", .strips_left = true, .strips_right = true}}, "x  x "), ElementsAre("<x  >", "<x >"));
}

TEST(AddedSearchTest, SingleWordsStandAlone) {
  const std::vector<AddedToken> tokens = {{.text = "ab", .single_word = true}, {.text = "b"}};
  for (const std::string word : {"x", "7", "_", "é", "中", "\u0301", "\u200D", "\u2160", "\u24D0", "\u203F"}) {
    EXPECT_THAT(parts(tokens, "ab" + word), ElementsAre("ab" + word)) << "what it covers is passed over too";
    EXPECT_THAT(parts(tokens, word + "ab"), ElementsAre(word + "ab"));
  }
  for (const std::string other : {" ", "-", ",", "“", "😀", "\u00B2", "\x01"}) {
    EXPECT_THAT(parts(tokens, "ab" + other), ElementsAre("<ab>", other));
    EXPECT_THAT(parts(tokens, other + "ab"), ElementsAre(other, "<ab>"));
  }
  EXPECT_THAT(parts(tokens, "ab"), ElementsAre("<ab>"));
}

TEST(AddedTokensTest, RolesAreFoundOnRequestAndKeepTheirOptions) {
  const auto as_it_is = [](std::string_view text) { return std::string(text); };
  const AddedToken mask = {.id = 1, .text = "<mask>", .special = true, .strips_left = true};
  const AddedToken pad = {.id = 0, .text = "<pad>", .special = true};
  const AddedToken entity = {.id = 2, .text = "[E1]", .special = true};
  const AddedTokens added({pad, mask, entity}, {pad, {.id = 1, .text = "<mask>", .special = true}}, 3, as_it_is, "x");
  EXPECT_THAT(added.listed(), ElementsAre(mask, entity));
  EXPECT_EQ(added.find(0), nullptr);
  EXPECT_EQ(*added.find(2), entity);
  std::vector<int32_t> ids;
  const auto note = [&](TextSpan, const AddedToken* token) { ids.push_back(token == nullptr ? -1 : token->id); };
  added.in_text().for_each_part("a <mask>[E1]<pad>", note);
  EXPECT_THAT(ids, ElementsAre(-1, 2, -1));
  ids.clear();
  added.all().for_each_part("a <mask>[E1]<pad>", note);
  EXPECT_THAT(ids, ElementsAre(-1, 1, 2, 0));
}

TEST(AddedTokensTest, WhatCannotBeSearchedForIsRefused) {
  const auto refused = [](const std::vector<AddedToken>& tokens) {
    return error_message([&] {
      AddedTokens(
          tokens, {}, 3, [](std::string_view text) { return text == "~" ? std::string() : std::string(text); }, "x");
    });
  };
  EXPECT_THAT(refused({{.id = 3, .text = "a"}}), HasSubstr("x: the added id 3 is not among the 3 tokens"));
  EXPECT_THAT(refused({{.id = 1, .text = "a"}, {.id = 1, .text = "b"}}), HasSubstr("must ascend, but 1 follows 1"));
  EXPECT_THAT(refused({{.id = 0, .text = "a"}, {.id = 1, .text = "a"}}), HasSubstr("\"a\" has two ids"));
  EXPECT_THAT(refused({{.id = 0, .text = ""}}), HasSubstr("has 0 bytes"));
  EXPECT_THAT(refused({{.id = 0, .text = std::string(1025, 'a')}}), HasSubstr("has 1025 bytes"));
  EXPECT_THAT(refused({{.id = 0, .text = "\xFF"}}), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(refused({{.id = 0, .text = "~", .normalized = true}}), HasSubstr("makes nothing of"));
  EXPECT_THAT(refused({{.id = 0, .text = "a", .strips_right = true}, {.id = 1, .text = "\u3000b"}}),
              AllOf(HasSubstr("rstrip"), HasSubstr("begins with white space")));
  EXPECT_EQ(refused({{.id = 0, .text = "a", .strips_right = true}, {.id = 2, .text = "b"}}), "no error");
}

// ------------------------------------------------------------------------------------------- in tokenizers

constexpr const char* kAddedCorpus = "the theme of then and there, the e1 of the era\n";

struct Case {
  const char* text;
  std::vector<std::string> options;
};

json hf_sample(TokenizerKind kind, const std::vector<Case>& added) {
  const auto tokenizer = train_on({.kind = kind, .vocabulary_size = 300, .min_count = 1}, {kAddedCorpus});
  json object = hf_json(*tokenizer);
  int64_t id = tokenizer->vocabulary_size();
  for (const Case& one : added) {
    json entry = {{"id", id++}, {"content", one.text}};
    for (const char* key : {"special", "lstrip", "rstrip", "single_word", "normalized"}) {
      entry[key] = std::find(one.options.begin(), one.options.end(), key) != one.options.end();
    }
    object["added_tokens"].push_back(entry);
  }
  return object;
}

// Returns where the added tokens stand, in the text as it is; ids and spans agree, and files keep all of it.
std::vector<std::string> found(const json& object, const std::string& text) {
  const auto tokenizer = tokenizer_from_json(object, "t.json");
  const TokensWithSpans tokens = tokenizer->encode_with_spans(text);
  EXPECT_EQ(tokenizer->encode(text), tokens.ids);
  EXPECT_EQ(tokenizer->encode(text), tokens.ids) << "remembered pieces give the same";
  for (const json& file : {tokenizer->to_json(), hf_json(*tokenizer)}) {
    const auto again = tokenizer_from_json(parse_json_input(file.dump(), "x"), "x");
    EXPECT_EQ(again->to_json(), tokenizer->to_json()) << file;
    EXPECT_EQ(again->encode(text), tokens.ids);
  }
  std::vector<std::string> result;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    if (static_cast<size_t>(tokens.ids[i]) < object["model"]["vocab"].size()) continue;
    result.push_back(text.substr(tokens.spans[i].begin, tokens.spans[i].end - tokens.spans[i].begin));
    EXPECT_FALSE(tokenizer->continues_word(tokens.ids[i]));
  }
  return result;
}

TEST(AddedInTokenizersTest, SpecialOrNotTheyAreFoundAsAWhole) {
  for (const TokenizerKind kind : {TokenizerKind::kBpe, TokenizerKind::kWordPiece}) {
    const json object = hf_sample(kind, {{"[E1]", {"special"}}, {"<e1>", {}}, {"new word", {"single_word", "lstrip"}}});
    EXPECT_THAT(found(object, "the[E1]era <e1> the  new word, new words"), ElementsAre("[E1]", "<e1>", "  new word"));
    EXPECT_THAT(found(object, "the [e1] era <E1> new\tword"), ElementsAre());
    EXPECT_THAT(found(object, "[CLS] [UNK]<|endoftext|>"), ElementsAre()) << "roles are not forged by texts";
  }
}

TEST(AddedInTokenizersTest, NormalisedOnesAreFoundInNormalisedText) {
  const json object =
      hf_sample(TokenizerKind::kWordPiece,
                {{"[\u00C91]", {"normalized"}}, {"The\u00EBra", {"normalized", "rstrip"}}, {"\u65E5", {"normalized"}}});
  EXPECT_THAT(found(object, "the [e1] [\u00C91][E\u03011]"), ElementsAre("[e1]", "[\u00C91]", "[E\u03011]"));
  EXPECT_THAT(found(object, "of THEERA \t and"), ElementsAre("THEERA \t "));
  EXPECT_THAT(found(object, "of th\u0301e\u200Bera"), ElementsAre("th\u0301e\u200Bera")) << "across what is dropped";
  EXPECT_THAT(found(object, "the e1 [] the era [e [theme of then"), ElementsAre());
  EXPECT_THAT(found(object, "a\u65E5b"), ElementsAre("\u65E5")) << "with the spaces around an ideograph";
  EXPECT_THAT(found(hf_sample(TokenizerKind::kBpe, {{"[E1]", {"normalized"}}}), "[E1][e1]"), ElementsAre("[E1]"));
}

// Bits per byte need to know this: only texts that come back are lossless.
TEST(AddedInTokenizersTest, LosslessIsWhatComesBack) {
  const auto lossless = [](const std::vector<Case>& added) {
    return tokenizer_from_json(hf_sample(TokenizerKind::kBpe, added), "x")->lossless();
  };
  EXPECT_TRUE(lossless({{"[E1]", {"special"}}, {"caf\u00E9", {}}}));
  EXPECT_FALSE(lossless({{"[E1]", {"lstrip"}}}));
  EXPECT_FALSE(lossless({{"[E1]", {"special", "rstrip"}}}));
}

// A file from before added tokens were found has no list of them: its texts keep their tokens.
TEST(AddedInTokenizersTest, FilesOfEarlierVersionsMeanWhatTheyMeant) {
  for (const TokenizerKind kind : {TokenizerKind::kBpe, TokenizerKind::kWordPiece}) {
    const json object = hf_sample(kind, {{"[E1]", {"special"}}});
    json own = tokenizer_from_json(object, "x")->to_json();
    const int32_t id = object["added_tokens"].back()["id"];
    ASSERT_TRUE(own.contains("added"));
    EXPECT_THAT(tokenizer_from_json(own, "x")->encode("[E1]"), ElementsAre(id));
    own.erase("added");
    const auto earlier = tokenizer_from_json(own, "x");
    EXPECT_GT(earlier->encode("[E1]").size(), 1U);
    EXPECT_EQ(earlier->to_json(), own);
  }
}

TEST(AddedInTokenizersTest, DamagedListsAreRefused) {
  json own = tokenizer_from_json(hf_sample(TokenizerKind::kBpe, {{"[E1]", {"special"}}}), "x")->to_json();
  const auto refused = [&](const json& entry) {
    json damaged = own;
    damaged["added"] = {entry};
    return error_message([&] { tokenizer_from_json(damaged, "t.json"); });
  };
  json entry = own["added"][0];
  EXPECT_EQ(refused(entry), "no error");
  entry["extra"] = 1;
  EXPECT_THAT(refused(entry), HasSubstr("unknown key 'extra'"));
  entry.erase("extra");
  entry["id"] = 5000;
  EXPECT_THAT(refused(entry), HasSubstr("the added id 5000"));
  entry.erase("normalized");
  EXPECT_THAT(refused(entry), HasSubstr("normalized"));
  EXPECT_THAT(refused(nullptr), HasSubstr("t.json: added"));
}

}  // namespace
}  // namespace headshare
