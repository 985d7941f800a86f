#include "headshare/convert/gguf/gguf_tokens.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "headshare/base/testing.h"
#include "headshare/models/decoder.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/bpe/character_bpe.h"
#include "headshare/text/bpe/character_bpe_file.h"

namespace headshare {
namespace gguf_tokens_test {

using testing::AllOf;
using testing::HasSubstr;

BpeDefinition bytes_and(const std::vector<std::string>& special) {
  BpeDefinition definition;
  for (int byte = 0; byte < 256; ++byte) definition.tokens.emplace_back(1, static_cast<char>(byte));
  for (const std::string& text : special) {
    definition.special.push_back(static_cast<int32_t>(definition.tokens.size()));
    definition.tokens.push_back(text);
  }
  return definition;
}

std::map<std::string, GgufValue> written(const BpeDefinition& definition) {
  DecoderOptions options;
  options.vocabulary = 300;
  const auto tokenizer = std::make_shared<BpeTokenizer>(definition);
  const ModelToWrite model{.options = options, .tensors = {}, .tokenizers = {.source = tokenizer, .target = tokenizer}};
  GgufFile file;
  add_gguf_tokens(model, &file);
  return {file.values.begin(), file.values.end()};
}

TEST(GgufTokens, NameTheRuleOfSplitting) {
  for (const auto& [rule, name] : {std::pair<SplitRule, const char*>{SplitRule::kGpt2, "gpt-2"},
                                   {SplitRule::kDigits, "starcoder"},
                                   {SplitRule::kLlama3, "llama-bpe"},
                                   {SplitRule::kQwen2, "qwen2"},
                                   {SplitRule::kTekken, "tekken"},
                                   {SplitRule::kGpt4o, "gpt-4o"}}) {
    BpeDefinition definition = bytes_and({});
    definition.split = rule;
    EXPECT_EQ(std::get<std::string>(written(definition).at("tokenizer.ggml.pre")), name);
  }
  BpeDefinition whole = bytes_and({});
  whole.split = SplitRule::kNone;
  EXPECT_THAT(error_message([&] { written(whole); }), HasSubstr("does not cut text into words"));
}

TEST(GgufTokens, HaveTheTokenBeforeEveryText) {
  BpeDefinition definition = bytes_and({"<s>", "</s>", "<unk>"});
  definition.end_of_text = 257;
  EXPECT_EQ(std::get<std::vector<int32_t>>(written(definition).at("tokenizer.ggml.token_type"))[258], 2) << "unknown";
  EXPECT_EQ(std::get<bool>(written(definition).at("tokenizer.ggml.add_bos_token")), false);
  EXPECT_EQ(std::get<uint32_t>(written(definition).at("tokenizer.ggml.bos_token_id")), 257U);
  definition.begin_of_text = 256;
  EXPECT_EQ(std::get<bool>(written(definition).at("tokenizer.ggml.add_bos_token")), true);
  EXPECT_EQ(std::get<uint32_t>(written(definition).at("tokenizer.ggml.bos_token_id")), 256U);
  EXPECT_EQ(std::get<uint32_t>(written(definition).at("tokenizer.ggml.eos_token_id")), 257U);
}

// llama.cpp keeps words whole by the rule's name alone.
TEST(GgufTokens, WhatEnginesWouldCutOtherwiseIsRefused) {
  BpeDefinition definition = bytes_and({});
  definition.tokens.emplace_back("xyz");
  definition.split = SplitRule::kQwen2;
  EXPECT_NO_THROW(written(definition));
  definition.whole_words = true;
  EXPECT_THAT(error_message([&] { written(definition); }), HasSubstr("keeps words whole that are tokens"));
  definition.split = SplitRule::kLlama3;
  EXPECT_NO_THROW(written(definition));
  definition.whole_words = false;
  EXPECT_THAT(error_message([&] { written(definition); }), HasSubstr("does not keep words whole"));
  definition.tokens.pop_back();
  EXPECT_NO_THROW(written(definition)) << "every token is what its merges make";
  definition.add_prefix_space = true;
  EXPECT_THAT(error_message([&] { written(definition); }), HasSubstr("a space before every text"));
}

// <unk>, <s>, </s>, the bytes, some characters, and what the merges make of them.
CharacterBpeDefinition characters_and(const std::vector<std::pair<std::string, std::string>>& merges) {
  CharacterBpeDefinition d;
  d.tokens = {"<unk>", "<s>", "</s>"};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    d.tokens.emplace_back(name);
  }
  for (const char* character : {"▁", "a", "b", "c", "<", ">", "s"}) d.tokens.emplace_back(character);
  const auto characters = static_cast<std::ptrdiff_t>(d.tokens.size());
  for (const auto& [left, right] : merges) {
    if (std::find(d.tokens.begin(), d.tokens.end(), left + right) == d.tokens.end()) d.tokens.push_back(left + right);
  }
  std::reverse(d.tokens.begin() + characters, d.tokens.end());  // ids say nothing about ranks
  d.merges = merges_of_texts(merges, d.tokens, "small");
  d.special = {0, 1, 2};
  d.unknown = 0;
  d.begin_of_text = 1;
  d.end_of_text = 2;
  return d;
}

std::map<std::string, GgufValue> written(const CharacterBpeDefinition& definition) {
  DecoderOptions options;
  options.vocabulary = 300;
  const auto tokenizer = std::make_shared<CharacterBpeTokenizer>(definition);
  const ModelToWrite model{.options = options, .tensors = {}, .tokenizers = {.source = tokenizer, .target = tokenizer}};
  GgufFile file;
  add_gguf_tokens(model, &file);
  return {file.values.begin(), file.values.end()};
}

// Merges the characters of a text as llama.cpp does: by scores.
std::vector<std::string> merged_by_scores(const std::map<std::string, float>& scores, std::vector<std::string> now) {
  for (;;) {
    float best = -INFINITY;
    size_t place = now.size();
    for (size_t at = 0; at + 1 < now.size(); ++at) {
      const auto found = scores.find(now[at] + now[at + 1]);
      if (found == scores.end() || found->second <= best) continue;
      best = found->second;
      place = at;
    }
    if (place == now.size()) return now;
    now[place] += now[place + 1];
    now.erase(now.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

// "aaa" has two merges in an order that no score has; merging a text never comes to the second.
TEST(GgufTokens, ScoresMergeAsRanksDo) {
  const CharacterBpeDefinition definition = characters_and({{"b", "c"},
                                                            {"a", "a"},
                                                            {"a", "b"},
                                                            {"aa", "a"},
                                                            {"▁", "a"},
                                                            {"a", "aa"},
                                                            {"aa", "aa"},
                                                            {"▁", "▁"},
                                                            {"a", "bc"},
                                                            {"▁", "aa"}});
  const std::map<std::string, GgufValue> values = written(definition);
  EXPECT_EQ(std::get<std::string>(values.at("tokenizer.ggml.model")), "llama");
  EXPECT_EQ(std::get<bool>(values.at("tokenizer.ggml.add_space_prefix")), true);
  EXPECT_EQ(std::get<std::vector<int32_t>>(values.at("tokenizer.ggml.token_type"))[3], 6) << "a byte";
  EXPECT_EQ(std::get<uint32_t>(values.at("tokenizer.ggml.eos_token_id")), 2U);
  std::map<std::string, float> scores;
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    scores[definition.tokens[id]] = std::get<std::vector<float>>(values.at("tokenizer.ggml.scores"))[id];
  }
  const CharacterBpeTokenizer tokenizer(definition);
  const std::vector<std::string> letters = {"▁", "a", "b", "c"};
  for (size_t number = 0; number < 4096; ++number) {  // every text of six letters
    std::string text;
    std::vector<std::string> now = {"▁"};
    for (size_t rest = number + 4096; rest > 1; rest /= 4) {
      now.push_back(letters[rest % 4]);
      text += now.back();
    }
    std::vector<std::string> expected;
    for (const int32_t id : tokenizer.encode(text)) expected.push_back(tokenizer.spelling(id));
    ASSERT_EQ(merged_by_scores(scores, now), expected) << text;
  }
}

TEST(GgufTokens, ScoresThatWouldMergeOtherwiseAreRefused) {
  // The characters of "abc" come to "a" and "bc", which nothing joins here; scores would.
  EXPECT_THAT(error_message([] {
                written(characters_and({{"b", "c"}, {"a", "b"}, {"ab", "c"}}));
              }),
              AllOf(HasSubstr("\"abc\""), HasSubstr("that no merge joins")));
  EXPECT_NO_THROW(written(characters_and({{"b", "c"}, {"a", "b"}, {"a", "bc"}, {"ab", "c"}})));
  // A text that spells a special token would become that token.
  EXPECT_THAT(error_message([] { written(characters_and({{"<", "s"}})); }), HasSubstr("\"<s>\""));
}

TEST(GgufTokens, RulesThatReadersOfCharactersLackAreRefused) {
  CharacterBpeDefinition definition = characters_and({});
  definition.space_before = SpaceBefore::kFirst;
  definition.replaces_first = false;
  EXPECT_THAT(error_message([&] { written(definition); }), HasSubstr("only where it does not begin with one"));
  definition.space_before = SpaceBefore::kNever;
  EXPECT_EQ(std::get<bool>(written(definition).at("tokenizer.ggml.add_space_prefix")), false);
  definition.tokens.emplace_back("<x>");
  definition.added = {{.id = static_cast<int32_t>(definition.tokens.size()) - 1, .text = "<x>"}};
  EXPECT_NO_THROW(written(definition));
  definition.added[0].strips_right = true;
  EXPECT_THAT(error_message([&] { written(definition); }), HasSubstr("\"<x>\" is looked for with options"));
  definition.added.clear();
  definition.end_of_text.reset();
  EXPECT_THAT(error_message([&] { written(definition); }), HasSubstr("no token that ends texts"));
}

}  // namespace gguf_tokens_test
}  // namespace headshare
