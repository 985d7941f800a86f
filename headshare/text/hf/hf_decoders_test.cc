// Tests what is read of the tokenizer.json of decoders: rules of splitting, normal form, the tokens around texts. That
// ids equal those of Hugging Face tokenizers is tested in tests/oracles/test_decoder_tokenizers.py.
#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/hf/hf_borders.h"
#include "headshare/text/hf/hf_parts.h"
#include "headshare/text/hf/hf_split.h"
#include "headshare/text/hf/hf_tokenizer.h"
#include "headshare/text/test_support.h"
#include "headshare/text/text_borders.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Returns a byte-level BPE for Hugging Face with these special tokens behind the others.
json sample_with(const std::vector<std::string>& special) {
  const auto tokenizer = train_on({.vocabulary_size = 270, .min_count = 1}, {"the theme of then and there"});
  json object = hf_json(*tokenizer);
  int64_t id = tokenizer->vocabulary_size();
  for (const std::string& text : special) {
    object["added_tokens"].push_back({{"id", id++}, {"content", text}, {"special", true}});
  }
  return object;
}

std::unique_ptr<Tokenizer> read(const json& object, const TokensBeside& beside = {}) {
  auto tokenizer = tokenizer_from_json(object, "t.json", beside);
  for (const json& file : {tokenizer->to_json(), hf_json(*tokenizer)}) {
    EXPECT_EQ(tokenizer_from_json(file, "t.json", beside)->to_json(), tokenizer->to_json());
  }
  return tokenizer;
}

TEST(HfDecodersTest, EveryRuleOfSplittingReadsBack) {
  for (const SplitRule rule : kSplitRules) {
    json object = sample_with({});
    object["pre_tokenizer"] = hf_split_json({.rule = rule});
    const auto tokenizer = read(object);
    EXPECT_EQ(dynamic_cast<const BpeTokenizer&>(*tokenizer).definition().split, rule);
    const bool first = rule == SplitRule::kGpt2 || rule == SplitRule::kNone;
    EXPECT_EQ(tokenizer->to_json()["version"], first ? 1 : 2) << split_name(rule);
  }
}

TEST(HfDecodersTest, OtherPatternsAreQuoted) {
  json object = sample_with({});
  object["pre_tokenizer"] = hf_split_json({.rule = SplitRule::kLlama3});
  json& split = object["pre_tokenizer"]["pretokenizers"][0];
  split["pattern"]["Regex"] = "\\w+|\\d";
  EXPECT_THAT(error_message([&] { read(object); }), HasSubstr("by \\w+|\\d; headshare has the patterns of"));
}

TEST(HfDecodersTest, ATokenBeforeEveryText) {
  json object = sample_with({"<|begin_of_text|>", "<|end_of_text|>"});
  EXPECT_EQ(begins_texts(*read(object)), std::nullopt);
  object["post_processor"] = {{"type", "Sequence"},
                              {"processors", {{{"type", "ByteLevel"}}, begin_template("<|begin_of_text|>", 270)}}};
  const auto tokenizer = read(object);
  EXPECT_EQ(begins_texts(*tokenizer), 270);
  EXPECT_EQ(tokenizer->special(SpecialToken::kBeginOfText), 270);
  EXPECT_EQ(tokenizer->special(SpecialToken::kEndOfText), 271) << "its partner";
  EXPECT_EQ(tokenizer->to_json()["version"], 2);
  const TokensBeside beside = {.tokens = {}, .names = {{"eos_token", "<|endoftext|>"}}, .adds_begin = false};
  EXPECT_EQ(begins_texts(*read(object, beside)), std::nullopt) << "add_bos_token counts";
  EXPECT_EQ(read(object, beside)->special(SpecialToken::kEndOfText), 0);
}

TEST(HfDecodersTest, EosTokenEndsATextAndBeginsByItsFlag) {
  const json object = sample_with({"<s>", "</s>", "<|im_end|>"});
  const TokensBeside beside = {
      .tokens = {}, .names = {{"bos_token", "<s>"}, {"eos_token", "<|im_end|>"}}, .adds_begin = true};
  const auto tokenizer = tokenizer_from_json(object, "t.json", beside);
  EXPECT_EQ(begins_texts(*tokenizer), 270);
  EXPECT_EQ(tokenizer->special(SpecialToken::kEndOfText), 272);
  EXPECT_EQ(tokenizer->special(SpecialToken::kClassify), std::nullopt) << "it is no RoBERTa";
  EXPECT_EQ(read(object)->special(SpecialToken::kClassify), 270) << "but this is";
}

TEST(HfDecodersTest, ModernBertHasBertsRoles) {
  json object = sample_with({"[CLS]", "[SEP]", "[MASK]"});
  object["post_processor"] =
      template_json({"[CLS]:0 A:0 [SEP]:0", "[CLS]:0 A:0 [SEP]:0 B:0 [SEP]:0"}, {{"[CLS]", 270}, {"[SEP]", 271}});
  const auto tokenizer = read(object);
  EXPECT_EQ(tokenizer->special(SpecialToken::kClassify), 270);
  EXPECT_EQ(tokenizer->special(SpecialToken::kMask), 272);
  EXPECT_EQ(tokenizer->special(SpecialToken::kEndOfText), std::nullopt);
  EXPECT_EQ(tokenizer->pair_separators(), 1);
  EXPECT_EQ(hf_json(*tokenizer)["post_processor"], object["post_processor"]) << "it has one segment";
}

