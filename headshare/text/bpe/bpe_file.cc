#include "headshare/text/bpe/bpe_file.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/strings/format.h"
#include "headshare/text/added/added_file.h"
#include "headshare/text/bpe/byte_alphabet.h"

namespace headshare {
namespace {

using IdOfName = std::unordered_map<std::string, int32_t>;

bool is_special(const std::vector<int32_t>& special, size_t id) {
  return std::binary_search(special.begin(), special.end(), static_cast<int32_t>(id));
}

// Fills definition->tokens. The alphabet maps bytes one to one, so names stand for bytes from here on.
IdOfName resolve_tokens(const BpeNames& names, const std::string& where, BpeDefinition* definition) {
  IdOfName ids;
  for (size_t id = 0; id < names.tokens.size(); ++id) {
    const std::string& name = names.tokens[id];
    HS_CHECK(!name.empty(), where, ": token ", id, " is empty");
    const auto [at, fresh] = ids.emplace(name, static_cast<int32_t>(id));
    HS_CHECK(fresh, where, ": the token ", brief_json(name), " has two ids, ", at->second, " and ", id);
    if (is_special(names.special, id)) {
      definition->tokens.push_back(name);
      continue;
    }
    std::optional<std::string> bytes = from_alphabet(name);
    HS_CHECK(bytes.has_value(), where, ": token ", id, ", ", brief_json(name),
             ", has a character outside the byte-level alphabet; only special tokens may");
    definition->tokens.push_back(std::move(*bytes));
  }
  return ids;
}

int32_t resolve_name(const IdOfName& ids, const std::string& name, const std::string& where, const BpeDefinition& to) {
  const auto found = ids.find(name);
  const bool ordinary = found != ids.end() && !is_special(to.special, static_cast<size_t>(found->second));
  HS_CHECK(ordinary, where, ": merge ", to.merges.size(), " names ", brief_json(name), ", which is not among the ",
           to.tokens.size() - to.special.size(), " ordinary tokens");
  return found->second;
}

SplitRule split_from_name(const std::string& name, const std::string& where) {
  std::vector<std::string> known;
  for (const SplitRule rule : kSplitRules) {
    if (name == split_name(rule)) return rule;
    known.emplace_back(split_name(rule));
  }
  throw Error(join_text(where, ": split must be one of ", list_text(known), ", not '", name, "'"));
}

// Returns the token that ends a text where a file does not say which.
std::optional<int32_t> usual_end(const BpeDefinition& definition) {
  if (definition.roles == BpeRoles::kBert) return std::nullopt;
  for (const int32_t id : definition.special) {
    if (definition.tokens[static_cast<size_t>(id)] == kEndOfTextName) return id;
  }
  return std::nullopt;
}

// These keys are written where they say something that is not usual.
constexpr const char* kNormalFormKey = "normal-form";
constexpr const char* kWholeWordsKey = "whole-words";
constexpr const char* kRolesKey = "roles";
constexpr const char* kBeginOfTextKey = "begin-of-text";
constexpr const char* kBeginOfPairKey = "begin-of-pair";
constexpr const char* kEndOfTextKey = "end-of-text";

void write_unusual(const BpeDefinition& definition, nlohmann::json* object) {
  if (definition.composes) (*object)[kNormalFormKey] = "nfc";
  if (definition.whole_words) (*object)[kWholeWordsKey] = true;
  if (definition.roles == BpeRoles::kBert) (*object)[kRolesKey] = "bert";
  if (definition.roles == BpeRoles::kDecoder) (*object)[kRolesKey] = "decoder";
  if (definition.begin_of_text) (*object)[kBeginOfTextKey] = *definition.begin_of_text;
  if (definition.begin_of_pair != BeginOfPair::kAgain) {
    (*object)[kBeginOfPairKey] = enum_name(begin_of_pair_names(), definition.begin_of_pair);
  }
  if (definition.end_of_text && definition.end_of_text != usual_end(definition))
    (*object)[kEndOfTextKey] = *definition.end_of_text;
}

BpeRoles roles_from_name(const std::string& name, const std::string& where) {
  if (name == "bert") return BpeRoles::kBert;
  HS_CHECK(name == "decoder", where, ": ", kRolesKey, " must be 'bert' or 'decoder', not ", brief_text(name));
  return BpeRoles::kDecoder;
}

void read_unusual(const nlohmann::json& object, const std::string& where, BpeDefinition* definition) {
  const auto token = [&](const char* key) {
    const int32_t id = json_id(object, key, where);
    HS_CHECK(std::binary_search(definition->special.begin(), definition->special.end(), id), where, ": ", key,
             " is the id ", id, ", which is not among the ", definition->special.size(), " special tokens");
    return id;
  };
  if (object.contains(kNormalFormKey)) {
    HS_CHECK(json_string(object, kNormalFormKey, where) == "nfc", where, ": ", kNormalFormKey, " must be 'nfc', not ",
             brief_json(object[kNormalFormKey]));
    definition->composes = true;
  }
  definition->whole_words = object.contains(kWholeWordsKey) && json_bool(object, kWholeWordsKey, where);
  if (object.contains(kRolesKey)) definition->roles = roles_from_name(json_string(object, kRolesKey, where), where);
  definition->end_of_text = object.contains(kEndOfTextKey) ? token(kEndOfTextKey) : usual_end(*definition);
  if (object.contains(kBeginOfTextKey)) definition->begin_of_text = token(kBeginOfTextKey);
  if (object.contains(kBeginOfPairKey)) {
    definition->begin_of_pair = begin_of_pair_from_name(json_string(object, kBeginOfPairKey, where), where);
  }
}

}  // namespace

BpeDefinition bpe_from_names(const BpeNames& names, const std::string& where) {
  BpeDefinition definition;
  definition.special = names.special;
  definition.added = names.added;
  const IdOfName ids = resolve_tokens(names, where, &definition);
  for (const auto& [left, right] : names.merges) {
    definition.merges.push_back({resolve_name(ids, left, where, definition),
                                 resolve_name(ids, right, where, definition),
                                 resolve_name(ids, left + right, where, definition)});
  }
  definition.end_of_text = usual_end(definition);
  return definition;
}

std::vector<std::string> tokens_by_id(const nlohmann::json& vocabulary,
                                      const std::vector<std::pair<int32_t, std::string>>& others,
                                      const std::string& where) {
  HS_CHECK(vocabulary.is_object(), where, ": the vocabulary must be an object {token: id}, not ",
           brief_json(vocabulary));
  std::vector<std::pair<int32_t, std::string>> entries;
  for (const auto& [name, id] : vocabulary.items()) {
    entries.emplace_back(json_id(id, join_text(where, ": the id of ", brief_json(name))), name);
  }
  entries.insert(entries.end(), others.begin(), others.end());
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());

