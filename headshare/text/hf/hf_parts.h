// What the readers of Hugging Face's tokenizer.json share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace headshare {

// The member, or null where it is absent: Hugging Face reads both alike.
const nlohmann::json& optional_member(const nlohmann::json& object, const std::string& key);
bool optional_bool(const nlohmann::json& object, const std::string& key, bool otherwise, const std::string& where);

// Throws Error led by `where` when `unsupported`: what ("normalizer") has this value.
void refuse(bool unsupported, const nlohmann::json& value, const std::string& what, const std::string& where);

// Refuses a truncation and a padding: they are the task's.
void refuse_lengths(const nlohmann::json& object, const std::string& where);

// The part object[key] when its type is `type`; null where it is null or absent. Refuses other types.
const nlohmann::json& part_of_type(const nlohmann::json& object, const std::string& key, const std::string& type,
                                   const std::string& where);

// (id, text) of the added tokens, by id; refuses those that are not special.
std::vector<std::pair<int32_t, std::string>> added_tokens(const nlohmann::json& object, const std::string& where);

// An entry of added_tokens for a special token.
nlohmann::json special_token_json(int32_t id, const std::string& text);

}  // namespace headshare
