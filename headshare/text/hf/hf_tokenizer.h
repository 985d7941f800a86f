// Hugging Face's tokenizer.json with a byte-level BPE, a WordPiece or a Unigram, in and out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "headshare/text/bpe/bpe_merger.h"
#include "headshare/text/unigram/unigram_tokenizer.h"
#include "headshare/text/wordpiece/wordpiece_tokenizer.h"

namespace headshare {

// Accepts what this tokenizer can reproduce token for token and refuses everything else by name:
//  - model: type BPE with vocab and merges ("a b" or ["a", "b"]); no dropout, no prefix or suffix,
//    no ignore_merges; all 256 bytes in the vocabulary (so unk_token and byte_fallback never act),
//  - pre_tokenizer: ByteLevel, with its add_prefix_space and use_regex,
//  - decoder: ByteLevel or null; post_processor: the same, or RobertaProcessing with <s> A </s></s> B </s>; it is
//    checked and left to the task: encode adds nothing,
//  - normalizer, truncation and padding: null,
//  - added_tokens: special ones only. <|endoftext|> ends a text.
// Throws Error led by `where`.
BpeDefinition bpe_from_hf_json(const nlohmann::json& object, const std::string& where);

// The same for WordPiece:
//  - model: type WordPiece with vocab and unk_token; continuing_subword_prefix "##";
//    max_input_chars_per_word,
//  - normalizer: BertNormalizer with its four switches, or null (none acts),
//  - pre_tokenizer: BertPreTokenizer,
//  - decoder: WordPiece with cleanup, or null,
//  - post_processor: BertProcessing, or TemplateProcessing with [CLS] A [SEP] B [SEP], or null; it is
//    checked and left to the task: encode adds nothing,
//  - truncation and padding: null,
//  - added_tokens: special ones only; the unknown token is special in any case.
WordPieceDefinition wordpiece_from_hf_json(const nlohmann::json& object, const std::string& where);

// The same for SentencePiece's Unigram as ALBERT and XLM-RoBERTa have it:
//  - model: type Unigram with vocab and unk_id; byte_fallback,
//  - normalizer: null, or Replace (of a text, or of runs of spaces), NFKD, StripAccents, Lowercase, Precompiled, alone
//    or in a Sequence,
//  - pre_tokenizer: Metaspace, or WhitespaceSplit and Metaspace; with split, prepend_scheme always or never,
//  - decoder: the same Metaspace, or null,
//  - post_processor: TemplateProcessing with [CLS] A [SEP] B [SEP] or <s> A </s> </s> B </s>, or null; it is checked
//    and left to the task: encode adds nothing,
//  - truncation and padding: null,
//  - added_tokens: special ones, and ordinary ones that are cut out of the text before it is normalised.
UnigramDefinition unigram_from_hf_json(const nlohmann::json& object, const std::string& where);

// The same tokenizers for Hugging Face; hf_json throws Error for other kinds.
nlohmann::json hf_json_from_bpe(const BpeDefinition& definition);
nlohmann::json hf_json_from_wordpiece(const WordPieceDefinition& definition);
nlohmann::json hf_json_from_unigram(const UnigramDefinition& definition);
nlohmann::json hf_json(const Tokenizer& tokenizer);

// A tokenizer that cuts text as HashTokenizer does, with its special tokens and then `words` (lower-cased, each once)
// as its vocabulary: type WordLevel. Other words are "<unk>". The texts of special tokens are words like others where
// "split_special_tokens" is set, which is transformers' affair.
nlohmann::json hf_json_from_words(const std::vector<std::string>& words);

}  // namespace headshare
