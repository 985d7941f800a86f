// Tests SentencePiece models: trained, read from files that may be damaged, written.
// tests/oracles/test_sentencepiece.py compares ids, spans and texts with the library's own program.
#include <gmock/gmock.h>

#include <cstring>

#include "headshare/base/testing.h"
#include "headshare/text/sentencepiece/model_check.h"
#include "headshare/text/sentencepiece/sentencepiece_tokenizer.h"
#include "headshare/text/sentencepiece/train_sentencepiece.h"
#include "headshare/text/test_support.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace sentencepiece_test {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kLines = {
    "Two young men are outside near many bushes.\n"
    "Several men in hard hats are operating a giant pulley system.\n"
    "A little girl climbing into a wooden playhouse.\n",
    "A man in a blue shirt is standing on a ladder cleaning a window."};

std::string trained(SentencePieceModel model, int64_t pieces = 80) {
  size_t next = 0;
  return train_sentencepiece({.model = model, .vocabulary_size = pieces}, [&next](std::string* chunk) {
    if (next == kLines.size()) return false;
    *chunk = kLines[next++];
    return true;
  });
}

// --- small models, field by field

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}

std::string bytes_field(uint64_t number, const std::string& content) {
  return varint(number << 3 | 2) + varint(content.size()) + content;
}

std::string number_field(uint64_t number, uint64_t value) { return varint(number << 3) + varint(value); }

constexpr int kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6;

std::string piece(const std::string& text, float score = 0, int type = kNormal) {
  std::string four(4, '\0');
  std::memcpy(four.data(), &score, 4);
  return bytes_field(1,
                     bytes_field(1, text) + varint(2 << 3 | 5) + four + number_field(3, static_cast<uint64_t>(type)));
}

// Returns a BPE model of a few pieces, without a character map.
std::string small_model(const std::string& more = "") {
  return piece("<unk>", 0, kUnknown) + piece("<s>", 0, kControl) + piece("</s>", 0, kControl) + piece("▁", -3) +
         piece("a", -4) + piece("b", -5) + piece("ab", -1) + piece("▁a", -2) + bytes_field(2, number_field(3, 2)) +
         more;
}

std::string with_charsmap(const std::string& map) { return small_model(bytes_field(3, bytes_field(2, map))); }

std::string unit(uint32_t value) {
  std::string four(4, '\0');
  std::memcpy(four.data(), &value, 4);
  return four;
}

// Returns a map with `units` and `texts`.
std::string charsmap(const std::vector<uint32_t>& units, const std::string& texts) {
  std::string trie;
  for (const uint32_t one : units) trie += unit(one);
  return unit(static_cast<uint32_t>(trie.size())) + trie + texts;
}

// "A" becomes the text at `value`: the root leads to block 1, where its unit leads to block 2 with the leaf.
std::vector<uint32_t> one_key(uint32_t value) {
  std::vector<uint32_t> units(512);
  units[0] = 256u << 10;
  const uint32_t at = 256 ^ 'A';
  const uint32_t to = 256 ^ 'B';  // a free place of the same block
  units[at] = (at ^ to) << 10 | 1u << 8 | 'A';
  units[to] = 1u << 31 | value;
  return units;
}

std::string refusal(const std::string& model) {
  return error_message([&] { SentencePieceTokenizer(model, "x.model"); });
}

std::vector<int32_t> ids_of(const std::string& model, const std::string& text) {
  return SentencePieceTokenizer(model, "x.model").encode(text);
}

// --- training

