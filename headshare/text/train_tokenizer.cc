#include "headshare/text/train_tokenizer.h"

#include <algorithm>
#include <set>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/text/bpe_tokenizer.h"
#include "headshare/text/bpe_trainer.h"
#include "headshare/text/byte_tokenizer.h"
#include "headshare/text/character_tokenizer.h"
#include "headshare/text/utf8.h"
#include "headshare/text/word_tokenizer.h"

namespace headshare {
namespace {

constexpr int64_t kDefaultBpeVocabulary = 8192;
constexpr int64_t kDefaultBpeMinCount = 2;

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

std::unique_ptr<Tokenizer> train_bpe_tokenizer(const TokenizerOptions& options, const NextChunk& next_chunk) {
  const WordSplitter splitter(SplitRule::kGpt2);
  WordSplitter::Cursor cursor(splitter);
  WordCounts counts;
  for (std::string chunk; next_chunk(&chunk);) {
    cursor.reset(chunk);
    for (std::string_view word; cursor.next(&word);) add_word(word, &counts);
  }
  const int64_t wanted = options.vocabulary_size.value_or(kDefaultBpeVocabulary);
  const BpeTrainingOptions training = {.vocabulary_size = wanted,
                                       .min_count = options.min_count.value_or(kDefaultBpeMinCount),
                                       .end_of_text = options.end_of_text};
  auto tokenizer = std::make_unique<BpeTokenizer>(train_bpe(counts, training), "training 'bpe'");
  if (tokenizer->vocabulary_size() < wanted) {
    notice(join_text("the training text gives ", tokenizer->vocabulary_size(), " of the ", wanted,
                     " tokens asked for: no further pair of tokens occurs ", training.min_count, " times"));
  }
  return tokenizer;
}

void check_options(const TokenizerOptions& options) {
  const bool sized = options.kind == TokenizerKind::kWords || options.kind == TokenizerKind::kBpe;
  HS_CHECK(sized || (!options.vocabulary_size && !options.min_count),
           "vocabulary-size and min-count are for the tokenizers words and bpe; the vocabulary of bytes is always 256, "
           "that of characters what the text has; leave them 'auto'");
  HS_CHECK(!options.unknown_token || options.kind == TokenizerKind::kCharacters,
           "unknown-token is for the tokenizer characters: words always has <unk>, bytes and bpe never need it");
}

}  // namespace

Fields fields(TokenizerOptions& options) {
  return {
      field("tokenizer", &options.kind, "how text becomes ids",
            {{TokenizerKind::kBytes, "bytes"},
             {TokenizerKind::kCharacters, "characters"},
             {TokenizerKind::kWords, "words"},
             {TokenizerKind::kBpe, "bpe"}}),
      field("vocabulary-size", &options.vocabulary_size, "tokens to train, for words (auto: all) and bpe (auto: 8192)",
            {.min = 2, .max = INT32_MAX, .aliases = {"vocab-size"}}),
      field("min-count", &options.min_count, "rarer words (auto: 1) and bpe pairs (auto: 2) get no token",
            {.min = 1, .max = INT32_MAX, .aliases = {"min-frequency"}}),
      field("unknown-token", &options.unknown_token, "characters: an id for characters unseen in training"),
      field("end-of-text", &options.end_of_text, "bpe: the special token <|endoftext|> between documents"),
  };
}

std::unique_ptr<Tokenizer> train_tokenizer(const TokenizerOptions& options, const NextChunk& next_chunk) {
  check_options(options);
  switch (options.kind) {
    case TokenizerKind::kBytes:
      return std::make_unique<ByteTokenizer>();
    case TokenizerKind::kCharacters:
      return train_characters(options, next_chunk);
    case TokenizerKind::kWords:
      return train_words(options, next_chunk);
    case TokenizerKind::kBpe:
      return train_bpe_tokenizer(options, next_chunk);
  }
  throw Error("unknown tokenizer kind");
}

}  // namespace headshare
