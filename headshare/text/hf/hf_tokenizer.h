// Reads and writes Hugging Face's tokenizer.json with a BPE over bytes or characters, a WordPiece or a Unigram.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "headshare/text/bpe/bpe_merger.h"
#include "headshare/text/bpe/character_bpe.h"
#include "headshare/text/hf/hf_folder.h"
#include "headshare/text/unigram/unigram_tokenizer.h"
#include "headshare/text/wordpiece/wordpiece_tokenizer.h"

namespace headshare {

// Accepts what this tokenizer can reproduce token for token and refuses everything else by name:
//  - model: type BPE with vocab and merges ("a b" or ["a", "b"]); ignore_merges; no dropout, no prefix or suffix; all
//    256 bytes in the vocabulary (so unk_token and byte_fallback never act),
//  - pre_tokenizer: ByteLevel, alone or behind a Split by a known pattern or Digits (hf_split.h),
//  - decoder: ByteLevel or null (with byte_fallback and another decoder, a file is read as BPE over characters),
//  - post_processor: as hf_borders.h has it; it is checked and left to the task: encode adds nothing,
//  - normalizer: NFC or null,
//  - truncation and padding: not read, which a notice says,
//  - added_tokens with all their options, and behind them those of `beside` (hf_folder.h).
// The eos_token of `beside` ends a text unless the borders are RoBERTa's or BERT's; without it <|endoftext|> or the
// partner of the token that begins texts. Throws Error led by `where`, also where merges make the token that begins or
// ends texts.
BpeDefinition bpe_from_hf_json(const nlohmann::json& object, const std::string& where, const TokensBeside& beside = {});

// Accepts for a BPE over characters, as bpe_from_hf_json does for bytes:
//  - model: type BPE with byte_fallback and a token for each byte ("<0x0A>"); no ignore_merges,
//  - normalizer and pre_tokenizer: Replace of " " by U+2581, alone or behind Prepend, and then null or the Split at " "
//    that finds nothing any more; or null and a Metaspace without split,
//  - decoder: Replace, ByteFallback, Fuse, and Strip of one space or not,
//  - post_processor: a token before every text or nothing,
//  - truncation, padding and added_tokens as for bytes.
CharacterBpeDefinition character_bpe_from_hf_json(const nlohmann::json& object, const std::string& where,
                                                  const TokensBeside& beside = {});

// These are GPT-2's encoder.json and vocab.bpe (or vocab.json and merges.txt), with the names of the files.
struct Gpt2Files {
  const nlohmann::json& vocabulary;
  std::string_view merges;
  std::string vocabulary_name, merges_name;
  bool add_prefix_space = false;
  std::optional<bool> roberta = {};  // whose special tokens: RoBERTa's or GPT-2's; nothing: the vocabulary decides
};

// RoBERTa's special tokens, which BART has too, are <s>, </s>, <pad>, <unk> and <mask>, as far as no merge makes them;
// GPT-2's is <|endoftext|>, which ends a text. A vocabulary with <s> and </s> is taken for RoBERTa's, unless the files
// say that it is GPT-2's. add_bos_token, bos_token and eos_token of `beside` count as in bpe_from_hf_json, unless the
// files say that it is RoBERTa's.
BpeDefinition bpe_from_gpt2_files(const Gpt2Files& files, const TokensBeside& beside = {});

// Accepts for WordPiece, as bpe_from_hf_json does for BPE:
//  - model: type WordPiece with vocab and unk_token; continuing_subword_prefix "##";
//    max_input_chars_per_word,
//  - normalizer: BertNormalizer with its four switches, or null (none acts),
//  - pre_tokenizer: BertPreTokenizer,
//  - decoder: WordPiece with cleanup, or null,
//  - post_processor: BertProcessing, or TemplateProcessing with [CLS] A [SEP] B [SEP] or with nothing, or null; it is
//    checked and left to the task: encode adds nothing,
//  - truncation, padding and added_tokens as for BPE; the unknown token is special in any case.
WordPieceDefinition wordpiece_from_hf_json(const nlohmann::json& object, const std::string& where,
                                           const TokensBeside& beside = {});

// Adds those of `beside` to a definition that has no added tokens.
void add_tokens_beside(const TokensBeside& beside, const std::string& where, WordPieceDefinition* definition);

// Accepts the same for SentencePiece's Unigram as ALBERT and XLM-RoBERTa have it:
//  - model: type Unigram with vocab and unk_id; byte_fallback,
//  - normalizer: null, or Replace (of a text, or of runs of spaces), NFKD, StripAccents, Lowercase, Precompiled, alone
//    or in a Sequence,
//  - pre_tokenizer: Metaspace, or WhitespaceSplit and Metaspace; with split, prepend_scheme always or never,
//  - decoder: the same Metaspace, or null,
//  - post_processor: TemplateProcessing with [CLS] A [SEP] B [SEP], <s> A </s> </s> B </s>, mBART's A B </s> en_XX or
//    en_XX A B </s>, or nothing, or null; it is checked and left to the task: encode adds nothing,
//  - truncation, padding and added_tokens as for BPE.
UnigramDefinition unigram_from_hf_json(const nlohmann::json& object, const std::string& where,
                                       const TokensBeside& beside = {});

// They return the same tokenizers for Hugging Face; hf_json throws Error for other kinds.
nlohmann::json hf_json_from_bpe(const BpeDefinition& definition);
nlohmann::json hf_json_from_character_bpe(const CharacterBpeDefinition& definition);
nlohmann::json hf_json_from_wordpiece(const WordPieceDefinition& definition);
nlohmann::json hf_json_from_unigram(const UnigramDefinition& definition);
nlohmann::json hf_json(const Tokenizer& tokenizer);

// Returns a tokenizer that cuts text as HashTokenizer does, with its special tokens and then `words` (lower-cased, each
// once) as its vocabulary: type WordLevel. Other words are "<unk>". The texts of special tokens are words like others
// where "split_special_tokens" is set, which is transformers' affair.
nlohmann::json hf_json_from_words(const std::vector<std::string>& words);

}  // namespace headshare
