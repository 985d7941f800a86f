#include "headshare/text/bpe/character_bpe_file.h"

#include <unordered_map>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/field.h"
#include "headshare/text/added/added_file.h"

namespace headshare {
namespace {

using nlohmann::json;

const EnumNames<SpaceBefore>& space_names() {
  static const EnumNames<SpaceBefore> names = {{SpaceBefore::kNever, "never"},
                                               {SpaceBefore::kFirst, "first"},
                                               {SpaceBefore::kEachPart, "each-part"},
                                               {SpaceBefore::kEvenSpace, "even-space"}};
  return names;
}

constexpr const char* kBeginOfPairName = "begin-of-pair";

struct RoleKey {
  const char* key;
  std::optional<int32_t> CharacterBpeDefinition::*id;
};
constexpr RoleKey kRoleKeys[] = {{"unknown", &CharacterBpeDefinition::unknown},
                                 {"begin-of-text", &CharacterBpeDefinition::begin_of_text},
                                 {"end-of-text", &CharacterBpeDefinition::end_of_text},
                                 {"padding", &CharacterBpeDefinition::padding}};

SpaceBefore read_space(const json& object, const std::string& where) {
  const std::string& name = json_string(object, "space-before", where);
  for (const auto& [value, its_name] : space_names()) {
    if (name == its_name) return value;
  }
  throw Error(join_text(where, ": space-before must be never, first, each-part or even-space, not ", brief_text(name)));
}

}  // namespace

std::vector<TokenMerge> merges_of_texts(const std::vector<std::pair<std::string, std::string>>& pairs,
                                        const std::vector<std::string>& tokens, const std::string& where) {
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < tokens.size(); ++id) ids.emplace(tokens[id], static_cast<int32_t>(id));
  std::vector<TokenMerge> merges;
  const auto id_of = [&](const std::string& text) {
    const auto found = ids.find(text);
    HS_CHECK(found != ids.end(), where, ": merge ", merges.size(), " names ", brief_text(text),
             ", which is not among the ", tokens.size(), " tokens");
    return found->second;
  };
  for (const auto& [left, right] : pairs) merges.push_back({id_of(left), id_of(right), id_of(left + right)});
  return merges;
}

void write_character_bpe(const CharacterBpeDefinition& d, json* object) {
  (*object)["tokens"] = d.tokens;
  json& merges = (*object)["merges"] = json::array();
  for (const TokenMerge& merge : d.merges) merges.push_back({merge.left, merge.right});
  (*object)["special"] = d.special;
  (*object)["space-before"] = enum_name(space_names(), d.space_before);
  (*object)["replaces-first"] = d.replaces_first;
  (*object)["strips-space"] = d.strips_space;
  for (const RoleKey& role : kRoleKeys) {
    if (d.*role.id) (*object)[role.key] = *(d.*role.id);
  }
  if (d.begin_of_pair != BeginOfPair::kAgain) {
    (*object)[kBeginOfPairName] = enum_name(begin_of_pair_names(), d.begin_of_pair);
  }
  write_added(d.added, d.tokens, {}, object);
}

CharacterBpeDefinition read_character_bpe(const json& object, const std::string& where) {
  std::vector<std::string> known = {"format",  "version",      "kind",           "tokens",       "merges",
                                    "special", "space-before", "replaces-first", "strips-space", kBeginOfPairName};
  for (const RoleKey& role : kRoleKeys) known.emplace_back(role.key);
  known.insert(known.end(), std::begin(kAddedKeys), std::end(kAddedKeys));
  refuse_unknown_keys(object, known, where);
  CharacterBpeDefinition d;
  for (const json& value : json_list(object, "tokens", where)) {
    d.tokens.push_back(json_string(value, join_text(where, ": token ", d.tokens.size())));
  }
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const json& value : json_list(object, "merges", where)) {
    const std::string what = join_text(where, ": merge ", pairs.size());
    HS_CHECK(value.is_array() && value.size() == 2, what, " is ", brief_json(value), ", not two ids");
    const auto text_of = [&](const json& number) {
      const auto id = static_cast<size_t>(json_id(number, what));
      HS_CHECK(id < d.tokens.size(), what, " names the id ", id, ", which is not among the ", d.tokens.size(),
               " tokens");
      return d.tokens[id];
    };
    pairs.emplace_back(text_of(value[0]), text_of(value[1]));
  }
  d.merges = merges_of_texts(pairs, d.tokens, where);
  for (const json& value : json_list(object, "special", where)) {
    d.special.push_back(json_id(value, where + ": a special token's id"));
  }
  d.space_before = read_space(object, where);
  d.replaces_first = json_bool(object, "replaces-first", where);
  d.strips_space = json_bool(object, "strips-space", where);
  for (const RoleKey& role : kRoleKeys) {
    if (object.contains(role.key)) d.*role.id = json_id(object, role.key, where);
  }
  if (object.contains(kBeginOfPairName)) {
    d.begin_of_pair = begin_of_pair_from_name(json_string(object, kBeginOfPairName, where), where);
  }
  d.added = read_added(object, d.tokens, where);
  return d;
}

}  // namespace headshare
