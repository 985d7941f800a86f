#include "headshare/text/train_tokenizer.h"

#include <algorithm>
#include <set>

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/base/notice.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/bpe/bpe_trainer.h"
#include "headshare/text/hash/hash_tokenizer.h"
#include "headshare/text/sentencepiece/sentencepiece_tokenizer.h"
#include "headshare/text/simple/byte_tokenizer.h"
#include "headshare/text/simple/character_tokenizer.h"
#include "headshare/text/simple/word_tokenizer.h"
#include "headshare/text/tokenizer_file.h"
#include "headshare/text/unicode/utf8.h"
#include "headshare/text/wordpiece/wordpiece_file.h"
#include "headshare/text/wordpiece/wordpiece_trainer.h"

namespace headshare {
namespace {

// These are the defaults of the kinds that merge.
constexpr int64_t kDefaultVocabulary = 8192;
constexpr int64_t kDefaultMinCount = 2;

std::unique_ptr<Tokenizer> train_characters(const TokenizerOptions& options, const NextChunk& next_chunk) {
  std::set<int32_t> seen;
  uint64_t before = 0;
  for (std::string chunk; next_chunk(&chunk); before += chunk.size()) {
    for (size_t position = 0; position < chunk.size();) {
      const int32_t code_point = next_code_point(chunk, &position);
      if (code_point < 0) check_utf8(chunk, join_text("training 'characters', after ", before, " bytes"));
      seen.insert(code_point);
    }
  }
  return std::make_unique<CharacterTokenizer>(std::vector<int32_t>(seen.begin(), seen.end()),
                                              CharacterTokenizer::Options{.unknown_token = options.unknown_token},
                                              "training 'characters'");
}

WordCounts count_words(const NextChunk& next_chunk) {
  WordCounts counts;
  for (std::string chunk; next_chunk(&chunk);) {
    for_each_word(chunk, [&](std::string_view word) { add_word(word, &counts); });
  }
  for (const std::string_view reserved :
       {std::string_view("\n"), WordTokenizer::kUnknownText, WordTokenizer::kEndOfLineText}) {
    counts.erase(std::string(reserved));
  }
  return counts;
}

std::unique_ptr<Tokenizer> train_words(const TokenizerOptions& options, const NextChunk& next_chunk) {
  const WordCounts counts = count_words(next_chunk);
  std::vector<std::pair<int64_t, std::string>> kept;  // negated count, word: sorts the frequent first
  for (const auto& [word, count] : counts) {
    if (count >= options.min_count.value_or(1)) kept.emplace_back(-count, word);
  }
  std::sort(kept.begin(), kept.end());
  std::vector<std::string> words = {std::string(WordTokenizer::kUnknownText),
                                    std::string(WordTokenizer::kEndOfLineText)};
  const int64_t most = options.vocabulary_size.value_or(INT32_MAX);
  HS_CHECK(most >= 2, "vocabulary-size ", most, " is too small for words: <unk> and <eos> alone are 2");
  for (auto& [count, word] : kept) {
    if (static_cast<int64_t>(words.size()) == most) break;
    words.push_back(std::move(word));
  }
  return std::make_unique<WordTokenizer>(std::move(words), "training 'words'");
}

void notice_if_smaller(const Tokenizer& tokenizer, int64_t wanted, int64_t min_count) {
  if (tokenizer.vocabulary_size() >= wanted) return;
  notice(join_text("the training text gives ", tokenizer.vocabulary_size(), " of the ", wanted,
                   " tokens asked for: no further pair of tokens occurs ", min_count, " times"));
}

std::unique_ptr<Tokenizer> train_bpe_tokenizer(const TokenizerOptions& options, const NextChunk& next_chunk) {
  const WordSplitter splitter(SplitRule::kGpt2);
  WordSplitter::Cursor cursor(splitter);
  WordCounts counts;
  for (std::string chunk; next_chunk(&chunk);) {
    cursor.reset(chunk);
    for (std::string_view word; cursor.next(&word);) add_word(word, &counts);
  }
  const int64_t wanted = options.vocabulary_size.value_or(kDefaultVocabulary);
  const BpeTrainingOptions training = {.vocabulary_size = wanted,
                                       .min_count = options.min_count.value_or(kDefaultMinCount),
                                       .end_of_text = options.end_of_text};
  auto tokenizer = std::make_unique<BpeTokenizer>(train_bpe(counts, training), "training 'bpe'");
  notice_if_smaller(*tokenizer, wanted, training.min_count);
  return tokenizer;
}

std::unique_ptr<Tokenizer> train_wordpiece_tokenizer(const TokenizerOptions& options, const NextChunk& next_chunk) {
  const WordPieceTrainingOptions training = {.vocabulary_size = options.vocabulary_size.value_or(kDefaultVocabulary),
                                             .min_count = options.min_count.value_or(kDefaultMinCount),
                                             .normalization = bert_normalization(options.cased)};
  WordCounts counts;
  uint64_t before = 0;
  for (std::string chunk; next_chunk(&chunk); before += chunk.size()) {
    check_utf8(chunk, join_text("training 'wordpiece', after ", before, " bytes"));
    for_each_bert_word(chunk, training.normalization, SIZE_MAX,
                       [&](const BertWord& word) { add_word(word.text, &counts); });
  }
  auto tokenizer = std::make_unique<WordPieceTokenizer>(train_wordpiece(counts, training), "training 'wordpiece'");
  notice_if_smaller(*tokenizer, training.vocabulary_size, training.min_count);
  return tokenizer;
}

std::unique_ptr<Tokenizer> train_sentencepiece_tokenizer(const TokenizerOptions& options, const NextChunk& next_chunk) {
  SentencePieceTraining training{.model = options.sentencepiece_model,
                                 .vocabulary_size = options.vocabulary_size.value_or(kDefaultVocabulary)};
  training.character_coverage = options.character_coverage.value_or(training.character_coverage);
  auto tokenizer =
      std::make_unique<SentencePieceTokenizer>(train_sentencepiece(training, next_chunk), "training 'sentencepiece'");
  if (tokenizer->vocabulary_size() < training.vocabulary_size) {
    notice(join_text("the training text gives ", tokenizer->vocabulary_size(), " of the ", training.vocabulary_size,
                     " pieces asked for: no other part of its words occurs twice"));
  }
  return tokenizer;
}

std::unique_ptr<Tokenizer> make_lsh_tokenizer(const std::string& merges) {
  if (merges.empty()) return std::make_unique<HashTokenizer>(make_lsh_hasher(make_affix_features()));
  HS_CHECK(fs::is_directory(merges) || fs::path(merges).extension() == ".json" || !path_exists(merges),
           "hash-merges: ", merges, " is neither a tokenizer.json nor a folder; of vocab.json and merges.txt name the ",
           "folder");
  const std::unique_ptr<Tokenizer> found = load_tokenizer(merges);
  const auto* bpe = dynamic_cast<const BpeTokenizer*>(found.get());
  HS_CHECK(bpe != nullptr, "hash-merges: the tokenizer in ", merges, " is of kind '", found->kind(),
           "'; the features of hash-lsh need a byte-level BPE, such as GPT-2's or RoBERTa's");
  return std::make_unique<HashTokenizer>(make_lsh_hasher(make_bpe_features(*bpe)));
}

}  // namespace

void check_tokenizer_options(const TokenizerOptions& options) {
  const bool pieces = options.kind == TokenizerKind::kSentencePiece;
  const bool counted = options.kind == TokenizerKind::kWords || options.kind == TokenizerKind::kBpe ||
                       options.kind == TokenizerKind::kWordPiece;
  HS_CHECK(
      (counted || pieces || !options.vocabulary_size) && (counted || !options.min_count),
      "vocabulary-size is for the tokenizers words, bpe, wordpiece and sentencepiece, min-count for the first "
      "three; the vocabulary of bytes is always 256, that of characters what the text has, and hash-md and hash-lsh "
      "have none; leave them 'auto'");
  HS_CHECK(pieces || (options.sentencepiece_model == SentencePieceModel::kUnigram && !options.character_coverage),
           "sentencepiece-model and character-coverage are for the tokenizer sentencepiece");
  HS_CHECK(options.hash_merges.empty() || options.kind == TokenizerKind::kHashLsh,
           "hash-merges is for the tokenizer hash-lsh: the others do not hash the pieces of words");
  HS_CHECK(
      !options.unknown_token || options.kind == TokenizerKind::kCharacters,
      "unknown-token is for the tokenizer characters: words and wordpiece always have one, bytes and bpe never need "
      "it");
  HS_CHECK(
      !options.cased || options.kind == TokenizerKind::kWordPiece,
      "cased is for the tokenizer wordpiece: hash-md and hash-lsh lower-case every word, and the others keep case and "
      "accents as they are");
}

Fields fields(TokenizerOptions& options) {
  return {
      field("tokenizer", &options.kind,
            "how text becomes ids; what is trained is trained on the whole text, its held-out parts included",
            {{TokenizerKind::kBytes, "bytes"},
             {TokenizerKind::kCharacters, "characters"},
             {TokenizerKind::kWords, "words"},
             {TokenizerKind::kBpe, "bpe"},
             {TokenizerKind::kWordPiece, "wordpiece"},
             {TokenizerKind::kSentencePiece, "sentencepiece"},
             {TokenizerKind::kHashMd, "hash-md"},
             {TokenizerKind::kHashLsh, "hash-lsh"}}),
      field("vocabulary-size", &options.vocabulary_size,
            "tokens to train, for words (auto: all), bpe, wordpiece and sentencepiece (auto: 8192)",
            {.min = 2, .max = INT32_MAX, .aliases = {"vocab-size"}}),
      field("min-count", &options.min_count, "rarer words (auto: 1), bpe and wordpiece pairs (auto: 2) get no token",
            {.min = 1, .max = INT32_MAX, .aliases = {"min-frequency"}}),
      field("unknown-token", &options.unknown_token, "characters: an id for characters unseen in training"),
      field("end-of-text", &options.end_of_text, "bpe: the special token <|endoftext|> between documents"),
      field("cased", &options.cased, "wordpiece: text keeps its case and accents"),
      field("sentencepiece-model", &options.sentencepiece_model,
            "sentencepiece: cut words into the likeliest pieces, or merge pairs",
            {{SentencePieceModel::kUnigram, "unigram"}, {SentencePieceModel::kBpe, "bpe"}}),
      field("character-coverage", &options.character_coverage,
            "sentencepiece: the part of the text's characters that get pieces (auto: 0.9995); 1 for small alphabets",
            {.min = 0.98, .max = 1}),
      naming_path(field(
          "hash-merges", &options.hash_merges,
          "hash-lsh: a tokenizer.json or folder with a byte-level BPE whose pieces are the features of words, in place "
          "of affixes. Published models used RoBERTa's; GPT-2's files have the same pieces with other ids, so other "
          "hashes")),
  };
}

std::unique_ptr<Tokenizer> train_tokenizer(const TokenizerOptions& options, const NextChunk& next_chunk) {
  check_tokenizer_options(options);
  switch (options.kind) {
    case TokenizerKind::kBytes:
      return std::make_unique<ByteTokenizer>();
    case TokenizerKind::kCharacters:
      return train_characters(options, next_chunk);
    case TokenizerKind::kWords:
      return train_words(options, next_chunk);
    case TokenizerKind::kBpe:
      return train_bpe_tokenizer(options, next_chunk);
    case TokenizerKind::kWordPiece:
      return train_wordpiece_tokenizer(options, next_chunk);
    case TokenizerKind::kSentencePiece:
      return train_sentencepiece_tokenizer(options, next_chunk);
    case TokenizerKind::kHashMd:
      return std::make_unique<HashTokenizer>(make_md_hasher());
    case TokenizerKind::kHashLsh:
      return make_lsh_tokenizer(options.hash_merges);
  }
  throw Error("unknown tokenizer kind");
}

}  // namespace headshare
