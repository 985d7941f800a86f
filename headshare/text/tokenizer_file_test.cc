// Tests reading and writing tokenizers: what malformed files are told, and that no file can crash the reader.
#include "headshare/text/tokenizer_file.h"

#include <gmock/gmock.h>

#include <set>

#include "headshare/base/json/json_input.h"
#include "headshare/base/notice.h"
#include "headshare/base/testing.h"
#include "headshare/text/bpe/bpe_file.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/hf/hf_tokenizer.h"
#include "headshare/text/simple/byte_tokenizer.h"
#include "headshare/text/test_support.h"
#include "headshare/text/wordpiece/wordpiece_file.h"

namespace headshare {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kCorpus = "the theme of then and there, don't you think?\nthe then the\n";

// Returns one small tokenizer of each kind.
std::vector<std::unique_ptr<Tokenizer>> samples() {
  std::vector<std::unique_ptr<Tokenizer>> all;
  all.push_back(train_on({.kind = TokenizerKind::kBytes}, {}));
  all.push_back(train_on({.kind = TokenizerKind::kCharacters, .unknown_token = true}, {kCorpus}));
  all.push_back(train_on({.kind = TokenizerKind::kWords}, {kCorpus}));
  all.push_back(train_on({.kind = TokenizerKind::kBpe, .vocabulary_size = 270, .min_count = 1}, {kCorpus}));
  all.push_back(train_on({.kind = TokenizerKind::kWordPiece, .vocabulary_size = 60, .min_count = 1}, {kCorpus}));
  return all;
}

json sample_bpe() { return samples()[3]->to_json(); }

json sample_hf() { return hf_json_from_bpe(dynamic_cast<const BpeTokenizer&>(*samples()[3]).definition()); }

std::string refusal(const json& object) {
  return error_message([&] { tokenizer_from_json(object, "t.json"); });
}

TEST(TokenizerFileTest, EveryKindReadsWhatItWrites) {
  const TemporaryDirectory directory;
  std::set<std::string> fingerprints;
  for (const auto& tokenizer : samples()) {
    const fs::path path = directory.path() / "tokenizer.json";
    save_tokenizer(*tokenizer, path);
    const auto again = load_tokenizer(path);
    EXPECT_EQ(again->kind(), tokenizer->kind());
    EXPECT_EQ(again->vocabulary_size(), tokenizer->vocabulary_size());
    EXPECT_EQ(again->encode(kCorpus), tokenizer->encode(kCorpus));
    EXPECT_EQ(again->special(SpecialToken::kEndOfText), tokenizer->special(SpecialToken::kEndOfText));
    EXPECT_EQ(fingerprint(*again), fingerprint(*tokenizer));
    fingerprints.insert(fingerprint(*tokenizer));
  }
  EXPECT_EQ(fingerprints.size(), 5U);
}

TEST(TokenizerFileTest, FilesThatAreNoTokenizerSayWhatIsMissing) {
  const TemporaryDirectory directory;
  EXPECT_THAT(error_message([&] { load_tokenizer(directory.path() / "none.json"); }), HasSubstr("none.json"));
  EXPECT_THAT(error_message([&] { load_tokenizer(directory.path()); }),
              HasSubstr("neither vocab.json nor encoder.json"));
  write_file(directory.path() / "vocab.json", "{}");
  EXPECT_THAT(error_message([&] { load_tokenizer(directory.path()); }), HasSubstr("no merges.txt or vocab.bpe"));
  EXPECT_THAT(error_message([&] { load_tokenizer(directory.path() / "vocab.json"); }), HasSubstr("give their folder"));
  write_file(directory.path() / "cut.json", sample_bpe().dump().substr(0, 100));
  EXPECT_THAT(error_message([&] { load_tokenizer(directory.path() / "cut.json"); }),
              AllOf(HasSubstr("cut.json"), HasSubstr("100 bytes")));
}

TEST(TokenizerFileTest, HeadersAreChecked) {
  json object = ByteTokenizer().to_json();
  object["version"] = 3;
  EXPECT_THAT(refusal(object), AllOf(HasSubstr("version 3"), HasSubstr("reads versions 1 to 2")));
  object["version"] = 1;
  object["kind"] = "byte";
  EXPECT_THAT(refusal(object), HasSubstr("did you mean 'bytes'?"));
  object["kind"] = "bytes";
  object["extra"] = 1;
  EXPECT_THAT(refusal(object), HasSubstr("unknown key 'extra'"));
  object = {{"format", "other"}};
  EXPECT_THAT(refusal(object), HasSubstr("'other'"));
}

TEST(TokenizerFileTest, DamagedVocabulariesAreRefused) {
  json object = samples()[1]->to_json();
  object["characters"].push_back("a");
  EXPECT_THAT(refusal(object), HasSubstr("must ascend"));
  object["characters"] = {"a", "bc"};
  EXPECT_THAT(refusal(object), HasSubstr("character 1 must be one character, not \"bc\""));
  object = samples()[2]->to_json();
  object["words"].push_back("the");
  EXPECT_THAT(refusal(object), HasSubstr("\"the\" has two ids, 2 and "));
  object["words"].back() = "two words";
  EXPECT_THAT(refusal(object), HasSubstr("white space"));
  object["words"] = {"the"};
  EXPECT_THAT(refusal(object), HasSubstr("begins with <unk> and <eos>"));
}

TEST(TokenizerFileTest, DamagedBpeIsRefused) {
  json object = sample_bpe();
  object["merges"].push_back("zz z");
  EXPECT_THAT(refusal(object), HasSubstr("names \"zz\", which is not among the"));
  object["merges"].back() = object["merges"][0];
  EXPECT_THAT(refusal(object), HasSubstr("same two tokens"));
  object["merges"].back() = "a b c";
  EXPECT_THAT(refusal(object), HasSubstr("one space between, not \"a b c\""));
  object = sample_bpe();
  object["tokens"].push_back("a");
  EXPECT_THAT(refusal(object), HasSubstr("\"a\" has two ids"));
  object["tokens"].back() = "€";
  EXPECT_THAT(refusal(object), HasSubstr("outside the byte-level alphabet"));
  object = sample_bpe();
  object["special"] = {0, 270};
  EXPECT_THAT(refusal(object), HasSubstr("id 270 is not among the 270 tokens"));
  object["special"] = {0, 5};  // takes a byte away
  EXPECT_THAT(refusal(object), HasSubstr("no token for the byte"));
}

TEST(HfTokenizerTest, TheSameTokenizerComesBack) {
  const auto original = samples();
  const auto again = tokenizer_from_json(sample_hf(), "hf");
  EXPECT_EQ(again->to_json(), original[3]->to_json());
  json old_style = sample_hf();  // merges as "a b", absent instead of null
  for (json& merge : old_style["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  for (const char* key : {"truncation", "padding", "normalizer", "post_processor", "decoder"}) old_style.erase(key);
  EXPECT_EQ(tokenizer_from_json(old_style, "hf")->to_json(), original[3]->to_json());
}

TEST(HfTokenizerTest, PrefixSpaceAndNoPatternAreHonoured) {
  json object = sample_hf();
  object["pre_tokenizer"]["add_prefix_space"] = true;
  object["pre_tokenizer"]["use_regex"] = false;
  const auto tokenizer = tokenizer_from_json(object, "hf");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("the")), " the");
  EXPECT_EQ(dynamic_cast<const BpeTokenizer&>(*tokenizer).definition().split, SplitRule::kNone);
  EXPECT_EQ(tokenizer_from_json(tokenizer->to_json(), "own")->to_json(), tokenizer->to_json());
}

json sequence(const char* name, int segment) { return {{"Sequence", {{"id", name}, {"type_id", segment}}}}; }

json template_of(const json& single) {
  json pair = single;
  pair.push_back(sequence("B", 1));
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", json::object()}};
}

// The file is as transformers 5 writes GPT-2's.
TEST(HfTokenizerTest, ATemplateThatAddsNothingIsRead) {
  for (const size_t kind : {3, 4}) {
    json object = hf_json(*samples()[kind]);
    object["post_processor"] = template_of(json::array({sequence("A", 0)}));
    EXPECT_EQ(tokenizer_from_json(object, "hf")->to_json(), samples()[kind]->to_json());
  }
}

// Every model of sentence-transformers has such a file.
TEST(HfTokenizerTest, TruncationAndPaddingAreNotReadAndANoticeSaysSo) {
  std::vector<std::string> said;
  const auto original = samples();
  const NoticeHandler before = set_notice_handler([&](const std::string& sentence) { said.push_back(sentence); });
  for (const size_t kind : {3, 4}) {
    json object = hf_json(*original[kind]);
    EXPECT_EQ(tokenizer_from_json(object, "t.json")->to_json(), original[kind]->to_json());
    EXPECT_EQ(said.size(), 0U);
    object["truncation"] = {{"max_length", 128}, {"strategy", "LongestFirst"}};
    object["padding"] = {{"strategy", {{"Fixed", 128}}}, {"pad_id", 0}};
    EXPECT_EQ(tokenizer_from_json(object, "t.json")->to_json(), original[kind]->to_json());
    EXPECT_THAT(said, testing::ElementsAre(HasSubstr("t.json: its truncation and padding are not read")));
    said.clear();
  }
  set_notice_handler(before);
}

TEST(HfTokenizerTest, UnknownPartsAreRefusedByName) {
  const auto refused = [](const char* pointer, const json& value) {
    json object = sample_hf();
    object[json::json_pointer(pointer)] = value;
    return refusal(object);
  };
  EXPECT_THAT(refused("/normalizer", {{"type", "NFKC"}}), AllOf(HasSubstr("t.json: normalizer"), HasSubstr("NFKC")));
  EXPECT_THAT(refused("/pre_tokenizer", {{"type", "Whitespace"}}), HasSubstr("pre_tokenizer: type \"Whitespace\""));
  EXPECT_THAT(refused("/post_processor", {{"type", "BertProcessing"}}), HasSubstr("\"BertProcessing\""));
  EXPECT_THAT(refused("/post_processor", template_of(json::array({sequence("A", 0), sequence("A", 0)}))),
              AllOf(HasSubstr("a template other than <s> A </s> </s> B </s>, [CLS]"), HasSubstr("A:0 A:0 and A:0")));
  EXPECT_THAT(refused("/decoder", {{"type", "WordPiece"}}), HasSubstr("\"WordPiece\""));
  EXPECT_THAT(refused("/model/type", "WordLevel"), HasSubstr("\"WordLevel\""));
  EXPECT_THAT(refused("/model/dropout", 0.1), HasSubstr("dropout 0.1"));
  EXPECT_THAT(refused("/model/end_of_word_suffix", "</w>"), HasSubstr("end_of_word_suffix"));
}

TEST(HfTokenizerTest, IdsMustBeWhole) {
  json object = sample_hf();
  object["model"]["vocab"]["a"] = 3;
  EXPECT_THAT(refusal(object), HasSubstr("the id 3 stands for both"));
  object = sample_hf();
  object["model"]["vocab"]["a"] = 5000;
  EXPECT_THAT(refusal(object), AllOf(HasSubstr("no token has the id"), HasSubstr("from 0 to 269")));
  for (const json& id : {json(-1), json(1.5), json(3000000000), json("1"), json(nullptr)}) {
    object["model"]["vocab"]["a"] = id;
    EXPECT_THAT(refusal(object), HasSubstr("must be a whole number")) << id;
  }
  object = sample_hf();
  object["added_tokens"].push_back(object["added_tokens"][0]);
  object["added_tokens"][1]["content"] = "<|other|>";
  EXPECT_THAT(refusal(object), HasSubstr("two added tokens have the id 0"));
}

TEST(TokenizerFileTest, Gpt2PairsNeedNoVersionLine) {
  const TemporaryDirectory directory;
  const json hf = sample_hf();
  std::string merges;
  for (const json& merge : hf["model"]["merges"]) {
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  }
  write_file(directory.path() / "vocab.json", hf["model"]["vocab"].dump());
  for (const std::string& text : {merges, "#version: 0.2\r\n" + merges}) {
    write_file(directory.path() / "merges.txt", text);
    EXPECT_EQ(load_tokenizer(directory.path())->to_json(), sample_bpe());
  }
  write_file(directory.path() / "merges.txt", merges + "a  b\n");
  EXPECT_THAT(error_message([&] { load_tokenizer(directory.path()); }), HasSubstr("merges.txt:14: a merge must be"));
}

// Whatever the file holds, the result is an Error, or a tokenizer that works.
TEST(TokenizerFileTest, MutatedFilesLoadOrAreRefused) {
  std::vector<std::string> originals = {sample_hf().dump()};
  originals.push_back(hf_json(*samples().back()).dump());
  for (const auto& tokenizer : samples()) originals.push_back(tokenizer->to_json().dump());
  Philox random(stream_key(5, "fuzz"));
  int loaded = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    const std::string text = mutate(originals[static_cast<size_t>(round) % originals.size()], &random);
    std::unique_ptr<Tokenizer> tokenizer;
    try {
      tokenizer = tokenizer_from_json(parse_json_input(text, "fuzz"), "fuzz");
    } catch (const Error&) {
      continue;
    }
    ++loaded;
    const std::string sample = random_text(&random);
    if (tokenizer->lossless()) {
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(sample)), sample) << text;
    }
    EXPECT_EQ(tokenizer_from_json(tokenizer->to_json(), "again")->to_json(), tokenizer->to_json()) << text;
  }
  // Both ways are taken.
  EXPECT_GT(loaded, kRounds / 50);
  EXPECT_LT(loaded, kRounds);
}