TEST(SentencePieceTest, BothModelsAreTrainedAndGiveTextBack) {
  for (const SentencePieceModel model : {SentencePieceModel::kUnigram, SentencePieceModel::kBpe}) {
    const auto tokenizer =
        train_on({.kind = TokenizerKind::kSentencePiece, .vocabulary_size = 80, .sentencepiece_model = model}, kLines);
    EXPECT_EQ(tokenizer->kind(), "sentencepiece");
    EXPECT_GT(tokenizer->vocabulary_size(), 40);
    EXPECT_LE(tokenizer->vocabulary_size(), 80);  // the unigram trainer finds fewer in so short a text
    EXPECT_EQ(tokenizer->special(SpecialToken::kPadding), 0);
    EXPECT_EQ(tokenizer->special(SpecialToken::kUnknown), 1);
    EXPECT_EQ(tokenizer->special(SpecialToken::kBeginOfText), 2);
    EXPECT_EQ(tokenizer->special(SpecialToken::kEndOfText), 3);
    EXPECT_FALSE(tokenizer->special(SpecialToken::kMask));
    const std::string text = "A man is climbing a wooden ladder.";
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
    EXPECT_LT(tokenizer->encode(text).size(), text.size());
    EXPECT_THAT(tokenizer->encode("a ▒ b"), testing::Contains(1));
    EXPECT_TRUE(tokenizer->encode("").empty());
    EXPECT_TRUE(tokenizer->encode(" \n\t").empty());
  }
  EXPECT_NE(trained(SentencePieceModel::kUnigram), trained(SentencePieceModel::kBpe));
}

TEST(SentencePieceTest, TrainingIsRepeatableAndDoesNotDependOnChunks) {
  EXPECT_EQ(trained(SentencePieceModel::kUnigram), trained(SentencePieceModel::kUnigram));
  const TokenizerOptions options = {.kind = TokenizerKind::kSentencePiece, .vocabulary_size = 80};
  EXPECT_EQ(fingerprint(*train_on(options, {kLines[0] + kLines[1]})), fingerprint(*train_on(options, kLines)));
}

TEST(SentencePieceTest, LongLinesAreTrainedOnToo) {
  std::string words;
  while (words.size() < 20000) words += "zebra crossing ";
  const std::string unbroken(50000, 'q');
  const TokenizerOptions options = {.kind = TokenizerKind::kSentencePiece, .vocabulary_size = 40};
  const auto tokenizer = train_on(options, {words + unbroken});
  EXPECT_EQ(tokenizer->encode("zebra zebra").size(), 2u);
  EXPECT_THAT(tokenizer->encode("q"), testing::Not(testing::Contains(1)));
}

TEST(SentencePieceTest, TextsToTrainOnThatGiveNothingAreRefused) {
  const TokenizerOptions options = {.kind = TokenizerKind::kSentencePiece};
  for (const std::string text : {"", "\n\n", " \t ", "\x01\x02", "\u200B", "\uFFFD", "▁▁▁", "a▅b"}) {
    EXPECT_THAT(error_message([&] { train_on(options, {text}); }), HasSubstr("no letter, digit or sign")) << text;
  }
  EXPECT_THAT(error_message([&] { train_on(options, {"good ", "b\xC3"}); }), HasSubstr("after 5 bytes"));
  for (const int64_t size : {2, 3, 4, 5, 9}) {
    EXPECT_THAT(error_message([&] { train_on({.kind = options.kind, .vocabulary_size = size}, kLines); }),
                HasSubstr(join_text("'sentencepiece': a vocabulary of ", size, " pieces has no room for")));
  }
  EXPECT_THAT(error_message([&] { train_on({.kind = options.kind, .vocabulary_size = 10}, kLines); }),
              HasSubstr("a vocabulary of 10 pieces has no room for the 29"));
  EXPECT_THAT(error_message([&] { train_on({.kind = TokenizerKind::kBpe, .character_coverage = 1}, kLines); }),
              HasSubstr("are for the tokenizer sentencepiece"));
  EXPECT_THAT(error_message([&] { train_on({.kind = options.kind, .min_count = 2}, kLines); }), HasSubstr("min-count"));
  const auto failing = [](std::string*) -> bool { throw Error("the disk is gone"); };
  EXPECT_EQ(error_message([&] { train_tokenizer(options, failing); }), "the disk is gone");
}

// Anything that is valid text trains, or is refused: the library ends the program where it does not expect a text.
TEST(SentencePieceTest, OddTextsTrainOrAreRefused) {
  Philox random(7);
  const std::vector<std::string> blanks = {" ", "\n", "\t", "\x01", "\u2581", "\u2585", "\u200B", "\u3000", "\uFFFD"};
  for (int i = 0; i < 60; ++i) {
    std::string text = random_text(&random);
    text.resize(valid_utf8_prefix(text));
    if (i % 2 == 0) {
      text.clear();
      for (uint64_t left = random.below(9); left > 0; --left) text += blanks[random.below(blanks.size())];
    }
    for (const SentencePieceModel model : {SentencePieceModel::kUnigram, SentencePieceModel::kBpe}) {
      try {
        const auto tokenizer = train_on({.kind = TokenizerKind::kSentencePiece, .sentencepiece_model = model}, {text});
        tokenizer->decode(tokenizer->encode(text));
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("training 'sentencepiece'"));
      }
    }
  }
}

