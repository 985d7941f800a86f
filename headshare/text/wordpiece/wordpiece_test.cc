// Tests tokenizer "wordpiece": words, spelling, spans, files, training. That ids, spans and trained vocabularies equal
// those of Hugging Face tokenizers is tested in tests/oracles/test_wordpiece.py.
#include <gmock/gmock.h>

#include <chrono>

#include "headshare/base/json/json_input.h"
#include "headshare/base/testing.h"
#include "headshare/text/hf/hf_tokenizer.h"
#include "headshare/text/test_support.h"
#include "headshare/text/tokenizer_file.h"
#include "headshare/text/wordpiece/wordpiece_file.h"

namespace headshare {
namespace wordpiece_test {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##want\n##ed\nrun\n##ning\n,\n.\nthe\ncafe\n日\n#\n'\n##s\n";

WordPieceDefinition sample_definition(bool cased = false) {
  return wordpiece_from_vocabulary(kVocabulary, bert_normalization(cased), "vocab.txt");
}

std::vector<std::string> words(const std::string& text, const BertNormalization& normalization = {}) {
  std::vector<std::string> result;
  for_each_bert_word(text, normalization, SIZE_MAX, [&](const BertWord& word) { result.push_back(word.text); });
  return result;
}

TEST(BertWordsTest, CleansCutsAndLowers) {
  EXPECT_THAT(words(" Hello\tWORLD,don't!\n"), ElementsAre("hello", "world", ",", "don", "'", "t", "!"));
  EXPECT_THAT(words("caf\u00E9 cafe\u0301 \u0130x"), ElementsAre("cafe", "cafe", "ix"));
  EXPECT_THAT(words("a\u00ADb\x01\u200B"
                    "c\uFFFD"),
              ElementsAre("abc"));
  EXPECT_THAT(words("日本ab\u3042"), ElementsAre("日", "本", "ab\u3042"));
  EXPECT_THAT(words("$1~2\u2014three"), ElementsAre("$", "1", "~", "2", "\u2014", "three"));
  EXPECT_THAT(words("\u226E"), ElementsAre("<"));  // decomposes to a sign and an accent
  EXPECT_THAT(words(" \t\u00A0\u2028"), ElementsAre());
}

TEST(BertWordsTest, EveryStepCanBeLeftOut) {
  EXPECT_THAT(words("\u00C9T\u00C9", {.strip_accents = false}), ElementsAre("\u00E9t\u00E9"));
  EXPECT_THAT(words("\u00C9T\u00C9", {.lowercase = false}), ElementsAre("ETE"));
  EXPECT_THAT(words("a\u0001b", {.clean_text = false}), ElementsAre("a\u0001b"));
  EXPECT_THAT(words("日本", {.space_chinese = false}), ElementsAre("日本"));
  EXPECT_THAT(words("\u0130", {.strip_accents = false}), ElementsAre("i\u0307"));
}

TEST(BertWordsTest, AWordKeepsWhatItIsAskedToAndCountsTheRest) {
  size_t calls = 0;
  for_each_bert_word("abcdef", {}, 4, [&](const BertWord& word) {
    EXPECT_EQ(word.text, "abcd");
    EXPECT_EQ(word.characters, 6U);
    EXPECT_EQ(word.span, (TextSpan{0, 6}));
    ++calls;
  });
  EXPECT_EQ(calls, 1U);
}

TEST(WordPieceTest, TheLongestTokenFirst) {
  const WordPieceTokenizer tokenizer(sample_definition());
  EXPECT_THAT(tokenizer.encode("Unwanted, running. UNKNOWN"), ElementsAre(5, 6, 7, 10, 8, 9, 11, 1));
  EXPECT_THAT(tokenizer.encode("unwantedly"), ElementsAre(1));  // what cannot be spelt is unknown as a whole
  EXPECT_THAT(tokenizer.encode("日日\u672C"), ElementsAre(14, 14, 1));
  EXPECT_THAT(tokenizer.encode("##s's"), ElementsAre(15, 15, 1, 16, 1));  // "s" begins a word here
  EXPECT_THAT(tokenizer.encode(""), ElementsAre());
  EXPECT_THAT(WordPieceTokenizer(sample_definition(true)).encode("run Run caf\u00E9"), ElementsAre(8, 1, 1));
}

TEST(WordPieceTest, SpecialTokensAreNeverProducedFromText) {
  const WordPieceTokenizer tokenizer(sample_definition(true));
  EXPECT_THAT(tokenizer.encode("[MASK]"), ElementsAre(1, 1, 1));
  EXPECT_THAT(tokenizer.encode_with_special("the[MASK]un[CLS] [mask]"), ElementsAre(12, 4, 5, 2, 1, 1, 1));
  EXPECT_EQ(tokenizer.special(SpecialToken::kPadding), 0);
  EXPECT_EQ(tokenizer.special(SpecialToken::kUnknown), 1);
  EXPECT_EQ(tokenizer.special(SpecialToken::kClassify), 2);
  EXPECT_EQ(tokenizer.special(SpecialToken::kSeparate), 3);
  EXPECT_EQ(tokenizer.special(SpecialToken::kMask), 4);
  EXPECT_EQ(tokenizer.special(SpecialToken::kEndOfText), std::nullopt);
  WordPieceDefinition bare = {.tokens = {"the", "PAD"}, .special = {1}, .unknown = 1, .normalization = {}};
  EXPECT_THAT(WordPieceTokenizer(bare).encode("PAD the"), ElementsAre(1, 0));
  EXPECT_EQ(WordPieceTokenizer(bare).special(SpecialToken::kMask), std::nullopt);
}

TEST(WordPieceTest, TheVocabularyIsThatOfTheFile) {
  const Vocabulary vocabulary = *WordPieceTokenizer(sample_definition()).vocabulary();
  EXPECT_EQ(vocabulary.tokens[6].spelling, "##want");
  EXPECT_EQ(vocabulary.tokens[6].kind, TokenKind::kOrdinary);
  EXPECT_EQ(vocabulary.tokens[1].kind, TokenKind::kUnknown);
  EXPECT_EQ(vocabulary.tokens[4].kind, TokenKind::kSpecial);
  EXPECT_TRUE(vocabulary.merges.empty() && vocabulary.scores.empty());
}

TEST(WordPieceTest, SpansAreInTheOriginalText) {
  const WordPieceTokenizer tokenizer(sample_definition());
  EXPECT_THAT(spelled(tokenizer, " UN\u00ADwant\u00C9D,\u00A0Caf\u00E9 \u65E5zebra"),
              ElementsAre("UN", "want", "\u00C9D", ",", "Caf\u00E9", "\u65E5", "zebra"));
  // An accent that is a character of its own is inside a span when it is between two letters.
  EXPECT_THAT(spelled(tokenizer, "ca\u0301fe\u0301."), ElementsAre("ca\u0301fe", "."));
}

TEST(WordPieceTest, EncodeIsTheSameWithSpansAndWithAWarmCache) {
  Philox random(stream_key(3, "wordpiece"));
  for (const bool cased : {false, true}) {
    const WordPieceTokenizer tokenizer(sample_definition(cased));
    for (int round = 0; round < 2000; ++round) {
      std::string text = random_text(&random) + " unwanted" + random_text(&random);
      if (valid_utf8_prefix(text) < text.size()) {
        EXPECT_THAT(error_message([&] { tokenizer.encode(text); }), HasSubstr("not valid UTF-8 at byte"));
        EXPECT_THAT(error_message([&] { tokenizer.encode_with_spans(text); }), HasSubstr("not valid UTF-8 at byte"));
        text.resize(valid_utf8_prefix(text));
      }
      const TokensWithSpans with_spans = tokenizer.encode_with_spans(text);
      ASSERT_EQ(tokenizer.encode(text), with_spans.ids) << text;
      ASSERT_EQ(with_spans.spans.size(), with_spans.ids.size());
      TextSpan before;
      for (const TextSpan& span : with_spans.spans) {
        ASSERT_TRUE(before.begin <= span.begin && before.end <= span.end) << text;
        ASSERT_TRUE(span.begin < span.end && span.end <= text.size()) << text;
        before = span;
      }
    }
  }
}

TEST(WordPieceTest, WordsAndDecodedText) {
  const WordPieceTokenizer tokenizer(sample_definition());
  EXPECT_TRUE(tokenizer.continues_word(6));
  for (const int32_t id : {1, 4, 5, 10, 15}) EXPECT_FALSE(tokenizer.continues_word(id));
  EXPECT_THROW(tokenizer.continues_word(18), Error);
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{2, 12, 5, 6, 7, 10, 8, 11, 3}), "[CLS] the unwanted, run. [SEP]");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{6}), "##want");
  EXPECT_THROW(tokenizer.decode(std::vector<int32_t>{18}), Error);
  EXPECT_FALSE(tokenizer.lossless());
}

