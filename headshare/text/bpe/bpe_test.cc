// Tests byte-level BPE: splitting, merging, training, and the published ids of GPT-2.
#include <gmock/gmock.h>

#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "headshare/base/json/json_input.h"
#include "headshare/base/testing.h"
#include "headshare/text/bpe/bpe_file.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/bpe/byte_alphabet.h"
#include "headshare/text/interface/word_cache.h"
#include "headshare/text/test_support.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> split(std::string_view text, SplitRule rule = SplitRule::kGpt2) {
  const WordSplitter splitter(rule);
  WordSplitter::Cursor cursor(splitter);
  cursor.reset(text);
  std::vector<std::string> words;
  for (std::string_view word; cursor.next(&word);) words.emplace_back(word);
  return words;
}

// Returns the 256 bytes (in the alphabet's order, so '!' is 0 and 'a' is 64) and the given merges.
BpeDefinition small_bpe(const std::vector<std::pair<std::string, std::string>>& merges) {
  BpeNames names;
  for (int32_t code_point = 0; code_point < 0x180; ++code_point) {
    std::string name;
    append_utf8(code_point, &name);
    if (from_alphabet(name).has_value()) names.tokens.push_back(name);
  }
  for (const auto& [left, right] : merges) names.tokens.push_back(left + right);
  names.merges = merges;
  return bpe_from_names(names, "small");
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> result;
  for (const int32_t id : tokenizer.encode(text)) result.push_back(tokenizer.decode(std::vector<int32_t>{id}));
  return result;
}

// Merges without any cleverness, as merges are meant: the best pair, again and again.
std::vector<int32_t> merge_plainly(const BpeDefinition& definition, std::string_view word) {
  std::vector<int32_t> ids;
  for (const char c : word) {
    const auto at = std::find(definition.tokens.begin(), definition.tokens.end(), std::string(1, c));
    ids.push_back(static_cast<int32_t>(at - definition.tokens.begin()));
  }
  for (size_t rank = 0; rank < definition.merges.size();) {
    const TokenMerge& merge = definition.merges[rank];
    size_t at = 0;
    while (at + 1 < ids.size() && (ids[at] != merge.left || ids[at + 1] != merge.right)) ++at;
    if (at + 1 >= ids.size()) {
      ++rank;
      continue;
    }
    ids[at] = merge.result;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(at) + 1);
    rank = 0;
  }
  return ids;
}

TEST(ByteAlphabetTest, IsGpt2s) {
  EXPECT_EQ(to_alphabet(" the\n\xFF"), "ĠtheĊÿ");
  EXPECT_EQ(byte_to_code_point(0), 0x100);
  EXPECT_EQ(byte_to_code_point(0xAD), 0x143);
  std::set<int32_t> distinct;
  for (int byte = 0; byte < 256; ++byte) distinct.insert(byte_to_code_point(static_cast<unsigned char>(byte)));
  EXPECT_EQ(distinct.size(), 256U);
  EXPECT_EQ(from_alphabet(to_alphabet(all_bytes())), all_bytes());
  for (const char* outside : {" ", "\n", "a b", "\u0144", "€", "\xFF"}) {
    EXPECT_EQ(from_alphabet(outside), std::nullopt) << outside;
  }
}

TEST(WordSplitterTest, FollowsTheGpt2Pattern) {
  EXPECT_THAT(split("Don't you've  42  a1!"), ElementsAre("Don", "'t", " you", "'ve", " ", " 42", " ", " a", "1", "!"));
  EXPECT_THAT(split("a\n\n b \t"), ElementsAre("a", "\n\n", " b", " \t"));
  EXPECT_THAT(split("x\u00A0y\u2028\u3000"), ElementsAre("x", "\u00A0", "y", "\u2028\u3000"));
  EXPECT_THAT(split(" \u180E"), ElementsAre(" \u180E"));  // a format character, not white space
  EXPECT_THAT(split(" Äß日本٣½"), ElementsAre(" Äß日本", "٣½"));
  EXPECT_THAT(split(""), ElementsAre());
  EXPECT_THAT(split("a b\xFF", SplitRule::kNone), ElementsAre("a b\xFF"));
}