// --- ids, spans, texts

TEST(SentencePieceTest, SpansAreBytesOfTheText) {
  const auto tokenizer = SentencePieceTokenizer(small_model(), "x");
  const std::string text = "ab  b é";
  const TokensWithSpans tokens = tokenizer.encode_with_spans(text);
  EXPECT_THAT(tokens.ids, ElementsAre(3, 6, 3, 5, 3, 0));
  EXPECT_THAT(spelled(tokenizer, text), ElementsAre("", "ab", "  ", "b", " ", "é"));
}

TEST(SentencePieceTest, BytesOfACharacterShareItsSpan) {
  std::string model = small_model(bytes_field(2, number_field(35, 1)));
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", byte);
    model += piece(text, 0, kByte);
  }
  const SentencePieceTokenizer tokenizer(model, "x");
  EXPECT_THAT(tokenizer.encode("aé"), ElementsAre(7, 8 + 0xC3, 8 + 0xA9));
  EXPECT_THAT(spelled(tokenizer, "aé"), ElementsAre("a", "é", "é"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("aé")), "aé");
  EXPECT_TRUE(tokenizer.continues_word(8 + 0xA9));
}

TEST(SentencePieceTest, ControlPiecesAreSpelledAndNeverRead) {
  const SentencePieceTokenizer tokenizer(small_model(), "x");
  EXPECT_EQ(tokenizer.vocabulary()->tokens[1].kind, TokenKind::kSpecial);
  EXPECT_EQ(tokenizer.vocabulary()->scores[6], -1);  // "ab"
  const std::vector<int32_t> ids = {1, 7, 6, 2, 7, 5, 0};
  EXPECT_EQ(tokenizer.decode(ids), "<s>aab</s>ab \u2047 ");
  EXPECT_THAT(tokenizer.encode("</s>"), testing::Not(testing::Contains(2)));
  EXPECT_THAT(tokenizer.encode_with_special("ab</s>"), ElementsAre(3, 6, 2));
  EXPECT_FALSE(tokenizer.continues_word(2));
  EXPECT_FALSE(tokenizer.continues_word(7));
  EXPECT_TRUE(tokenizer.continues_word(5));
  EXPECT_THAT(error_message([&] { tokenizer.decode(std::vector<int32_t>{8}); }), HasSubstr("the id 8"));
  EXPECT_THAT(error_message([&] { tokenizer.encode("a\xFF"); }), HasSubstr("tokenizer 'sentencepiece'"));
}

// Unknown text that a model writes as nothing must not keep encode_with_special searching.
TEST(SentencePieceTest, AnUnknownPieceWithoutATextIsNoSpecialText) {
  const SentencePieceTokenizer tokenizer(small_model(bytes_field(2, bytes_field(44, ""))), "x");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{0}), "");
  EXPECT_THAT(tokenizer.encode_with_special("ab"), ElementsAre(3, 6));
}

TEST(SentencePieceTest, ASavedTokenizerIsTheSame) {
  const TemporaryDirectory folder;
  const std::string model = trained(SentencePieceModel::kUnigram);
  const SentencePieceTokenizer tokenizer(model, "x");
  save_tokenizer(tokenizer, folder.path() / "tokenizer.json");
  write_file(folder.path() / "pieces.model", sentencepiece_file(tokenizer, "pieces.model"));
  const auto read = load_tokenizer(folder.path() / "tokenizer.json");
  EXPECT_EQ(fingerprint(*read), fingerprint(tokenizer));
  EXPECT_EQ(read->encode("A man is climbing."), tokenizer.encode("A man is climbing."));
  EXPECT_EQ(read_file(folder.path() / "pieces.model"), model);
  EXPECT_EQ(fingerprint(*load_tokenizer(folder.path() / "pieces.model")), fingerprint(tokenizer));
  const auto bytes = train_on({.kind = TokenizerKind::kBytes}, {});
  EXPECT_THAT(error_message([&] { sentencepiece_file(*bytes, "b.model"); }),
              HasSubstr("'bytes' is no SentencePiece model"));
  EXPECT_FALSE(fs::exists(folder.path() / "b.model"));
}

