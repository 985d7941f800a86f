// Reads and writes byte-level BPE as JSON and as GPT-2's files: from names to ids, with every inconsistency named.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headshare/text/bpe/bpe_merger.h"

namespace headshare {

constexpr std::string_view kEndOfTextName = "<|endoftext|>";

// These special tokens have roles, by their texts: RoBERTa's and GPT-2's.
constexpr std::string_view kBpeRoles[] = {"<s>", "</s>", "<pad>", "<unk>", "<mask>", kEndOfTextName};

// This is a vocabulary and merges as files write them.
struct BpeNames {
  std::vector<std::string> tokens;                          // by id: in the byte alphabet; special ones as their text
  std::vector<std::pair<std::string, std::string>> merges;  // in the byte alphabet
  std::vector<int32_t> special;                             // that no merge makes, ascending
  std::vector<AddedToken> added = {};                       // by id
};

// Returns tokens and merges by id. Throws Error led by `where` for tokens that are empty, stand twice or leave the byte
// alphabet, and for merges of or to unknown tokens.
BpeDefinition bpe_from_names(const BpeNames& names, const std::string& where);

// Returns the texts of a {text: id} object, by id. Throws Error for ids that leave holes or stand twice. `others` are
// further (id, text) pairs of the same vocabulary; agreeing with the object is no mistake.
std::vector<std::string> tokens_by_id(const nlohmann::json& vocabulary,
                                      const std::vector<std::pair<int32_t, std::string>>& others,
                                      const std::string& where);

// Splits "left right"; throws Error led by `what` unless there is exactly one space between two texts.
std::pair<std::string, std::string> parse_merge(std::string_view line, const std::string& what);

// Reads GPT-2's encoder.json and vocab.bpe (or vocab.json and merges.txt), without added tokens.
BpeNames names_from_gpt2_files(const nlohmann::json& vocabulary, std::string_view merges,
                               const std::string& vocabulary_name, const std::string& merges_name);

// Sets the added tokens, by id, of names that have none: those that merges make, or that are a byte, stay ordinary
// tokens as well, unless they are special and have a role.
void set_added(std::vector<AddedToken> added, BpeNames* names);

// Returns the version of our own format that has what this tokenizer needs: the first, or the second for rules and
// settings that programs of the first do not know.
int32_t bpe_version(const BpeDefinition& definition);

// This is our own format: write_bpe adds to `object` what read_bpe reads.
void write_bpe(const BpeDefinition& definition, nlohmann::json* object);
BpeDefinition read_bpe(const nlohmann::json& object, const std::string& where);

}  // namespace headshare
