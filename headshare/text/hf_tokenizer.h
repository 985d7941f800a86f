// Hugging Face's tokenizer.json with a byte-level BPE, in and out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "headshare/text/bpe_merger.h"

namespace headshare {

// Accepts what this tokenizer can reproduce token for token and refuses everything else by name:
//  - model: type BPE with vocab and merges ("a b" or ["a", "b"]); no dropout, no prefix or suffix,
//    no ignore_merges; all 256 bytes in the vocabulary (so unk_token and byte_fallback never act),
//  - pre_tokenizer: ByteLevel, with its add_prefix_space and use_regex,
//  - decoder and post_processor: ByteLevel or null,
//  - normalizer, truncation and padding: null,
//  - added_tokens: special ones only. <|endoftext|> ends a text.
// Throws Error led by `where`.
BpeDefinition bpe_from_hf_json(const nlohmann::json& object, const std::string& where);

// The same tokenizer for Hugging Face tokenizers.
nlohmann::json hf_json_from_bpe(const BpeDefinition& definition);

}  // namespace headshare