// --- a vocabulary of its own, as MarianMT's

TEST(SentencePieceTest, AVocabularyGivesOtherIds) {
  const TemporaryDirectory folder;
  write_file(folder.path() / "source.spm", small_model());
  const fs::path vocabulary = folder.path() / "vocab.json";
  write_file(vocabulary, R"({"</s>": 0, "<unk>": 1, "ab": 2, "é": 3, "▁": 4, "▁of": 5, "<pad>": 6})");
  const auto tokenizer = load_sentencepiece(folder.path() / "source.spm", vocabulary);
  EXPECT_EQ(tokenizer->vocabulary_size(), 7);
  EXPECT_EQ(tokenizer->special(SpecialToken::kPadding), 6);
  EXPECT_EQ(tokenizer->special(SpecialToken::kEndOfText), 0);
  EXPECT_FALSE(tokenizer->special(SpecialToken::kBeginOfText));
  // "b" has a piece and no token; "é" has no piece in this model, and a token of the other one.
  EXPECT_THAT(tokenizer->encode("ab b é"), ElementsAre(4, 2, 4, 1, 4, 3));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{4, 2, 5, 3, 0}), "ab ofé</s>");
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{5, 2}), "ofab");
  EXPECT_EQ(tokenizer->spelling(5), "▁of");
  EXPECT_THAT(error_message([&] { tokenizer->spelling(7); }), HasSubstr("the id 7"));
  const Vocabulary seen = *tokenizer->vocabulary();
  EXPECT_EQ(seen.tokens[5].spelling, "▁of");
  EXPECT_EQ(seen.tokens[0].kind, TokenKind::kSpecial);
  EXPECT_EQ(seen.tokens[1].kind, TokenKind::kUnknown);
  EXPECT_EQ(seen.tokens[3].kind, TokenKind::kOrdinary);
  EXPECT_TRUE(seen.scores.empty()) << "each side's model has scores of its own";
  EXPECT_EQ(fingerprint(*tokenizer_from_json(tokenizer->to_json(), "again")), fingerprint(*tokenizer));
  EXPECT_THAT(error_message([&] { sentencepiece_file(*tokenizer, "x.model"); }), HasSubstr("a vocabulary of its own"));
  const std::pair<const char*, const char*> mistakes[] = {{R"({"<unk>": 0, "a": 2})", "the id 2"},
                                                          {R"({"<unk>": 0, "a": 0})", "same id, 0"},
                                                          {R"({"<unk>": 0, "a": -1})", "the id of 'a'"},
                                                          {R"({"<unk>": 0, "": 1})", "is empty"},
                                                          {R"({"a": 0})", "no <unk>"},
                                                          {"[]", "maps pieces to ids"},
                                                          {"{}", "maps pieces to ids"}};
  for (const auto& [content, says] : mistakes) {
    write_file(vocabulary, content);
    EXPECT_THAT(error_message([&] { load_sentencepiece(folder.path() / "source.spm", vocabulary); }),
                testing::AllOf(HasSubstr(says), HasSubstr("vocab.json")))
        << content;
  }
}

