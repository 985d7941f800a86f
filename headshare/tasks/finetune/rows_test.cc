#include "headshare/tasks/finetune/rows.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/ops/testing.h"
#include "headshare/tasks/testing.h"
#include "headshare/text/bpe/bpe_file.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/bpe/byte_alphabet.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The tokens are [PAD] 0, [CLS] 2, [SEP] 3, a 5, fox 6, dogs 7, the 8, ##es 9, ##ing 10.
class Rows : public testing::Test {
 protected:
  std::shared_ptr<Tokenizer> tokenizer_ = small_wordpiece();
  RowEncoder rows_{*tokenizer_, 8};
};

TEST_F(Rows, AreWhatBertReads) {
  const EncodedRow one = rows_.single("the foxes");
  EXPECT_THAT(one.ids, ElementsAre(2, 8, 6, 9, 3));
  EXPECT_EQ(one.second, 5);
  const EncodedRow two = rows_.pair("a fox", "dogs");
  EXPECT_THAT(two.ids, ElementsAre(2, 5, 6, 3, 7, 3));
  EXPECT_EQ(two.second, 4);
  EXPECT_THAT(rows_.pair("a fox", "").ids, ElementsAre(2, 5, 6, 3));
  EXPECT_EQ(rows_.rows(), 3);
  EXPECT_EQ(rows_.shortened(), 0);
}

// Makes a tokenizer of bytes, and RoBERTa's special tokens <s> 256, </s> 257, <pad> 258.
BpeTokenizer roberta_like() {
  BpeNames names;
  for (int byte = 0; byte < 256; ++byte) names.tokens.push_back(to_alphabet(std::string(1, static_cast<char>(byte))));
  for (const char* text : {"<s>", "</s>", "<pad>"}) {
    names.special.push_back(static_cast<int32_t>(names.tokens.size()));
    names.tokens.emplace_back(text);
  }
  return BpeTokenizer(bpe_from_names(names, "test"));
}

TEST(RobertaRows, HaveTwoSeparatorsBetweenTheTextsOfAPair) {
  const BpeTokenizer tokenizer = roberta_like();
  RowEncoder rows(tokenizer, 8);
  EXPECT_THAT(rows.single("ab").ids, ElementsAre(256, 'a', 'b', 257));
  const EncodedRow pair = rows.pair("ab", "c");
  EXPECT_THAT(pair.ids, ElementsAre(256, 'a', 'b', 257, 257, 'c', 257));
  EXPECT_EQ(pair.second, 5);
  EXPECT_THAT(rows.pair("abc", "def").ids, ElementsAre(256, 'a', 'b', 257, 257, 'd', 'e', 257));
  EXPECT_THAT(error_message([&] { RowEncoder(tokenizer, 5); }), HasSubstr("at least 6"));
}

// The rows are those of transformers' truncation "longest_first".
TEST_F(Rows, TheLongerTextIsCutFirst) {
  EXPECT_THAT(rows_.single("a a a a a a a").ids, ElementsAre(2, 5, 5, 5, 5, 5, 5, 3));
  EXPECT_THAT(rows_.pair("a a a a", "the the the").ids, ElementsAre(2, 5, 5, 5, 3, 8, 8, 3));
  EXPECT_THAT(rows_.pair("a a a", "the the the the").ids, ElementsAre(2, 5, 5, 5, 3, 8, 8, 3));
  EXPECT_THAT(rows_.pair("a", "the the the the the").ids, ElementsAre(2, 5, 3, 8, 8, 8, 8, 3));
  EXPECT_THAT(rows_.pair("a a a a a a", "the").ids, ElementsAre(2, 5, 5, 5, 5, 3, 8, 3));
  EXPECT_EQ(rows_.shortened(), 5);
}

TEST_F(Rows, WordsAreFoundByTheirBytes) {
  const EncodedRow pair = rows_.pair_with_words({"the foxes", {4, 9}}, {"dogs a", {0, 4}});
  EXPECT_THAT(pair.ids, ElementsAre(2, 8, 6, 9, 3, 7, 5, 3));
  EXPECT_EQ(pair.words[0], (TokenRange{2, 4}));
  EXPECT_EQ(pair.words[1], (TokenRange{5, 6}));
  const EncodedRow text = rows_.single_with_words("the dogs a fox", {TextSpan{0, 8}, TextSpan{11, 14}});
  EXPECT_EQ(text.words[0], (TokenRange{1, 3}));
  EXPECT_EQ(text.words[1], (TokenRange{4, 5}));
}

TEST_F(Rows, ACutNeverTakesTheLastWord) {
  const EncodedRow late = rows_.single_with_words("the a a a a a a a fox a", {TextSpan{0, 3}, TextSpan{18, 21}});
  EXPECT_THAT(late.ids, ElementsAre(2, 5, 5, 5, 5, 5, 6, 3));
  EXPECT_EQ(late.words[1], (TokenRange{6, 7}));
  EXPECT_EQ(late.words[0], (TokenRange{1, 1})) << "cut away: nothing of it is left";
  const EncodedRow pair = rows_.pair_with_words({"a a a a dogs", {8, 12}}, {"the the the fox", {12, 15}});
  EXPECT_THAT(pair.ids, ElementsAre(2, 5, 5, 7, 3, 8, 6, 3));
  EXPECT_EQ(pair.words[0], (TokenRange{3, 4}));
  EXPECT_EQ(pair.words[1], (TokenRange{6, 7}));
}

TEST_F(Rows, BatchesArePaddedAndTellSegments) {
  const EncodedRow one = rows_.single("a");
  const EncodedRow two = rows_.pair("a fox", "dogs");
  EncoderOptions encoder;
  const EncoderInput input = to_input({&one, &two}, rows_.padding(), encoder, at::kCPU);
  EXPECT_TRUE(at::equal(input.ids, at::tensor({2, 5, 3, 0, 0, 0, 2, 5, 6, 3, 7, 3}, at::kLong).view({2, 6})));
  EXPECT_TRUE(
      at::equal(input.visible.to(at::kLong), at::tensor({1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1}, at::kLong).view({2, 6})));
  EXPECT_TRUE(at::equal(input.segments, at::tensor({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, at::kLong).view({2, 6})));
  encoder.segments = 1;
  const EncoderInput plain = to_input({&two, &two}, rows_.padding(), encoder, at::kCPU);
  EXPECT_FALSE(plain.visible.defined()) << "nothing is padded";
  EXPECT_FALSE(plain.segments.defined());
}

TEST_F(Rows, WordWeightsFormMeans) {
  const EncodedRow row = rows_.pair_with_words({"the foxes", {4, 9}}, {"dogs a", {0, 4}});
  const EncodedRow none = rows_.single("a");
  const Tensor weights = word_weights({&row, &none}, 8, at::kCPU);
  EXPECT_TRUE(at::equal(weights[0][0], at::tensor({0.0F, 0.0F, 0.5F, 0.5F, 0.0F, 0.0F, 0.0F, 0.0F})));
  EXPECT_EQ(weights[0][1][5].item<float>(), 1);
  EXPECT_EQ(weights.sum().item<float>(), 2) << "a row without words has no weights";
}

TEST(RowEncoder, RefusesWhatHasNoRoomOrNoSpecialTokens) {
  const auto tokenizer = small_wordpiece();
  EXPECT_THAT(error_message([&] { RowEncoder(*tokenizer, 4); }), HasSubstr("rows of 4 tokens hold no pair"));
  EXPECT_THAT(error_message([&] { RowEncoder(ByteTokenizer(), 8); }), HasSubstr("fine-tuning"));
}

}  // namespace
}  // namespace headshare
