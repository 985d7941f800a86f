// Tests what stands beside the files of a tokenizer: where tokens come from, which file counts, what is refused.
#include "headshare/text/hf/hf_folder.h"

#include <gmock/gmock.h>

#include "headshare/base/json/json_input.h"
#include "headshare/base/notice.h"
#include "headshare/base/testing.h"
#include "headshare/text/bpe/byte_alphabet.h"
#include "headshare/text/hf/hf_parts.h"
#include "headshare/text/sentencepiece/train_sentencepiece.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class HfFolderTest : public testing::Test {
 protected:
  fs::path path(const char* name) const { return directory_.path() / name; }
  void write(const char* name, const json& object) const { write_file(path(name), object.dump()); }
  std::unique_ptr<Tokenizer> load() const { return load_tokenizer(directory_.path()); }
  std::string refusal() const {
    return error_message([this] { load(); });
  }

  // Writes the 256 bytes and "th" after RoBERTa's first four.
  void write_pair() const {
    json vocabulary = {{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}};
    for (int byte = 0; byte < 256; ++byte) vocabulary[to_alphabet(std::string(1, static_cast<char>(byte)))] = byte + 4;
    vocabulary["th"] = 260;
    vocabulary["<mask>"] = 261;
    write("vocab.json", vocabulary);
    write_file(path("merges.txt"), "#version: 0.2\nt h\n");
  }

  void write_vocabulary() const {
    write_file(path("vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ne\n##1\n[\n]\n");
  }

  TemporaryDirectory directory_;
};

TEST_F(HfFolderTest, NothingBesideIsNothing) {
  EXPECT_TRUE(tokens_beside(HfTokenizerConfig(directory_.path())).tokens.empty());
}

TEST_F(HfFolderTest, TheConfigurationOfATokenizerIsTyped) {
  EXPECT_FALSE(HfTokenizerConfig(directory_.path()).is_there());
  EXPECT_EQ(HfTokenizerConfig(directory_.path()).tokenizer_class(), "");
  write("tokenizer_config.json",
        {{"tokenizer_class", "MBartTokenizer"}, {"src_lang", "en_XX"}, {"tgt_lang", nullptr}, {"add_prefix_space", 1}});
  const HfTokenizerConfig config(directory_.path());
  EXPECT_TRUE(config.is_there());
  EXPECT_EQ(config.tokenizer_class(), "MBartTokenizer");
  EXPECT_EQ(config.source_language(), "en_XX");
  EXPECT_EQ(config.target_language(), "");
  EXPECT_THAT(error_message([&] { config.adds_prefix_space(); }), HasSubstr("tokenizer_config.json: add_prefix_space"));
  write("tokenizer_config.json", json::array());
  EXPECT_THAT(error_message([&] { HfTokenizerConfig(directory_.path()); }), HasSubstr("must be a JSON object"));
}

TEST_F(HfFolderTest, TheDecoderOfTheConfigurationCountsAlone) {
  const json entity = {{"content", "[E1]"}, {"lstrip", true}, {"normalized", false}, {"special", true}};
  write("tokenizer_config.json", {{"added_tokens_decoder", {{"12", entity}, {"3", {{"content", "x"}}}}},
                                  {"mask_token", "[MASK]"},
                                  {"pad_token", nullptr}});
  write("added_tokens.json", {{"unread", 7}});
  EXPECT_THAT(tokens_beside(HfTokenizerConfig(directory_.path())).tokens,
              ElementsAre(AddedToken{.id = 3, .text = "x", .normalized = true},
                          AddedToken{.id = 12, .text = "[E1]", .special = true, .strips_left = true},
                          AddedToken{.id = kIdOfText, .text = "[MASK]", .special = true}));
}

TEST_F(HfFolderTest, TheOldFilesTogetherSayWhatIsSpecial) {
  write("added_tokens.json", {{"[E2]", 11}, {"[E1]", 10}, {"new", 12}});
  write("special_tokens_map.json", {{"mask_token", {{"content", "[MASK]"}, {"lstrip", true}, {"normalized", false}}},
                                    {"extra_special_tokens", {"[E1]", {{"content", "[E2]"}}, "[E3]"}},
                                    {"additional_special_tokens", {"new"}}});
  EXPECT_THAT(tokens_beside(HfTokenizerConfig(directory_.path())).tokens,
              ElementsAre(AddedToken{.id = 10, .text = "[E1]", .special = true},
                          AddedToken{.id = 11, .text = "[E2]", .special = true},
                          AddedToken{.id = 12, .text = "new", .normalized = true},
                          AddedToken{.id = kIdOfText, .text = "[MASK]", .special = true, .strips_left = true},
                          AddedToken{.id = kIdOfText, .text = "[E3]", .special = true}));
}

