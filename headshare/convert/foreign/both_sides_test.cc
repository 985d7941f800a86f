// These tests ask which tokenizers fit which models, and what the target of a model with languages gets.
#include "headshare/convert/foreign/both_sides.h"

#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/text/simple/byte_tokenizer.h"
#include "headshare/text/text_borders.h"
#include "headshare/text/unigram/unigram_tokenizer.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<Tokenizer> tokenizer_with_languages(bool leads) {
  UnigramDefinition d;
  d.tokens = {"<s>", "</s>", "<unk>", "de_DE", "ro_RO", "a"};
  d.scores = {0, 0, 0, 0, 0, -1};
  d.special = {0, 1, 2};
  d.added = {{.id = 3, .text = "de_DE", .special = true}, {.id = 4, .text = "ro_RO", .special = true}};
  d.unknown = 2;
  d.language = {.id = 3, .leads = leads};
  return std::make_shared<UnigramTokenizer>(d);
}

EncoderDecoderOptions model_that_begins_with(std::optional<int64_t> first) {
  EncoderDecoderOptions options;
  options.marks.forced_first = first;
  return options;
}

TEST(BothSidesTest, ALanguageBeforeATargetIsTheFirstTokenThatIsForced) {
  const TokenizerPair fifty = both_sides(tokenizer_with_languages(true), model_that_begins_with(4), "t.json");
  EXPECT_THAT(text_borders(*fifty.source, "x").around({5}), ElementsAre(3, 5, 1));
  EXPECT_THAT(target_borders(*fifty.target, "x").around({5}), ElementsAre(4, 5, 1));
  const TokenizerPair first = both_sides(tokenizer_with_languages(false), model_that_begins_with(4), "t.json");
  EXPECT_TRUE(first.joint());
  EXPECT_THAT(text_borders(*first.source, "x").around({5}), ElementsAre(5, 1, 3));
  EXPECT_THAT(target_borders(*first.target, "x").around({5}), ElementsAre(5, 1));
  EXPECT_TRUE(both_sides(tokenizer_with_languages(true), model_that_begins_with({}), "t.json").joint());
}

TEST(BothSidesTest, TokenizersThatDoNotFitAreRefused) {
  EXPECT_THAT(error_message([] { both_sides(tokenizer_with_languages(true), EncoderOptions(), "t.json"); }),
              HasSubstr("t.json puts the token of a language, de_DE, beside every text, and the model has no"));
  const auto bytes = std::make_shared<ByteTokenizer>();
  EXPECT_THAT(error_message([&] { both_sides(bytes, EncoderDecoderOptions(), "t.json"); }),
              HasSubstr("t.json (bytes, 256 tokens) has no tokens that stand around a text"));
  EXPECT_EQ(both_sides(bytes, DecoderOptions(), "t.json").target, bytes);
  EXPECT_EQ(both_sides(nullptr, EncoderDecoderOptions(), "t.json").target, nullptr);
}

TEST(BothSidesTest, AnOwnTokenizerThatCannotBeReadDoesNotLoseTheModel) {
  const TemporaryDirectory folder;
  write_file(folder.path() / "tokenizer.json", R"({"model": {"type": "WordLevel"}})");
  EXPECT_THAT(
      error_message([&] { load_foreign_tokenizer(folder.path() / "tokenizer.json"); }),
      testing::AllOf(HasSubstr("WordLevel"), HasSubstr("another tokenizer (--tokenizer PATH), or without one")));
}

}  // namespace
}  // namespace headshare