// Mistral's Tekken has such a template, and a configuration that takes its token away.
TEST(HfDecodersTest, ADecoderThatAddsNothingIsNoRoberta) {
  json object = sample_with({"<s>", "</s>", "<pad>"});
  object["post_processor"] = begin_template("<s>", 270);
  const TokensBeside beside = {
      .tokens = {}, .names = {{"bos_token", "<s>"}, {"eos_token", "</s>"}}, .adds_begin = false};
  const auto tokenizer = read(object, beside);
  EXPECT_EQ(begins_texts(*tokenizer), std::nullopt);
  EXPECT_EQ(tokenizer->special(SpecialToken::kClassify), std::nullopt);
  EXPECT_EQ(tokenizer->special(SpecialToken::kSeparate), std::nullopt);
  EXPECT_EQ(tokenizer->special(SpecialToken::kEndOfText), 271);
  EXPECT_EQ(tokenizer->special(SpecialToken::kPadding), 272);
  EXPECT_EQ(tokenizer->to_json()["roles"], "decoder");
  EXPECT_EQ(tokenizer->to_json()["version"], 2);
  EXPECT_EQ(hf_json(*tokenizer)["post_processor"], template_json(kEmptyTemplate, {}));
  json damaged = tokenizer->to_json();
  damaged["roles"] = "gpt";
  EXPECT_THAT(error_message([&] { tokenizer_from_json(damaged, "t.json"); }), HasSubstr("'bert' or 'decoder'"));
  object = sample_with({});
  object["post_processor"] = template_json(kEmptyTemplate, {});
  EXPECT_EQ(read(object)->to_json()["version"], 1) << "a vocabulary without <s> needs no roles";
}

TEST(HfDecodersTest, EveryFormOfAPairIsWrittenBack) {
  for (const auto& [form, name] : begin_of_pair_names()) {
    json object = sample_with({"<s>"});
    object["post_processor"] = begin_template("<s>", 270, form);
    const auto tokenizer = read(object);
    EXPECT_EQ(begins_texts(*tokenizer), 270);
    EXPECT_EQ(hf_json(*tokenizer)["post_processor"], object["post_processor"]) << name;
    json damaged = tokenizer->to_json();
    damaged["begin-of-pair"] = "twice";
    EXPECT_THAT(error_message([&] { tokenizer_from_json(damaged, "t.json"); }), HasSubstr("once-one-segment, not"));
  }
}

TEST(HfDecodersTest, AnEosTokenThatIsNotListedIsSpecial) {
  json object = sample_with({});
  object["model"]["vocab"]["xyz"] = 270;  // no merge makes it, and added_tokens lacks it
  const auto tokenizer = read(object, {.tokens = {}, .names = {{"eos_token", "xyz"}}});
  EXPECT_EQ(tokenizer->special(SpecialToken::kEndOfText), 270);
  object = sample_with({});
  const TokensBeside merged = {.tokens = {}, .names = {{"eos_token", "the"}}};
  EXPECT_THAT(error_message([&] { read(object, merged); }), HasSubstr("names \"the\", which is not among"));
}

TEST(HfDecodersTest, NoIdIsAboveTheLargest) {
  json object = sample_with({});
  object["model"]["vocab"]["xyz"] = INT32_MAX;
  const TokensBeside beside = {.tokens = {{.id = kIdOfText, .text = "[NEW]"}}};
  EXPECT_THAT(error_message([&] { read(object, beside); }), HasSubstr("'[NEW]' needs an id above the largest"));
}

TEST(HfDecodersTest, ByteFallbackDoesNothingInByteLevelBpe) {
  json object = sample_with({});
  object["model"]["byte_fallback"] = true;
  EXPECT_EQ(read(object)->kind(), "bpe");
  object["decoder"] = nullptr;
  EXPECT_EQ(read(object)->kind(), "bpe");
}

TEST(HfDecodersTest, NormalFormAndWholeWords) {
  json object = sample_with({});
  object["normalizer"] = {{"type", "NFC"}};
  const auto composing = read(object);
  EXPECT_EQ(composing->encode("e\u0301"), composing->encode("\u00E9"));
  EXPECT_FALSE(composing->lossless());
  object["normalizer"] = {{"type", "NFKC"}};
  EXPECT_THAT(error_message([&] { read(object); }), HasSubstr("NFKC"));
  object = sample_with({});
  object["model"]["vocab"]["xyz"] = 270;
  EXPECT_EQ(read(object)->encode("xyz").size(), 3U);
  object["model"]["ignore_merges"] = true;
  EXPECT_THAT(read(object)->encode("xyz"), testing::ElementsAre(270));
}

TEST(HfDecodersTest, DamagedSettingsAreRefused) {
  json object = sample_with({"<s>"});
  object["post_processor"] = begin_template("<s>", 270);
  const json own = read(object)->to_json();
  const auto refused = [&own](const char* key, const json& value) {
    json damaged = own;
    damaged[key] = value;
    return error_message([&] { tokenizer_from_json(damaged, "t.json"); });
  };
  EXPECT_THAT(refused("begin-of-text", 5), HasSubstr("begin-of-text is the id 5"));
  EXPECT_THAT(refused("normal-form", "nfd"), HasSubstr("normal-form must be 'nfc'"));
  EXPECT_THAT(refused("split", "llama4"), HasSubstr("gpt2, none, digits, llama3"));
  EXPECT_THAT(refused("version", 3), HasSubstr("reads versions 1 to 2"));
}

}  // namespace
}  // namespace headshare