// The order is transformers': its seven names, then other keys in the order of the files, then the list.
TEST_F(HfFolderTest, NamedTokensComeInAnOrder) {
  const auto found = [this] {
    std::string all;
    for (const AddedToken& token : tokens_beside(HfTokenizerConfig(directory_.path())).tokens) all += token.text + " ";
    return all;
  };
  write_file(path("tokenizer_config.json"),
             R"({"extra_special_tokens": ["x"], "zoo_token": "z", "image_token": "i", "pad_token": "p",
                 "object_token": {"content": "none"}, "add_bos_token": true, "bos_token": "b", "typed_token":
                 {"__type": "AddedToken", "content": "t"}, "cls_token": null})");
  EXPECT_EQ(found(), "b p t z i x ");
  write_file(path("special_tokens_map.json"),
             R"({"pad_token": "P", "map_token": {"content": "m"}, "extra_special_tokens": ["y", "x"],
                 "additional_special_tokens": ["none"]})");
  EXPECT_EQ(found(), "b P t m z i x y ") << "the map's values replace the configuration's, lists are joined";
  fs::remove(path("tokenizer_config.json"));
  write("special_tokens_map.json", {{"additional_special_tokens", {"a"}}});
  EXPECT_EQ(found(), "a ");
  write("tokenizer_config.json", {{"additional_special_tokens", {"c"}}});
  EXPECT_EQ(found(), "c ") << "one list of additional tokens, the configuration's";
  write("tokenizer_config.json", {{"extra_special_tokens", {{"image_token", "i"}}}});
  EXPECT_EQ(found(), "i a ");
}

TEST_F(HfFolderTest, OptionsOfTheDecoderGoBeforeThoseOfTheFile) {
  const json spelled = {{"id", 2}, {"content", "[E1]"}, {"special", true}, {"normalized", false}};
  write("tokenizer.json",
        {{"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", {{"[UNK]", 0}, {"the", 1}, {"[E1]", 2}}}}},
         {"normalizer", {{"type", "BertNormalizer"}}},
         {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
         {"added_tokens", {spelled}}});
  EXPECT_THAT(load()->encode("[e1]"), testing::Not(ElementsAre(2)));
  json entry = {{"content", "[E1]"}, {"special", true}, {"normalized", true}};
  write("tokenizer_config.json", {{"added_tokens_decoder", {{"2", entry}}}});
  EXPECT_THAT(load()->encode("[e1]"), ElementsAre(2));
  fs::remove(path("tokenizer_config.json"));
  write("added_tokens.json", {{"[E1]", 2}});
  EXPECT_THAT(load()->encode("[e1]"), testing::Not(ElementsAre(2))) << "the old file's token is normalised";
}

// transformers' BERT would put "new" before every text, and could not cut a word that it does not know.
TEST_F(HfFolderTest, NamesOfTokensThatStandAroundTextsAreOurs) {
  write_vocabulary();
  write("tokenizer_config.json", {{"cls_token", "the"}, {"sep_token", "[SEP]"}});
  EXPECT_THAT(refusal(), HasSubstr("the cls_token is 'the', and headshare takes [CLS] for it; rename 'the' to [CLS]"));
  write("tokenizer_config.json", {{"unk_token", "the"}});
  EXPECT_THAT(refusal(), HasSubstr("the unk_token is 'the'"));
  fs::remove(path("vocab.txt"));
  write_pair();
  write("tokenizer_config.json", {{"sep_token", "th"}});
  EXPECT_THAT(refusal(), HasSubstr("the sep_token is 'th', and headshare takes </s> for it"));
}