TEST(WordPieceTest, LongWordsAreUnknownAndTakeLinearTime) {
  const auto tokenizer = train_on({.kind = TokenizerKind::kWordPiece, .vocabulary_size = 30, .min_count = 1}, {"aaaa"});
  EXPECT_GT(tokenizer->encode(std::string(100, 'a')).size(), 1U);
  EXPECT_THAT(tokenizer->encode(std::string(101, 'a')), ElementsAre(1));
  const auto seconds = [&](const std::string& text) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(tokenizer->encode(text).size(), tokenizer->encode_with_spans(text).ids.size());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  constexpr size_t kBytes = 10 << 20;
  std::string accents;
  while (accents.size() < kBytes) accents += "\u0301\u0323";
  // A second would be 10 MB/s; quadratic time would be days.
  for (const std::string& text :
       {std::string(kBytes, 'a'), std::string(kBytes, '.'), std::string(kBytes, '\x01'), accents}) {
    EXPECT_LT(seconds(text), 60);
  }
}

// ------------------------------------------------------------------------------------------------- files

std::string vocabulary_refusal(const std::string& text) {
  return error_message([&] { wordpiece_from_vocabulary(text, std::nullopt, "v/vocab.txt"); });
}

TEST(WordPieceFileTest, VocabularyMistakesNameTheLine) {
  EXPECT_THAT(vocabulary_refusal("[UNK]\nthe\n\ncat\n"), HasSubstr("v/vocab.txt:3: an empty line"));
  EXPECT_THAT(vocabulary_refusal("[UNK]\nthe\n\n"), HasSubstr("v/vocab.txt:3: an empty line"));
  EXPECT_THAT(vocabulary_refusal("[UNK]\nthe\ncat\nthe\n"),
              HasSubstr("v/vocab.txt:4: the token \"the\" stands in line 2 too"));
  EXPECT_THAT(vocabulary_refusal("the\ncat\n"), HasSubstr("v/vocab.txt: none of the 2 lines is [UNK]"));
  EXPECT_THAT(vocabulary_refusal(""), HasSubstr("v/vocab.txt: none of the 0 lines is [UNK]"));
  EXPECT_THAT(vocabulary_refusal("[UNK]\nth\xFF\n"), HasSubstr("v/vocab.txt:2: not valid UTF-8 at byte 2"));
  const WordPieceTokenizer no_mask(wordpiece_from_vocabulary("[UNK]\nthe", std::nullopt, "v"));
  EXPECT_THAT(error_message([&] { require_special(no_mask, SpecialToken::kMask, "v/vocab.txt"); }),
              AllOf(HasSubstr("v/vocab.txt"), HasSubstr("no token for 'mask'")));
}