// transformers' MarianTokenizer cuts the code off before the model sees the text.
TEST(SentencePieceTest, ALeadingLanguageCodeIsLookedUpWhole) {
  const TemporaryDirectory folder;
  write_file(folder.path() / "source.spm", small_model());
  const fs::path vocabulary = folder.path() / "vocab.json";
  write_file(vocabulary, R"({"</s>": 0, "<unk>": 1, "ab": 2, "b": 3, "▁": 4, ">>fra<<": 5})");
  const auto tokenizer = load_sentencepiece(folder.path() / "source.spm", vocabulary);
  EXPECT_THAT(tokenizer->encode(">>fra<< ab"), ElementsAre(5, 4, 2));
  EXPECT_THAT(tokenizer->encode(">>fra<<ab"), ElementsAre(5, 4, 2));
  EXPECT_THAT(tokenizer->encode(">>deu<< ab"), ElementsAre(1, 4, 2));
  EXPECT_THAT(tokenizer->encode(">>fra<<"), ElementsAre(5));
  EXPECT_THAT(tokenizer->encode(">>ab b<<b"), ElementsAre(1, 4, 3)) << "whatever stands in it";
  const TokensWithSpans tokens = tokenizer->encode_with_spans(">>fra<< ab");
  EXPECT_EQ(tokens.spans.front(), (TextSpan{0, 7}));
  EXPECT_EQ(tokens.spans.back(), (TextSpan{8, 10}));
  for (const char* text : {" >>fra<< ab", "ab >>fra<<", ">>fra", ">fra<<"}) {
    EXPECT_THAT(tokenizer->encode(text), testing::Not(testing::Contains(5))) << text;
  }
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{5, 4, 2}), ">>fra<< ab");
  EXPECT_THAT(SentencePieceTokenizer(small_model(), "x").encode(">>fra<<"), testing::SizeIs(testing::Gt(1)))
      << "a model alone has no such rule";
}

TEST(SentencePieceTest, AddedTokensBesideAVocabularyAreRefused) {
  const TemporaryDirectory folder;
  write_file(folder.path() / "source.spm", small_model());
  const fs::path vocabulary = folder.path() / "vocab.json";
  write_file(vocabulary, R"({"</s>": 0, "<unk>": 1, "<pad>": 2, ">>fra<<": 3})");
  const auto refused = [&](const char* text) {
    write_file(folder.path() / "added_tokens.json", text);
    return error_message([&] { load_sentencepiece(folder.path() / "source.spm", vocabulary); });
  };
  write_file(folder.path() / "special_tokens_map.json", R"({"eos_token": "</s>"})");
  EXPECT_EQ(refused(R"({"<pad>": 2})"), "no error");
  EXPECT_THAT(refused(R"({"[E1]": 4})"), HasSubstr("the added token '[E1]'"));
  // transformers finds it in the middle of a text too.
  EXPECT_THAT(refused(R"({">>fra<<": 3})"),
              testing::AllOf(HasSubstr("the added token '>>fra<<'"), HasSubstr("but language codes at their beginning"),
                             HasSubstr("if your texts do not have it elsewhere")));
  write_file(folder.path() / "special_tokens_map.json", R"({"mask_token": "<mask>"})");
  EXPECT_THAT(refused("{}"), HasSubstr("the added token '<mask>'")) << "which gets the next id there";
  write_file(folder.path() / "special_tokens_map.json", R"({"entity_token": "[E2]"})");
  EXPECT_THAT(refused("{}"), HasSubstr("the added token '[E2]'"));
}

// --- damaged files

TEST(SentencePieceTest, EveryTruncationIsATokenizerOrAnError) {
  const std::string model = small_model(bytes_field(3, bytes_field(2, charsmap(one_key(0), std::string("x\0", 2)))));
  EXPECT_THAT(ids_of(model, "ab"), ElementsAre(3, 6));
  int errors = 0;
  for (size_t length = 0; length < model.size(); ++length) {
    try {
      ids_of(model.substr(0, length), "ab é");
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("x.model"));
      ++errors;
    }
  }
  EXPECT_GT(errors, static_cast<int>(model.size()) - 30);
}

TEST(SentencePieceTest, FlippedAndRandomBytesAreATokenizerOrAnError) {
  Philox random(3);
  const std::string models[] = {small_model(bytes_field(3, bytes_field(2, charsmap(one_key(0), "x\0")))),
                                with_charsmap(charsmap(one_key(0), std::string("x\0", 2)))};
  for (const std::string& model : models) {
    for (int i = 0; i < 3000; ++i) {
      std::string damaged = mutate(model, &random);
      if (i % 10 == 0) damaged = random_text(&random);
      try {
        const SentencePieceTokenizer tokenizer(damaged, "x.model");
        const TokensWithSpans tokens = tokenizer.encode_with_spans("ab A \xE2\x96\x81 x");
        tokenizer.decode(tokens.ids);
      } catch (const Error&) {
      }
    }
  }
}