TEST_F(HfFolderTest, TheClassDecidesWhetherAPairIsRobertas) {
  json vocabulary = {{"<s>", 0}, {"</s>", 1}, {"<|endoftext|>", 2}};
  for (int byte = 0; byte < 256; ++byte) vocabulary[to_alphabet(std::string(1, static_cast<char>(byte)))] = byte + 3;
  write("vocab.json", vocabulary);
  write_file(path("merges.txt"), "");
  EXPECT_EQ(load()->special(SpecialToken::kEndOfText), std::nullopt);
  write("config.json", {{"model_type", "gpt2"}});
  EXPECT_EQ(load()->special(SpecialToken::kEndOfText), 2);
  EXPECT_EQ(load()->special(SpecialToken::kClassify), std::nullopt);
  write("tokenizer_config.json", {{"tokenizer_class", "RobertaTokenizer"}});
  EXPECT_EQ(load()->special(SpecialToken::kClassify), 0);
}

// OPT has such files: </s> begins and ends its texts.
TEST_F(HfFolderTest, APairTakesTheTokensAroundTextsFromItsConfiguration) {
  write_pair();
  const json names = {{"tokenizer_class", "GPT2Tokenizer"}, {"bos_token", "</s>"}, {"eos_token", "</s>"}};
  json config = names;
  config["add_bos_token"] = true;
  write("tokenizer_config.json", config);
  EXPECT_EQ(load()->begins_texts(), 2);
  EXPECT_EQ(load()->special(SpecialToken::kEndOfText), 2);
  EXPECT_EQ(load()->special(SpecialToken::kClassify), std::nullopt);
  write("tokenizer_config.json", names);
  EXPECT_EQ(load()->begins_texts(), std::nullopt);
  EXPECT_EQ(load()->special(SpecialToken::kEndOfText), 2);
  config["tokenizer_class"] = "RobertaTokenizer";
  config["bos_token"] = "<s>";
  write("tokenizer_config.json", config);
  EXPECT_EQ(load()->begins_texts(), std::nullopt);
  EXPECT_EQ(load()->special(SpecialToken::kClassify), 0);
}

// Llama 2 and Gemma have such a file.
TEST_F(HfFolderTest, ATokenizerModelAloneIsSentencePieces) {
  bool given = false;
  write_file(path("tokenizer.model"), train_sentencepiece({.model = SentencePieceModel::kBpe, .vocabulary_size = 40},
                                                          [&given](std::string* chunk) {
                                                            *chunk = "the theme of then and there\n";
                                                            return !std::exchange(given, true);
                                                          }));
  EXPECT_EQ(tokenizer_in(directory_.path()), directory_.path());
  const auto tokenizer = load();
  EXPECT_EQ(tokenizer->kind(), "sentencepiece");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("the then")), "the then");
  std::vector<std::string> notices;
  const NoticeHandler before = set_notice_handler([&notices](const std::string& text) { notices.push_back(text); });
  write("tokenizer_config.json", {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"add_bos_token", true}});
  EXPECT_EQ(load()->special(SpecialToken::kBeginOfText), 2);
  set_notice_handler(before);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("puts the bos_token before every text")));
  write("added_tokens.json", {{"[INST]", 40}});
  EXPECT_THAT(refusal(), HasSubstr("add the token '[INST]', which is no piece of the model; make a tokenizer.json"));
}

TEST_F(HfFolderTest, AVocabularyOfBertGetsThem) {
  write_vocabulary();
  EXPECT_THAT(load()->encode("the [E1] new"), ElementsAre(5, 8, 6, 7, 9, 1));
  write("added_tokens.json", {{"[E1]", 10}, {"NEW", 11}});
  write("special_tokens_map.json", {{"extra_special_tokens", {"[E1]", "[E2]"}}, {"bos_token", "<s>"}});
  const auto tokenizer = load();
  EXPECT_EQ(tokenizer->vocabulary_size(), 14) << "tokens that are named have the next ids, <s> before [E2]";
  EXPECT_THAT(tokenizer->encode("the [E1] new <s> [E2]"), ElementsAre(5, 10, 11, 12, 13));
  EXPECT_EQ(tokenizer->special(SpecialToken::kMask), 4);
  EXPECT_THAT(tokenizer->encode_with_special("the  [MASK]"), ElementsAre(5, 4));
}