TEST(WordPieceFileTest, WindowsLineEndsAreLineEnds) {
  std::string windows;
  for (const char c : std::string(kVocabulary)) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(wordpiece_from_vocabulary(windows, std::nullopt, "v").tokens, sample_definition().tokens);
}

TEST(WordPieceFileTest, CaseIsThatOfTheVocabularyUnlessTheConfigSaysOtherwise) {
  const auto normalization = [](const std::string& text) {
    return wordpiece_from_vocabulary(text, std::nullopt, "v").normalization;
  };
  EXPECT_EQ(normalization("[UNK]\n[unused0]\nthe\n"), bert_normalization(false));
  EXPECT_EQ(normalization("[UNK]\nthe\nThe\n"), bert_normalization(true));

  const TemporaryDirectory directory;
  const auto loaded = [&] {
    const auto tokenizer = load_tokenizer(directory.path());
    return dynamic_cast<const WordPieceTokenizer&>(*tokenizer).definition().normalization;
  };
  write_file(directory.path() / "vocab.txt", kVocabulary);
  EXPECT_EQ(loaded(), bert_normalization(false));
  write_file(directory.path() / "tokenizer_config.json", R"({"do_lower_case": false, "strip_accents": null})");
  EXPECT_EQ(loaded(), bert_normalization(true));
  write_file(directory.path() / "tokenizer_config.json",
             R"({"do_lower_case": true, "strip_accents": false, "tokenize_chinese_chars": false, "other": 1})");
  EXPECT_EQ(loaded(), (BertNormalization{.space_chinese = false, .strip_accents = false}));
  write_file(directory.path() / "tokenizer_config.json", R"({"do_lower_case": 1})");
  EXPECT_THAT(error_message(loaded), HasSubstr("tokenizer_config.json: do_lower_case must be true or false"));
  write_file(directory.path() / "tokenizer_config.json", "{}");
  EXPECT_EQ(load_tokenizer(directory.path() / "vocab.txt")->to_json(), load_tokenizer(directory.path())->to_json());
  // A config lower-cases unless it says otherwise, whatever the vocabulary looks like.
  write_file(directory.path() / "vocab.txt", "[UNK]\nthe\nThe\n");
  EXPECT_EQ(loaded(), bert_normalization(false));
}