  std::vector<std::string> tokens;
  for (auto& [id, name] : entries) {
    const auto expected = static_cast<int32_t>(tokens.size());
    HS_CHECK(id >= expected, where, ": the id ", id, " stands for both ", brief_json(tokens.back()), " and ",
             brief_json(name));
    HS_CHECK(id == expected, where, ": no token has the id ", expected, ", but ", brief_json(name), " has ", id,
             "; the ids of ", entries.size(), " tokens must run from 0 to ", entries.size() - 1);
    tokens.push_back(std::move(name));
  }
  return tokens;
}

std::pair<std::string, std::string> parse_merge(std::string_view line, const std::string& what) {
  const size_t space = line.find(' ');
  HS_CHECK(space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
               line.find(' ', space + 1) == std::string_view::npos,
           what, " must be two tokens with one space between, not ",
           brief_json(std::string(line.substr(0, std::min<size_t>(line.size(), 80)))));
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

BpeNames names_from_gpt2_files(const nlohmann::json& vocabulary, std::string_view merges,
                               const std::string& vocabulary_name, const std::string& merges_name) {
  BpeNames names;
  names.tokens = tokens_by_id(vocabulary, {}, vocabulary_name);
  for (size_t number = 1; !merges.empty(); ++number) {
    const size_t end = std::min(merges.find('\n'), merges.size());
    std::string_view line = merges.substr(0, end);
    merges.remove_prefix(std::min(end + 1, merges.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    names.merges.push_back(parse_merge(line, join_text(merges_name, ":", number, ": a merge")));
  }
  return names;
}

void set_added(std::vector<AddedToken> added, BpeNames* names) {
  std::unordered_set<std::string> merged;
  for (const auto& [left, right] : names->merges) merged.insert({left, right, left + right});
  for (const AddedToken& token : added) {
    const std::string& name = names->tokens[static_cast<size_t>(token.id)];
    const std::optional<std::string> bytes = from_alphabet(name);
    const bool ordinary = bytes && (bytes->size() == 1 || merged.contains(name));
    const bool has_role = std::find(std::begin(kBpeRoles), std::end(kBpeRoles), name) != std::end(kBpeRoles);
    if (!ordinary || (token.special && has_role)) names->special.push_back(token.id);
  }
  names->added = std::move(added);
}

int32_t bpe_version(const BpeDefinition& definition) {
  nlohmann::json unusual;
  write_unusual(definition, &unusual);
  const bool first_rules = definition.split == SplitRule::kGpt2 || definition.split == SplitRule::kNone;
  return unusual.is_null() && first_rules ? 1 : 2;
}

void write_bpe(const BpeDefinition& definition, nlohmann::json* object) {
  nlohmann::json& tokens = (*object)["tokens"] = nlohmann::json::array();
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    const std::string& token = definition.tokens[id];
    tokens.push_back(is_special(definition.special, id) ? token : to_alphabet(token));
  }
  nlohmann::json& merges = (*object)["merges"] = nlohmann::json::array();
  for (const TokenMerge& merge : definition.merges) {
    merges.push_back(to_alphabet(definition.tokens[static_cast<size_t>(merge.left)]) + " " +
                     to_alphabet(definition.tokens[static_cast<size_t>(merge.right)]));
  }
  (*object)["special"] = definition.special;
  (*object)["split"] = split_name(definition.split);
  (*object)["add-prefix-space"] = definition.add_prefix_space;
  write_unusual(definition, object);
  write_added(definition.added, definition.tokens, {}, object);
}

BpeDefinition read_bpe(const nlohmann::json& object, const std::string& where) {
  std::vector<std::string> known = {
      "format",           "version",      "kind",         "tokens",  "merges",        "special",       "split",
      "add-prefix-space", kNormalFormKey, kWholeWordsKey, kRolesKey, kBeginOfTextKey, kBeginOfPairKey, kEndOfTextKey};
  known.insert(known.end(), std::begin(kAddedKeys), std::end(kAddedKeys));
  refuse_unknown_keys(object, known, where);
  BpeNames names;
  for (const nlohmann::json& value : json_list(object, "tokens", where)) {
    names.tokens.push_back(json_string(value, join_text(where, ": token ", names.tokens.size())));
  }
  for (const nlohmann::json& value : json_list(object, "merges", where)) {
    const std::string what = join_text(where, ": merge ", names.merges.size());
    names.merges.push_back(parse_merge(json_string(value, what), what));
  }
  for (const nlohmann::json& value : json_list(object, "special", where)) {
    const int32_t id = json_id(value, where + ": a special token's id");
    HS_CHECK(static_cast<size_t>(id) < names.tokens.size(), where, ": the special token's id ", id,
             " is not among the ", names.tokens.size(), " tokens");
    HS_CHECK(names.special.empty() || names.special.back() < id, where, ": the special tokens' ids must ascend, but ",
             id, " follows ", names.special.empty() ? -1 : names.special.back());
    names.special.push_back(id);
  }
  BpeDefinition definition = bpe_from_names(names, where);
  definition.split = split_from_name(json_string(object, "split", where), where);
  definition.add_prefix_space = json_bool(object, "add-prefix-space", where);
  read_unusual(object, where, &definition);
  definition.added = read_added(object, definition.tokens, where);
  return definition;
}

}  // namespace headshare
