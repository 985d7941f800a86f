// Every kind of tokenizer promises this: spans, roles of special tokens, words.
#include "headshare/text/interface/tokenizer.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/test_support.h"

namespace headshare {
namespace tokenizer_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kCorpus = "the theme of then and there, don't you think?\nthe then the é日\n";

std::vector<std::unique_ptr<Tokenizer>> samples() {
  std::vector<std::unique_ptr<Tokenizer>> all;
  all.push_back(train_on({.kind = TokenizerKind::kBytes}, {}));
  all.push_back(train_on({.kind = TokenizerKind::kCharacters, .unknown_token = true}, {kCorpus}));
  all.push_back(train_on({.kind = TokenizerKind::kWords}, {kCorpus}));
  all.push_back(train_on({.kind = TokenizerKind::kBpe, .vocabulary_size = 280, .min_count = 1}, {kCorpus}));
  BpeDefinition with_space = dynamic_cast<const BpeTokenizer&>(*all.back()).definition();
  with_space.add_prefix_space = true;
  all.push_back(std::make_unique<BpeTokenizer>(with_space));
  return all;
}

TEST(TokenizerTest, SpansBelongToTheIdsOfEncode) {
  Philox random(stream_key(1, "spans"));
  for (const auto& tokenizer : samples()) {
    for (int round = 0; round < 200; ++round) {
      std::string text = random_text(&random);
      if (valid_utf8_prefix(text) < text.size() && tokenizer->kind() != "bytes" && tokenizer->kind() != "bpe") continue;
      const TokensWithSpans result = tokenizer->encode_with_spans(text);
      ASSERT_EQ(result.ids, tokenizer->encode(text));
      ASSERT_EQ(result.spans.size(), result.ids.size());
      TextSpan before;
      for (const TextSpan& span : result.spans) {
        ASSERT_LE(before.begin, span.begin);
        ASSERT_LE(before.end, span.end);
        ASSERT_LE(span.begin, span.end);
        ASSERT_LE(span.end, text.size());
        before = span;
      }
    }
  }
}

TEST(TokenizerTest, SpansAreTheTokensOwnBytes) {
  const auto all = samples();
  EXPECT_THAT(spelled(*all[0], "aé"), ElementsAre("a", "\xC3", "\xA9"));
  EXPECT_THAT(spelled(*all[1], "té日€"), ElementsAre("t", "é", "日", "€"));
  EXPECT_THAT(spelled(*all[2], " the  é\nzebra"), ElementsAre("the", "é", "\n", "zebra"));
  EXPECT_THAT(spelled(*all[3], "the then"), ElementsAre("the", " then"));
  EXPECT_THAT(spelled(*all[4], "then"), ElementsAre("then"));  // encoded as " then"
}

TEST(TokenizerTest, RolesAreThoseOfTheVocabulary) {
  const auto all = samples();
  EXPECT_EQ(all[0]->special(SpecialToken::kUnknown), std::nullopt);
  EXPECT_EQ(all[1]->special(SpecialToken::kUnknown), all[1]->vocabulary_size() - 1);
  EXPECT_EQ(all[2]->special(SpecialToken::kUnknown), 0);
  EXPECT_EQ(all[3]->special(SpecialToken::kEndOfText), 0);
  EXPECT_EQ(all[3]->special(SpecialToken::kMask), std::nullopt);
  EXPECT_EQ(require_special(*all[3], SpecialToken::kEndOfText, "x"), 0);
  EXPECT_THAT(error_message([&] { require_special(*all[3], SpecialToken::kMask, "m/tokenizer.json"); }),
              AllOf(HasSubstr("m/tokenizer.json: the tokenizer (bpe, 280 tokens) has no token for 'mask'"),
                    HasSubstr("wordpiece")));
}

// A writer of another format asks for the vocabulary, which must agree with what the tokenizer does.
TEST(TokenizerTest, TheVocabularySpellsEveryToken) {
  for (const auto& tokenizer : samples()) {
    const std::optional<Vocabulary> vocabulary = tokenizer->vocabulary();
    ASSERT_TRUE(vocabulary.has_value()) << tokenizer->kind();
    ASSERT_EQ(static_cast<int64_t>(vocabulary->tokens.size()), tokenizer->vocabulary_size()) << tokenizer->kind();
    for (int32_t id = 0; id < tokenizer->vocabulary_size(); ++id) {
      EXPECT_EQ(vocabulary->tokens[static_cast<size_t>(id)].spelling, tokenizer->spelling(id)) << tokenizer->kind();
    }
  }
  EXPECT_FALSE(train_on({.kind = TokenizerKind::kHashMd}, {})->vocabulary().has_value());
}

TEST(TokenizerTest, TheVocabularyOfBpeHasMergesAndAddedTokens) {
  BpeDefinition definition = dynamic_cast<const BpeTokenizer&>(*samples()[3]).definition();
  const auto id = static_cast<int32_t>(definition.tokens.size());
  definition.tokens.emplace_back("<tool>");
  definition.special.push_back(id);
  definition.added = {{.id = id, .text = "<tool>", .strips_left = true}};
  const Vocabulary vocabulary = *BpeTokenizer(definition).vocabulary();
  EXPECT_EQ(vocabulary.merges, definition.merges);
  EXPECT_THAT(vocabulary.scores, testing::IsEmpty());
  EXPECT_EQ(vocabulary.added, definition.added);
  const auto spelling = [&](int32_t token) { return vocabulary.tokens[static_cast<size_t>(token)].spelling; };
  ASSERT_FALSE(vocabulary.merges.empty());
  for (const auto& [left, right, result] : vocabulary.merges)
    EXPECT_EQ(spelling(left) + spelling(right), spelling(result));
  EXPECT_EQ(vocabulary.tokens[0].kind, TokenKind::kSpecial);  // <|endoftext|>
  EXPECT_EQ(vocabulary.tokens[1].kind, TokenKind::kOrdinary);
  EXPECT_EQ(vocabulary.tokens.back().kind, TokenKind::kAdded);
}

TEST(TokenizerTest, TokensSayWhetherTheyContinueAWord) {
  const auto all = samples();
  EXPECT_THAT(error_message([&] { all[0]->continues_word(65); }), HasSubstr("'bytes' do not tell"));
  EXPECT_THAT(error_message([&] { all[1]->continues_word(0); }), HasSubstr("'characters' do not tell"));
  EXPECT_FALSE(all[2]->continues_word(2));
  const auto continues = [&](const std::string& text) { return all[3]->continues_word(all[3]->encode(text)[0]); };
  EXPECT_TRUE(continues("x"));
  EXPECT_TRUE(continues("7"));
  EXPECT_TRUE(continues("é"));
  EXPECT_FALSE(continues(" the"));
  EXPECT_FALSE(continues("\n"));
  EXPECT_FALSE(continues(","));
  EXPECT_FALSE(all[3]->continues_word(0));  // <|endoftext|>
  EXPECT_THROW(all[3]->continues_word(280), Error);
}

TEST(TokenizerTest, SpecialTokensAreReadFromTextOnRequestOnly) {
  const auto all = samples();
  const Tokenizer& bpe = *all[3];
  const std::vector<int32_t> the = bpe.encode("the");
  ASSERT_EQ(the.size(), 1U);
  EXPECT_THAT(bpe.encode_with_special("the<|endoftext|><|endoftext|>the"), ElementsAre(the[0], 0, 0, the[0]));
  EXPECT_EQ(bpe.encode_with_special("<|endoftext|"), bpe.encode("<|endoftext|"));
  EXPECT_THAT(bpe.encode_with_special(""), ElementsAre());
  for (const int32_t id : bpe.encode("<|endoftext|>")) EXPECT_NE(id, 0);
  EXPECT_EQ(all[0]->encode_with_special("<unk>"), all[0]->encode("<unk>"));
}

}  // namespace tokenizer_test
}  // namespace headshare