TEST(WordPieceFileTest, AConfigIsReadKeyByKey) {
  const auto read = [](const char* text) { return normalization_from_hf_config(json::parse(text), "c"); };
  EXPECT_EQ(read("{}"), bert_normalization(false));
  EXPECT_EQ(read(R"({"strip_accents": false})"), (BertNormalization{.strip_accents = false}));
  EXPECT_EQ(read(R"({"tokenize_chinese_chars": false})"), (BertNormalization{.space_chinese = false}));
  EXPECT_EQ(read(R"({"do_lower_case": false, "strip_accents": true})"), (BertNormalization{.lowercase = false}));
  for (const char* key : {"do_lower_case", "tokenize_chinese_chars"}) {
    EXPECT_THAT(error_message([&] {
                  normalization_from_hf_config({{key, nullptr}}, "c");
                }),
                HasSubstr(join_text("c: ", key, " must be true or false")));
  }
}

TEST(WordPieceFileTest, TokenizersOfAnotherClassAreRefusedByName) {
  const auto refused = [](const json& name) {
    return error_message([&] { normalization_from_hf_config({{"tokenizer_class", name}}, "c"); });
  };
  for (const char* name : {"BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "PreTrainedTokenizerFast"}) {
    EXPECT_EQ(refused(name), "no error") << name;
  }
  EXPECT_EQ(refused(nullptr), "no error");
  EXPECT_THAT(refused("BertJapaneseTokenizer"),
              AllOf(HasSubstr("c: tokenizer_class is \"BertJapaneseTokenizer\""), HasSubstr("remove tokenizer_class")));
  EXPECT_THAT(refused(1), HasSubstr("c: tokenizer_class"));
  const TemporaryDirectory directory;
  write_file(directory.path() / "vocab.txt", kVocabulary);
  write_file(directory.path() / "config.json", R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  EXPECT_THAT(error_message([&] { load_tokenizer(directory.path()); }), HasSubstr("config.json: tokenizer_class is"));
  write_file(directory.path() / "tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer"})");  // this one counts
  EXPECT_EQ(load_tokenizer(directory.path())->kind(), "wordpiece");
}

std::string refusal(const json& object) {
  return error_message([&] { tokenizer_from_json(object, "t.json"); });
}

TEST(WordPieceFileTest, DamagedDefinitionsAreRefused) {
  const auto refused = [](const char* pointer, const json& value) {
    json object = WordPieceTokenizer(sample_definition()).to_json();
    object[json::json_pointer(pointer)] = value;
    return refusal(object);
  };
  EXPECT_THAT(refused("/tokens/6", "un"), HasSubstr("t.json: the token \"un\" has two ids, 5 and 6"));
  EXPECT_THAT(refused("/tokens/6", ""), HasSubstr("the token with id 6 is empty"));
  EXPECT_THAT(refused("/unknown", 5), HasSubstr("the id of unknown words, 5, is not among the 5 special ids"));
  EXPECT_THAT(refused("/special", {1, 1}), HasSubstr("must ascend"));
  EXPECT_THAT(refused("/special", {1, 18}), HasSubstr("special id 18 is not among the 18 tokens"));
  EXPECT_THAT(refused("/longest-word", 0), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(refused("/lowercase", "yes"), HasSubstr("'lowercase' must be true or false"));
  EXPECT_THAT(refused("/prefix", "@@"), HasSubstr("unknown key 'prefix'"));
}

TEST(HfWordPieceTest, TheSameTokenizerComesBack) {
  WordPieceDefinition definition = sample_definition();
  definition.longest_word = 50;
  definition.normalization.strip_accents = false;
  const WordPieceTokenizer tokenizer(definition);
  json object = hf_json(tokenizer);
  EXPECT_EQ(tokenizer_from_json(object, "hf")->to_json(), tokenizer.to_json());
  object["normalizer"]["strip_accents"] = nullptr;  // as lowercase
  const auto again = tokenizer_from_json(object, "hf");
  EXPECT_TRUE(dynamic_cast<const WordPieceTokenizer&>(*again).definition().normalization.strip_accents);
  object["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"[SEP]", 3}}, {"cls", {"[CLS]", 2}}};
  EXPECT_EQ(tokenizer_from_json(object, "hf")->to_json(), again->to_json());
}

TEST(HfWordPieceTest, UnknownPartsAreRefusedByName) {
  const auto refused = [](const char* pointer, const json& value) {
    json object = hf_json_from_wordpiece(sample_definition());
    object[json::json_pointer(pointer)] = value;
    return refusal(object);
  };
  EXPECT_THAT(refused("/normalizer", {{"type", "NFC"}}), AllOf(HasSubstr("t.json: normalizer"), HasSubstr("NFC")));
  EXPECT_THAT(refused("/pre_tokenizer", {{"type", "Whitespace"}}), HasSubstr("pre_tokenizer \"Whitespace\""));
  EXPECT_THAT(refused("/pre_tokenizer", nullptr), HasSubstr("pre_tokenizer null"));
  EXPECT_THAT(refused("/decoder/cleanup", false), HasSubstr("decoder: cleanup"));
  EXPECT_THAT(refused("/decoder/prefix", "@@"), HasSubstr("decoder: prefix \"@@\""));
  EXPECT_THAT(refused("/post_processor/single", json::array()), HasSubstr("other than [CLS] A [SEP] B [SEP]"));
  EXPECT_THAT(refused("/post_processor", {{"type", "RobertaProcessing"}}), HasSubstr("\"RobertaProcessing\""));
  EXPECT_THAT(refused("/model/continuing_subword_prefix", "@@"), HasSubstr("continuing_subword_prefix \"@@\""));
  EXPECT_THAT(refused("/model/unk_token", "<unk>"), HasSubstr("unk_token \"<unk>\" is not among the 18 tokens"));
  EXPECT_THAT(refused("/model/vocab/the", 40), HasSubstr("no token has the id 12"));
}

// ----------------------------------------------------------------------------------------------- training

TEST(WordPieceTrainingTest, MergesTheMostFrequentPairs) {
  const auto tokenizer = train_on({.kind = TokenizerKind::kWordPiece, .vocabulary_size = 17, .min_count = 1},
                                  {"hug hug hug pug", "Pun, h\u00FCg"});
  // After the special tokens stand the characters, and again inside words. Pairs are ##u ##g 5 times, h ##ug 4 times,
  // then once each p ##u and p ##ug, of which the first has the smaller id on the right.
  std::vector<std::string> tokens = tokenizer->to_json()["tokens"];
  tokens.erase(tokens.begin(), tokens.begin() + 5);
  EXPECT_THAT(tokens, ElementsAre(",", "g", "h", "n", "p", "u", "##g", "##n", "##u", "##ug", "hug", "pu"));
}

TEST(WordPieceTrainingTest, OptionsThatDoNotFitAreRefused) {
  EXPECT_THAT(error_message([] { train_on({.kind = TokenizerKind::kWordPiece, .vocabulary_size = 8}, {"abc abc"}); }),
              AllOf(HasSubstr("vocabulary-size 8 is too small for wordpiece"), HasSubstr("are 10")));
  EXPECT_THAT(error_message([] { train_on({.kind = TokenizerKind::kBpe, .cased = true}, {"abc"}); }),
              HasSubstr("cased is for the tokenizer wordpiece"));
  EXPECT_THAT(error_message([] {
                train_on({.kind = TokenizerKind::kWordPiece}, {"ab", "c\xFF"});
              }),
              HasSubstr("training 'wordpiece', after 2 bytes: not valid UTF-8 at byte 1"));
}

TEST(WordPieceTrainingTest, CasedKeepsCaseAndAccents) {
  const TokenizerOptions options = {.kind = TokenizerKind::kWordPiece, .vocabulary_size = 60, .cased = true};
  const auto tokenizer = train_on(options, {"\u00C9t\u00E9 Et Et \u00C9t\u00E9"});
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("\u00C9t\u00E9 Et")), "\u00C9t\u00E9 Et");
}

}  // namespace wordpiece_test
}  // namespace headshare