TEST(WordSplitterTest, FollowsThePatternsOfTodaysDecoders) {
  const std::string digits = "ab12 345½٣ 6";
  EXPECT_THAT(split(digits, SplitRule::kDigits), ElementsAre("ab", "1", "2", " ", "3", "4", "5", "½", "٣", " ", "6"));
  EXPECT_THAT(split("a  1 \n", SplitRule::kDigits), ElementsAre("a", "  ", "1", " \n"));
  EXPECT_THAT(split(digits, SplitRule::kLlama3), ElementsAre("ab", "12", " ", "345", "½٣", " ", "6"));
  EXPECT_THAT(split(digits, SplitRule::kQwen2), ElementsAre("ab", "1", "2", " ", "3", "4", "5", "½", "٣", " ", "6"));
  for (const SplitRule rule : {SplitRule::kLlama3, SplitRule::kQwen2}) {
    EXPECT_THAT(split("I'LL (don't) it'\u017F", rule),
                ElementsAre("I", "'LL", " (", "don", "'t", ")", " it", "'\u017F"));
    EXPECT_THAT(split("x!\r\n\n  \n  y \u180Ez", rule), ElementsAre("x", "!\r\n\n", "  \n", " ", " y", " \u180E", "z"));
  }
  EXPECT_THAT(split("CamelHTTPServer's 12 a/b/\n", SplitRule::kTekken),
              ElementsAre("Camel", "HTTPServer", "'s", " ", "1", "2", " a", "/b", "/\n"));
  EXPECT_THAT(split("CamelHTTPServer's 1234 日本語X", SplitRule::kGpt4o),
              ElementsAre("Camel", "HTTPServer's", " ", "123", "4", " 日本語", "X"));
}

// A run of capitals or white space makes every alternative of the longer patterns go back over it.
TEST(WordSplitterTest, LongRunsAreWords) {
  for (const SplitRule rule : kSplitRules) {
    for (const char* one : {"A", "a", " ", "!", "\n"}) {
      std::string text;
      for (int i = 0; i < 200'000; ++i) text += one;
      EXPECT_EQ(split(text, rule).size(), 1U) << split_name(rule) << " " << one;
    }
  }
}

TEST(WordSplitterTest, InvalidBytesAreWordsOfTheirOwn) {
  EXPECT_THAT(split("ab\xFF\xC3 cd"), ElementsAre("ab", "\xFF\xC3", " cd"));
  EXPECT_THAT(split("\x80"), ElementsAre("\x80"));
  EXPECT_THAT(split("  \xE2\x82"), ElementsAre("  ", "\xE2\x82"));  // the spaces end a text of their own
}

TEST(BpeMergerTest, LowestRankFirstThenLeftmost) {
  const BpeTokenizer tokenizer(small_bpe({{"b", "c"}, {"a", "b"}, {"a", "a"}, {"aa", "aa"}}));
  EXPECT_THAT(pieces(tokenizer, "abc"), ElementsAre("a", "bc"));
  EXPECT_THAT(pieces(tokenizer, "aaa"), ElementsAre("aa", "a"));
  EXPECT_THAT(pieces(tokenizer, "aaaaaaa"), ElementsAre("aaaa", "aa", "a"));
  EXPECT_THAT(pieces(tokenizer, "aab"), ElementsAre("a", "ab"));
}

TEST(BpeMergerTest, EqualsThePlainProcedure) {
  Philox random(stream_key(1, "bpe"));
  std::vector<std::string> corpus;
  for (int i = 0; i < 200; ++i) corpus.push_back(random_text(&random));
  const auto trained = train_on({.vocabulary_size = 400, .min_count = 2}, corpus);
  const auto& bpe = dynamic_cast<const BpeTokenizer&>(*trained);
  const BpeMerger merger(bpe.definition(), "test");
  BpeMerger::Scratch scratch;
  for (int i = 0; i < 300; ++i) {
    const std::string word = random_text(&random);
    std::vector<int32_t> ids;
    merger.merge(word, &scratch, &ids);
    ASSERT_EQ(ids, merge_plainly(bpe.definition(), word));
  }
}

TEST(BpeTokenizerTest, AllBytesSurvive) {
  Philox random(stream_key(2, "lossless"));
  const auto tokenizer = train_on({.vocabulary_size = 300}, {"the theme then", all_bytes()});
  EXPECT_TRUE(tokenizer->lossless());
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_text(&random);
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(all_bytes())), all_bytes());
}

