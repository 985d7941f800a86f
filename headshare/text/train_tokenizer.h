// Makes a tokenizer from text.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "headshare/base/options/field.h"
#include "headshare/text/interface/next_chunk.h"
#include "headshare/text/interface/tokenizer.h"
#include "headshare/text/sentencepiece/train_sentencepiece.h"

namespace headshare {

enum class TokenizerKind { kBytes, kCharacters, kWords, kBpe, kWordPiece, kSentencePiece, kHashMd, kHashLsh };

// Tokenizers that hash words have none.
inline bool has_vocabulary(TokenizerKind kind) {
  return kind != TokenizerKind::kHashMd && kind != TokenizerKind::kHashLsh;
}

struct TokenizerOptions {
  TokenizerKind kind = TokenizerKind::kBpe;
  // The kinds read it so. words: the most frequent words are kept (auto: all); bpe, wordpiece: when to stop merging
  // (auto: 8192); sentencepiece: how many pieces at most (auto: 8192). Special tokens count. Setting it for another
  // kind is an error.
  std::optional<int64_t> vocabulary_size = std::nullopt;
  // For words, rarer words become <unk> (auto: 1); for bpe and wordpiece, rarer pairs are not merged (auto: 2).
  std::optional<int64_t> min_count = std::nullopt;
  // For characters it adds the id <unk> for characters that training did not see.
  bool unknown_token = false;
  // For bpe it adds the special token <|endoftext|>, as id 0.
  bool end_of_text = true;
  // For wordpiece, text keeps its case and accents (BERT's "cased").
  bool cased = false;
  // For sentencepiece these are which pieces a text is cut into, and which part of the characters must have a piece
  // (auto: 0.9995).
  SentencePieceModel sentencepiece_model = SentencePieceModel::kUnigram;
  std::optional<double> character_coverage = std::nullopt;
  // For hash-lsh this is a tokenizer.json, or a folder, with a byte-level BPE whose pieces are the features; "":
  // affixes.
  std::string hash_merges = {};
};

Fields fields(TokenizerOptions& options);

// Throws Error for options of another kind of tokenizer.
void check_tokenizer_options(const TokenizerOptions& options);

// Calls `next_chunk` until it gives false, holding only counts (bytes, hash-md, hash-lsh: does not read it).
// Deterministic:
//  - characters: the code points seen, ascending,
//  - words: by falling count, ties by their bytes,
//  - bpe: as Hugging Face's BpeTrainer: the most frequent pair first, ties by the smaller left id,
//    then the smaller right id; the ids are those of its special tokens, the 256 bytes in the
//    order of their code points in the alphabet, then the merges. A corpus too small for
//    vocabulary_size gives fewer tokens and a notice,
//  - wordpiece: wordpiece_trainer.h, with the same notice,
//  - sentencepiece: sentencepiece/train_sentencepiece.h, with such a notice; it holds the text in memory.
// Throws Error for invalid UTF-8 (words, characters, wordpiece, sentencepiece), for an empty corpus (characters,
// sentencepiece), and for options that do not fit the kind.
std::unique_ptr<Tokenizer> train_tokenizer(const TokenizerOptions& options, const NextChunk& next_chunk);

}  // namespace headshare
