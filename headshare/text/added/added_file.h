// Reads and writes added tokens in our own tokenizer.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headshare/text/added/added_token.h"

namespace headshare {

// Ids are listed under "strips-left" where a special token has no other option and under "verbatim" where an ordinary
// one has none, as in files of earlier versions; other tokens, and those whose text is not that of `tokens`, stand
// under "added" with all their options. Keys of `always` are there even where they list nothing.
void write_added(const std::vector<AddedToken>& added, const std::vector<std::string>& tokens,
                 const std::vector<std::string>& always, nlohmann::json* object);

// Returns what write_added wrote, by id; `tokens` are the texts by id. Throws Error led by `where`.
std::vector<AddedToken> read_added(const nlohmann::json& object, const std::vector<std::string>& tokens,
                                   const std::string& where);

// These are the keys, for refuse_unknown_keys.
inline constexpr const char* kAddedKeys[] = {"strips-left", "verbatim", "added"};

}  // namespace headshare