TEST(BpeTokenizerTest, SpecialTokensComeOnlyFromIds) {
  const auto tokenizer = train_on({.vocabulary_size = 257}, {});
  ASSERT_EQ(tokenizer->special(SpecialToken::kEndOfText), 0);
  const std::string name(kEndOfTextName);
  EXPECT_EQ(tokenizer->encode(name).size(), name.size());
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{0}), name);
  EXPECT_EQ(train_on({.vocabulary_size = 256, .end_of_text = false}, {})->special(SpecialToken::kEndOfText),
            std::nullopt);
  EXPECT_THAT(error_message([&] { tokenizer->decode(std::vector<int32_t>{257}); }), HasSubstr("0 .. 256"));
}

TEST(BpeTokenizerTest, PrefixSpaceIsAddedOnceAndNotLossless) {
  BpeDefinition definition = small_bpe({{"Ġ", "a"}});
  definition.add_prefix_space = true;
  const BpeTokenizer tokenizer(std::move(definition));
  EXPECT_FALSE(tokenizer.lossless());
  EXPECT_THAT(pieces(tokenizer, "a a"), ElementsAre(" a", " a"));
  EXPECT_THAT(pieces(tokenizer, " a"), ElementsAre(" a"));
  EXPECT_THAT(pieces(tokenizer, ""), ElementsAre());
}

TEST(BpeTokenizerTest, AnEndlessWordTakesNoQuadraticTime) {
  const auto tokenizer =
      train_on({.vocabulary_size = 300, .min_count = 1}, {"ACGTTGCAACCGGTAATTCG", "aaaaaaaaaaaaaaaa"});
  Philox random(stream_key(3, "dna"));
  std::string word;
  while (word.size() < 10'000'000) word += "ACGT"[random.below(4)];
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(word)), word);
  EXPECT_EQ(tokenizer->encode(std::string(10'000'000, 'a')).size(), 625'000U);
  // It takes seconds; a quadratic procedure takes hours.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(2));
}

TEST(BpeTokenizerTest, ManyThreadsGiveTheSameIds) {
  Philox random(stream_key(4, "threads"));
  std::vector<std::string> texts;
  for (int i = 0; i < 400; ++i) texts.push_back(random_text(&random));
  const auto tokenizer = train_on({.vocabulary_size = 500}, texts);
  std::vector<std::vector<int32_t>> expected;
  for (const std::string& text : texts) expected.push_back(tokenizer->encode(text));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < texts.size(); ++i) wrong[t] += tokenizer->encode(texts[i]) != expected[i];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

TEST(WordCacheTest, ForgetsRatherThanGrows) {
  WordCache cache;
  const std::vector<int32_t> ids = {7, 8};
  const auto word = [](size_t i) { return "w" + std::to_string(i); };
  for (size_t i = 0; i < WordCache::kMostWords; ++i) cache.insert(word(i), std::span(ids).first(1 + i % 2));
  EXPECT_THAT(cache.find(word(0)), ElementsAre(7));
  EXPECT_THAT(cache.find(word(1)), ElementsAre(7, 8));
  cache.insert("one more", ids);
  EXPECT_THAT(cache.find("one more"), ElementsAre(7, 8));
  EXPECT_TRUE(cache.find(word(0)).empty());
  const std::string lengthy(WordCache::kLongestWord + 1, 'x');
  cache.insert(lengthy, ids);
  EXPECT_TRUE(cache.find(lengthy).empty());
}

TEST(BpeTrainerTest, MergesTheMostFrequentPairTiesBySmallestIds) {
  // The pairs are "bc" 3, "ab" 2, "de" 2; then "ab" comes before "de", for 'a' < 'd'.
  const auto trained = train_on({.vocabulary_size = 259, .min_count = 2, .end_of_text = false},
                                {"de", "de", "ab", "ab", "bc", "bc", "bc"});
  EXPECT_EQ(trained->decode(std::vector<int32_t>{256}), "bc");
  EXPECT_EQ(trained->decode(std::vector<int32_t>{257}), "ab");
  EXPECT_EQ(trained->decode(std::vector<int32_t>{258}), "de");
}