TEST(SentencePieceTest, WhatTheLibraryWouldNotSurviveIsRefusedByName) {
  EXPECT_THAT(refusal(""), HasSubstr("it has no pieces"));
  EXPECT_THAT(refusal("{\"a\": 1}"), HasSubstr("no SentencePiece model"));
  EXPECT_THAT(refusal(small_model(piece(""))), HasSubstr("piece 8 has 0 bytes"));
  EXPECT_THAT(refusal(small_model(piece(std::string(1025, 'a')))), HasSubstr("piece 8 has 1025 bytes"));
  EXPECT_THAT(refusal(small_model(piece(std::string("a\0b", 3)))), HasSubstr("zero byte"));
  EXPECT_THAT(refusal(small_model(piece("c", NAN))), HasSubstr("the score of piece 8"));
  EXPECT_THAT(refusal(small_model(piece("ab"))), HasSubstr("already defined"));
  EXPECT_THAT(refusal(piece("a")), HasSubstr("unk is not defined"));
  std::string nested;
  for (size_t length = 1; length <= 65; ++length) nested += piece(std::string(length, 'x'), 0, kUserDefined);
  EXPECT_THAT(refusal(small_model(nested)), HasSubstr("more than 64 user-defined pieces"));
  EXPECT_THAT(refusal(std::string(kLargestSentencePieceModel + 1, 'x')), HasSubstr("at most 33554432"));
  std::string many;
  while (many.size() < (size_t{4} << 20) + 8) many += bytes_field(1, "");
  EXPECT_THAT(refusal(many), HasSubstr("piece 0 has 0 bytes"));
}

TEST(SentencePieceTest, SelfTestsAreNotRun) {
  const std::string sample = bytes_field(1, bytes_field(1, "ab") + bytes_field(2, "no such pieces"));
  const std::string model = small_model(bytes_field(4, sample));
  EXPECT_EQ(refusal(model), "no error");
  EXPECT_EQ(SentencePieceTokenizer(model, "x").model(), model);
}

TEST(SentencePieceTest, CharacterMapsThatLeadAstrayAreRefused) {
  const std::string texts("x\0b\0é\0", 7);
  EXPECT_THAT(ids_of(with_charsmap(charsmap(one_key(2), texts)), "A"), ElementsAre(3, 5));
  const auto damaged = [&](size_t at, uint32_t value) {
    std::vector<uint32_t> units = one_key(0);
    units[at] = value;
    return refusal(with_charsmap(charsmap(units, texts)));
  };
  const uint32_t at = 256 ^ 'A';
  EXPECT_EQ(damaged(1, 12345), "no error");  // no search reads it
  EXPECT_THAT(damaged(0, 512u << 10), HasSubstr("leads to unit 767 of 512"));
  EXPECT_THAT(damaged(at, 1024u << 10 | 1u << 8 | 'A'), HasSubstr("a value beyond the trie"));
  EXPECT_THAT(damaged(at, 1024u << 10 | 'A'), HasSubstr("of 512: it is damaged"));
  EXPECT_THAT(damaged(at, at << 10 | at << 10 | 'A'), HasSubstr("damaged"));
  EXPECT_THAT(damaged(256 ^ 'B', 1u << 31 | 7), HasSubstr("points to byte 7 of 7"));
  EXPECT_THAT(damaged(256 ^ 'B', 1u << 31 | 5), HasSubstr("where no text begins"));
  // The key leads back to where it began, through a place with a value: "A", "AA", "AAA", ...
  std::vector<uint32_t> round = one_key(0);
  round[at] = ('A' << 10) | 1u << 8 | 'A';
  round[256] = 1u << 31;
  EXPECT_THAT(refusal(with_charsmap(charsmap(round, texts))), HasSubstr("has no end"));
  EXPECT_THAT(refusal(with_charsmap(charsmap(one_key(0), "x"))), HasSubstr("its last text has no end"));
  EXPECT_THAT(refusal(with_charsmap(charsmap({}, texts))), HasSubstr("no trie"));
}

}  // namespace sentencepiece_test
}  // namespace headshare