TEST_F(HfFolderTest, AFileOfHuggingFaceGetsWhatItLacks) {
  write_vocabulary();
  json whole = {
      {"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", {{"[UNK]", 0}, {"the", 1}, {"[E1]", 2}}}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"added_tokens", {{{"id", 2}, {"content", "[E1]"}, {"special", true}}}}};
  write("tokenizer.json", whole);
  write("added_tokens.json", {{"[E2]", 3}, {"[E1]", 2}});
  EXPECT_THAT(load()->encode("the[E1][E2]"), ElementsAre(1, 2, 3));
  write("added_tokens.json", {{"[E1]", 3}});
  EXPECT_THAT(refusal(), HasSubstr("the token '[E1]' has the id 2, and the files beside it"));
  EXPECT_THAT(tokenizer_from_json(whole, "x")->encode("[E1][E2]"), ElementsAre(2, 0, 0, 0));
}

// RoBERTa and BART were first published in this way.
TEST_F(HfFolderTest, APairWithBordersHasTheRolesOfRoberta) {
  write_pair();
  const auto tokenizer = load();
  EXPECT_EQ(tokenizer->special(SpecialToken::kClassify), 0);
  EXPECT_EQ(tokenizer->special(SpecialToken::kSeparate), 2);
  EXPECT_EQ(tokenizer->special(SpecialToken::kPadding), 1);
  EXPECT_EQ(tokenizer->special(SpecialToken::kMask), 261);
  EXPECT_EQ(tokenizer->pair_separators(), 2);
  EXPECT_EQ(tokenizer->encode("<s>").size(), 3U);
  EXPECT_THAT(tokenizer->encode_with_special("<s>th<mask>"), ElementsAre(0, 260, 261));
  EXPECT_EQ(tokenizer->special(SpecialToken::kEndOfText), std::nullopt);
}

TEST_F(HfFolderTest, APairTakesItsConfiguration) {
  write_pair();
  write("tokenizer_config.json", {{"add_prefix_space", true}});
  EXPECT_EQ(load()->decode(load()->encode("th")), " th");
  write("added_tokens.json", {{"[E1]", 262}, {"th", 260}});
  const auto tokenizer = load();
  EXPECT_THAT(tokenizer->encode("[E1]th"), ElementsAre(262, 260));
  EXPECT_FALSE(tokenizer->lossless());
  write("added_tokens.json", {{"[E1]", 264}});
  EXPECT_THAT(refusal(), HasSubstr("'[E1]' has the id 264, and the ids from 262 on have no tokens"));
}

// Names of RoBERTa in another vocabulary are no special tokens, as in transformers.
TEST_F(HfFolderTest, APairWithoutBordersHasNone) {
  json vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary[to_alphabet(std::string(1, static_cast<char>(byte)))] = byte;
  vocabulary["<pad>"] = 256;
  write("vocab.json", vocabulary);
  write_file(path("merges.txt"), "");
  EXPECT_EQ(load()->special(SpecialToken::kPadding), std::nullopt);
  EXPECT_EQ(load()->encode_with_special("<pad>").size(), 5U);
}

TEST_F(HfFolderTest, DamagedFilesAreRefusedByName) {
  write_vocabulary();
  const auto refused = [&](const char* name, const json& object) {
    write(name, object);
    std::string message = refusal();
    fs::remove(path(name));
    return message;
  };
  EXPECT_THAT(refused("added_tokens.json", json::array()), HasSubstr("added_tokens.json: must be a JSON object"));
  EXPECT_THAT(refused("added_tokens.json", {{"[E1]", "ten"}}), HasSubstr("added_tokens.json: the id of '[E1]'"));
  EXPECT_THAT(refused("special_tokens_map.json", {{"mask_token", 4}}),
              HasSubstr("special_tokens_map.json: mask_token"));
  EXPECT_THAT(refused("tokenizer_config.json", {{"added_tokens_decoder", {{"x1", {{"content", "a"}}}}}}),
              HasSubstr("added_tokens_decoder: 'x1' is no id"));
  EXPECT_THAT(refused("tokenizer_config.json", {{"added_tokens_decoder", {1}}}), HasSubstr("an object {id: token}"));
  EXPECT_THAT(refused("tokenizer_config.json", {{"split_special_tokens", true}}), HasSubstr("split_special_tokens"));
  EXPECT_THAT(refused("added_tokens.json", {{"[E1]", 10}, {"[E2]", 10}}), HasSubstr("two added tokens have the id 10"));
}

}  // namespace
}  // namespace headshare