TEST(BpeTrainerTest, StopsAtTheMinimumCount) {
  EXPECT_EQ(train_on({.vocabulary_size = 1000, .min_count = 3}, {"ab ab ab cd cd"})->vocabulary_size(), 257 + 1);
}

TEST(BpeTrainerTest, CountsStayRightWhereMergesOverlap) {
  // "aaaa" has (a,a) three times, merged to "aa" "aa"; then (aa,aa) once.
  const auto trained = train_on({.vocabulary_size = 1000, .min_count = 1, .end_of_text = false}, {"aaaa"});
  EXPECT_EQ(trained->vocabulary_size(), 258);
  EXPECT_EQ(trained->encode("aaaa"), std::vector<int32_t>{257});
}

// Trains by the definition, without any cleverness: all pairs are counted anew before every merge.
std::vector<std::pair<int32_t, int32_t>> train_plainly(std::vector<std::vector<int32_t>> words, size_t merges) {
  std::vector<std::pair<int32_t, int32_t>> learnt;
  while (learnt.size() < merges) {
    std::map<std::pair<int32_t, int32_t>, int> counts;
    for (const auto& word : words) {
      for (size_t i = 1; i < word.size(); ++i) ++counts[{word[i - 1], word[i]}];
    }
    const auto best = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == counts.end()) break;
    for (auto& word : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) {
        if (std::pair(word[i], word[i + 1]) != best->first) continue;
        word[i] = static_cast<int32_t>(256 + learnt.size());
        word.erase(word.begin() + static_cast<ptrdiff_t>(i) + 1);
      }
    }
    learnt.push_back(best->first);
  }
  return learnt;
}

TEST(BpeTrainerTest, EqualsThePlainProcedure) {
  Philox random(stream_key(7, "train"));
  std::vector<std::string> corpus;
  std::vector<std::vector<int32_t>> words;
  const auto bytes = train_on({.vocabulary_size = 256, .end_of_text = false}, {});
  for (int i = 0; i < 300; ++i) {
    std::string word;
    while (word.size() < 1 + random.below(12)) word += "abcd"[random.below(4)];
    corpus.push_back(word);
    words.push_back(bytes->encode(word));
  }
  // With more merges two would give the same bytes, where the plain procedure would make two tokens.
  constexpr size_t kMerges = 100;
  const auto trained = train_on({.vocabulary_size = 256 + kMerges, .min_count = 1, .end_of_text = false}, corpus);
  std::vector<std::pair<int32_t, int32_t>> learnt;
  for (const TokenMerge& merge : dynamic_cast<const BpeTokenizer&>(*trained).definition().merges) {
    learnt.emplace_back(merge.left, merge.right);
  }
  EXPECT_EQ(learnt, train_plainly(words, kMerges));
}

TEST(BpeTrainerTest, DoesNotDependOnHowTheTextIsCut) {
  const std::string text = "one two two three three three\n";
  const auto whole = train_on({.vocabulary_size = 265}, {text + text});
  EXPECT_EQ(fingerprint(*whole), fingerprint(*train_on({.vocabulary_size = 265}, {text, "", text})));
  EXPECT_NE(fingerprint(*whole), fingerprint(*train_on({.vocabulary_size = 264}, {text, text})));
}

TEST(BpeTrainerTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(error_message([] { train_on({.vocabulary_size = 256}, {}); }), HasSubstr("256 is too small"));
  EXPECT_THAT(error_message([] { train_on({.kind = TokenizerKind::kBytes, .vocabulary_size = 256}, {}); }),
              HasSubstr("leave them 'auto'"));
  EXPECT_THAT(error_message([] { train_on({.unknown_token = true}, {}); }), HasSubstr("unknown-token"));
}