// The same holds for a vocab.txt.
TEST(TokenizerFileTest, MutatedVocabulariesLoadOrAreRefused) {
  std::string vocabulary;
  const json object = samples().back()->to_json();
  for (const json& token : object["tokens"]) vocabulary += token.get<std::string>() + "\n";
  Philox random(stream_key(7, "fuzz"));
  int loaded = 0;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    try {
      const WordPieceTokenizer tokenizer(
          wordpiece_from_vocabulary(mutate(vocabulary, &random), std::nullopt, "vocab.txt"));
      EXPECT_EQ(tokenizer.encode(kCorpus), tokenizer.encode_with_spans(kCorpus).ids);
      ++loaded;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, kRounds);
}

// The same holds for GPT-2's pair of files.
TEST(TokenizerFileTest, MutatedMergesLoadOrAreRefused) {
  const json vocabulary = sample_hf()["model"]["vocab"];
  std::string merges = "#version: 0.2\n";
  const json object = sample_bpe();
  for (const json& merge : object["merges"]) merges += merge.get<std::string>() + "\n";
  Philox random(stream_key(6, "fuzz"));
  int loaded = 0;
  constexpr int kRounds = 1000;
  for (int round = 0; round < kRounds; ++round) {
    try {
      const BpeTokenizer tokenizer(
          bpe_from_gpt2_files({vocabulary, mutate(merges, &random), "vocab.json", "merges.txt"}));
      EXPECT_EQ(tokenizer.vocabulary_size(), 270);
      ++loaded;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, kRounds);
}

}  // namespace
}  // namespace headshare
