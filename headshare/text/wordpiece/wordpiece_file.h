// Reads and writes WordPiece vocabularies as vocab.txt and in our own JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "headshare/text/wordpiece/wordpiece_tokenizer.h"

namespace headshare {

// Tells whether a special token of this text has a role.
bool has_bert_role(std::string_view token);

// Returns BERT's normalization for a vocabulary with or without case: lower case goes without accents.
BertNormalization bert_normalization(bool cased);

// Reads a vocab.txt: one token a line, the line's number less one is its id; lines may end with CR LF. [PAD], [UNK],
// [CLS], [SEP] and [MASK] are special where they stand; [UNK] must. The file does not say whether text keeps its case;
// unless `normalization` does, it keeps it when an ordinary token has a capital (A to Z), which no lower-cased text
// could reach. Throws Error naming file and line for lines that are empty, stand twice or are not UTF-8.
WordPieceDefinition wordpiece_from_vocabulary(std::string_view text,
                                              const std::optional<BertNormalization>& normalization,
                                              const std::string& name);

// Returns what a tokenizer_config.json beside a vocab.txt asks for, as transformers' BertTokenizer reads it: lower case
// unless do_lower_case is false; accents are stripped where text is lower-cased, unless strip_accents says otherwise;
// Chinese characters are words unless tokenize_chinese_chars is false. Throws Error led by `where`, also as the next
// function.
BertNormalization normalization_from_hf_config(const nlohmann::json& object, const std::string& where);

// Throws Error led by `where` when the `tokenizer_class` of a tokenizer_config.json or config.json cuts text in another
// way than BERT's. Absent, null and the classes that take any tokenizer.json are no contradiction.
void check_hf_tokenizer_class(const nlohmann::json& object, const std::string& where);

// This is our own format: write_wordpiece adds to `object` what read_wordpiece reads.
void write_wordpiece(const WordPieceDefinition& definition, nlohmann::json* object);
WordPieceDefinition read_wordpiece(const nlohmann::json& object, const std::string& where);

}  // namespace headshare