class Gpt2Test : public testing::Test {
 protected:
  void SetUp() override {
    HS_NEEDS_DATA("tokenizers/gpt2/encoder.json.gz");
    write_file(directory_.path() / "encoder.json", read_test_data("tokenizers/gpt2/encoder.json.gz"));
    write_file(directory_.path() / "vocab.bpe", read_test_data("tokenizers/gpt2/vocab.bpe.gz"));
    tokenizer_ = load_tokenizer(directory_.path());
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(Gpt2Test, HasThePublishedVocabulary) {
  EXPECT_EQ(tokenizer_->vocabulary_size(), 50257);
  EXPECT_EQ(tokenizer_->special(SpecialToken::kEndOfText), 50256);
  EXPECT_THAT(tokenizer_->encode("Hello world"), ElementsAre(15496, 995));
}

TEST_F(Gpt2Test, EncodesThePublishedFrenchText) {
  const nlohmann::json file = parse_json_input(read_test_data("tokenizers/gpt2/encoded_tokens.json.gz"), "tokens");
  EXPECT_EQ(tokenizer_->encode(file["text"].get<std::string>()), file["token_ids"].get<std::vector<int32_t>>());
}

TEST_F(Gpt2Test, EncodesThe83MultilingualTexts) {
  const nlohmann::json texts = parse_json_input(read_test_data("tokenizers/multilingual_inputs.json.gz"), "texts");
  const nlohmann::json expected = parse_json_input(read_test_data("tokenizers/gpt2/gpt2_multilingual.json.gz"), "ids");
  ASSERT_EQ(texts.size(), 83U);
  ASSERT_EQ(expected["entries"].size(), 83U);
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ(texts[i]["id"], expected["entries"][i]["id"]);
    const auto ids = expected["entries"][i]["input_ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer_->encode(texts[i]["text"].get<std::string>()), ids) << texts[i]["id"];
    EXPECT_EQ(tokenizer_->decode(ids), expected["entries"][i]["decoded_with_special"]) << texts[i]["id"];
  }
}

TEST_F(Gpt2Test, SurvivesItsOwnFormat) {
  save_tokenizer(*tokenizer_, directory_.path() / "tokenizer.json");
  const auto again = load_tokenizer(directory_.path());  // tokenizer.json goes before the pair
  EXPECT_EQ(again->to_json(), tokenizer_->to_json());
  EXPECT_EQ(fingerprint(*again), fingerprint(*tokenizer_));
}

// RoBERTa's special tokens have roles, and its <mask> takes the white space before it; both survive a file.
TEST(Bpe, RobertasSpecialTokensHaveRoles) {
  BpeDefinition definition = small_bpe({});
  EXPECT_EQ(BpeTokenizer(definition).special(SpecialToken::kMask), std::nullopt);
  for (const char* text : {"<s>", "<pad>", "</s>", "<unk>", "<mask>"}) {
    definition.special.push_back(static_cast<int32_t>(definition.tokens.size()));
    definition.tokens.emplace_back(text);
  }
  definition.added = {{.id = 260, .text = "<mask>", .special = true, .strips_left = true}};
  const BpeTokenizer written(definition);
  const auto read = BpeTokenizer::from_json(written.to_json(), "test");
  for (const Tokenizer* tokenizer :
       {static_cast<const Tokenizer*>(&written), static_cast<const Tokenizer*>(read.get())}) {
    EXPECT_EQ(tokenizer->special(SpecialToken::kClassify), 256);
    EXPECT_EQ(tokenizer->special(SpecialToken::kSeparate), 258);
    EXPECT_EQ(tokenizer->special(SpecialToken::kEndOfText), std::nullopt);
    EXPECT_EQ(tokenizer->pair_separators(), 2);
    EXPECT_THAT(tokenizer->encode_with_special("!  <mask>!"), ElementsAre(0, 260, 0));
    EXPECT_THAT(tokenizer->encode_with_special("! </s>!").size(), 4U);
  }
  nlohmann::json damaged = written.to_json();
  damaged["strips-left"] = {261};
  EXPECT_THAT(error_message([&] { BpeTokenizer::from_json(damaged, "test"); }),
              HasSubstr("the id 261, which is not among the 261 tokens"));
}

}  // namespace
}  // namespace headshare
