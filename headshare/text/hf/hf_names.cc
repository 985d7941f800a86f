#include "headshare/text/hf/hf_names.h"

#include <algorithm>

#include "headshare/text/hf/hf_parts.h"

namespace headshare {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kNamed[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                  "pad_token", "cls_token", "mask_token"};
constexpr const char* kAdditional = "additional_special_tokens";
constexpr const char* kExtra = "extra_special_tokens";
constexpr const char* kType = "__type";

bool is_other_name(const std::string& key) {
  return key.ends_with("_token") && std::find(std::begin(kNamed), std::end(kNamed), key) == std::end(kNamed);
}

// Tells whether a value is a token. Objects are tokens only where they say so; other values under such a key are
// settings.
bool is_token(const ordered_json& value) {
  return value.is_string() || (value.is_object() && value.contains(kType) && value[kType] == "AddedToken");
}

bool says_nothing(const ordered_json& value) { return value.is_null() || value.empty() || value == false; }

// Reads a text, or an object with options.
AddedToken token_of(const ordered_json& value, const std::string& where) {
  AddedToken token = value.is_string() ? AddedToken{.text = value.get<std::string>(), .special = true}
                                       : read_added_token(json(value), true, where);
  token.id = kIdOfText;
  token.special = true;
  return token;
}

}  // namespace

const HfNames::Argument* HfNames::find(const Arguments& arguments, const std::string& key) {
  const auto found =
      std::find_if(arguments.begin(), arguments.end(), [&key](const Argument& one) { return one.key == key; });
  return found == arguments.end() ? nullptr : &*found;
}

void HfNames::set(const Argument& argument, Arguments* arguments) {
  const auto found = std::find_if(arguments->begin(), arguments->end(),
                                  [&argument](const Argument& one) { return one.key == argument.key; });
  if (found == arguments->end()) {
    arguments->push_back(argument);
  } else {
    *found = argument;
  }
}

void HfNames::erase(const std::string& key, Arguments* arguments) {
  std::erase_if(*arguments, [&key](const Argument& one) { return one.key == key; });
}

HfNames::HfNames(const ordered_json& config, const std::string& where) {
  for (const auto& [key, value] : config.items()) arguments_.push_back({key, value, where});
  const Argument* additional = find(arguments_, kAdditional);
  const Argument* extra = find(arguments_, kExtra);
  if (additional != nullptr && (extra == nullptr || says_nothing(extra->value))) {
    const Argument moved = {kExtra, additional->value, where};
    erase(kAdditional, &arguments_);
    set(moved, &arguments_);
  }
  for (const Argument& one : arguments_) {
    if (is_other_name(one.key) && one.value.is_string()) others_.push_back(one);
  }
  for (const Argument& one : others_) erase(one.key, &arguments_);
  take_extra_object();
}

// {"image_token": "<image>"} in place of a list names tokens.
void HfNames::take_extra_object() {
  const Argument* extra = find(arguments_, kExtra);
  if (extra == nullptr || !extra->value.is_object()) return;
  for (const auto& [key, value] : extra->value.items()) set({key, value, extra->where}, &others_);
  erase(kExtra, &arguments_);
}

void HfNames::merge(const ordered_json& map, const std::string& where) {
  for (const auto& [key, value] : map.items()) {
    Argument argument = {key, value, where};
    if (key == kExtra && value.is_array()) {
      const Argument* before = find(arguments_, kExtra);
      ordered_json joined = before != nullptr && before->value.is_array() ? before->value : ordered_json::array();
      for (const ordered_json& one : value) {
        if (std::find(joined.begin(), joined.end(), one) == joined.end()) joined.push_back(one);
      }
      argument.value = joined;
    } else if (key != kExtra && value.is_object()) {
      argument.value[kType] = "AddedToken";
      argument.value["special"] = true;
    }
    set(argument, &arguments_);
  }
  take_extra_object();
}

std::map<std::string, std::string> HfNames::texts() const {
  std::map<std::string, std::string> texts;
  for (const char* key : kNamed) {
    const Argument* one = find(arguments_, key);
    if (one != nullptr && !says_nothing(one->value)) texts[key] = token_of(one->value, one->where + ": " + key).text;
  }
  return texts;
}

std::set<std::string> HfNames::listed_as_special() const {
  std::set<std::string> texts;
  for (const auto& [key, text] : this->texts()) texts.insert(text);
  // additional_special_tokens of special_tokens_map.json become extra ones only later.
  const Argument* list = find(arguments_, kExtra);
  if (list == nullptr || !list->value.is_array()) return texts;
  for (const ordered_json& one : list->value) texts.insert(token_of(one, list->where + ": " + kExtra).text);
  return texts;
}

std::vector<AddedToken> HfNames::tokens(const Arguments& arguments) {
  std::vector<AddedToken> found;
  for (const Argument& one : arguments) {
    if (says_nothing(one.value)) continue;
    AddedToken token = token_of(one.value, one.where + ": " + one.key);
    if (!token.text.empty()) found.push_back(std::move(token));
  }
  return found;
}

std::vector<AddedToken> HfNames::named() const {
  Arguments usual, others;
  for (const char* key : kNamed) {
    if (const Argument* one = find(arguments_, key)) usual.push_back(*one);
  }
  for (const Argument& one : arguments_) {
    if (is_other_name(one.key) && is_token(one.value)) others.push_back(one);
  }
  for (const Argument& one : others_) set(one, &others);
  usual.insert(usual.end(), others.begin(), others.end());
  return tokens(usual);
}

std::vector<AddedToken> HfNames::extra() const {
  const Argument* list = find(arguments_, kExtra);
  if (list == nullptr) list = find(arguments_, kAdditional);
  if (list == nullptr || !(list->value.is_array() || list->value.is_object())) return {};
  Arguments entries;
  for (const ordered_json& one : list->value) entries.push_back({list->key, one, list->where});
  return tokens(entries);
}

}  // namespace headshare
