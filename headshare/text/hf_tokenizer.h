// Hugging Face's tokenizer.json with a byte-level BPE or a WordPiece, in and out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "headshare/text/bpe_merger.h"
#include "headshare/text/wordpiece_tokenizer.h"

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

// The same tokenizers for Hugging Face; hf_json throws Error for kinds that are neither.
nlohmann::json hf_json_from_bpe(const BpeDefinition& definition);
nlohmann::json hf_json_from_wordpiece(const WordPieceDefinition& definition);
nlohmann::json hf_json(const Tokenizer& tokenizer);

}  // namespace headshare
