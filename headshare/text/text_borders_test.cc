// Tests what stands around a text, and what is said of tokenizers that have nothing to end it.
#include "headshare/text/text_borders.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/test_support.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

BpeTokenizer bytes_with(const std::vector<std::string>& special, std::optional<int32_t> end_of_text = {}) {
  BpeDefinition definition;
  for (int byte = 0; byte < 256; ++byte) definition.tokens.emplace_back(1, static_cast<char>(byte));
  for (const std::string& text : special) {
    definition.special.push_back(static_cast<int32_t>(definition.tokens.size()));
    definition.tokens.push_back(text);
  }
  definition.end_of_text = end_of_text;
  return BpeTokenizer(definition);
}

TEST(TextBordersTest, AnEndAloneOrBartsPair) {
  EXPECT_THAT(text_borders(bytes_with({"<|endoftext|>"}, 256), "x").around({5, 6}), ElementsAre(5, 6, 256));
  const TextBorders bart = text_borders(bytes_with({"<s>", "</s>"}), "x");
  EXPECT_THAT(bart.around({5}), ElementsAre(256, 5, 257));
  EXPECT_THAT(bart.around({}), ElementsAre(256, 257));
  EXPECT_EQ(bart.size(), 2);
  const TextBorders both = text_borders(bytes_with({"<s>", "</s>", "<|endoftext|>"}, 258), "x");
  EXPECT_THAT(both.around({5}), ElementsAre(5, 258));
}

TEST(TextBordersTest, SomeDecodersReadATokenBeforeEveryText) {
  BpeDefinition definition = bytes_with({"<s>", "</s>"}).definition();
  EXPECT_EQ(begins_texts(BpeTokenizer(definition)), std::nullopt);
  definition.begin_of_text = 256;
  definition.end_of_text = 257;
  const BpeTokenizer llama(definition);
  EXPECT_EQ(begins_texts(llama), 256);
  EXPECT_EQ(llama.special(SpecialToken::kClassify), std::nullopt);
  EXPECT_EQ(llama.special(SpecialToken::kBeginOfText), 256);
  EXPECT_EQ(llama.pair_separators(), 1);
}

TEST(TextBordersTest, EveryKindWithBothRolesHasThem) {
  const auto wordpiece = train_on({.kind = TokenizerKind::kWordPiece, .vocabulary_size = 30, .min_count = 1}, {"a b"});
  const auto id = [&](SpecialToken role) { return wordpiece->special(role).value(); };
  EXPECT_THAT(text_borders(*wordpiece, "x").around({5}),
              ElementsAre(id(SpecialToken::kClassify), 5, id(SpecialToken::kSeparate)));
  EXPECT_TRUE(has_text_borders(*wordpiece));
  EXPECT_FALSE(has_text_borders(bytes_with({"<s>"})));
}

TEST(TextBordersTest, WhatLacksThemIsToldWhatHelpsIt) {
  const auto refused = [](const Tokenizer& tokenizer) {
    return error_message([&] { text_borders(tokenizer, "the target's tokenizer"); });
  };
  EXPECT_THAT(refused(bytes_with({"<s>"})),
              AllOf(HasSubstr("the target's tokenizer (bpe, 257 tokens) has no token that ends a text"),
                    HasSubstr("neither <|endoftext|> nor both <s> and </s>"), HasSubstr("--no-end-of-text")));
  const auto bytes = train_on({.kind = TokenizerKind::kBytes}, {});
  EXPECT_THAT(refused(*bytes), HasSubstr("use --tokenizer sentencepiece, or --tokenizer bpe"));
  EXPECT_THAT(refused(*bytes), Not(HasSubstr("its model")));
}

}  // namespace
}  // namespace headshare
