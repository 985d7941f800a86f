// Reads and writes BPE over characters in our own tokenizer.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "headshare/text/bpe/character_bpe.h"

namespace headshare {

// write_character_bpe adds to `object` what read_character_bpe reads; that throws Error led by `where`.
void write_character_bpe(const CharacterBpeDefinition& definition, nlohmann::json* object);
CharacterBpeDefinition read_character_bpe(const nlohmann::json& object, const std::string& where);

// Returns the merges of these pairs of texts. Throws Error led by `where` for one with texts, or a result, that are no
// tokens.
std::vector<TokenMerge> merges_of_texts(const std::vector<std::pair<std::string, std::string>>& pairs,
                                        const std::vector<std::string>& tokens, const std::string& where);

}  // namespace headshare
