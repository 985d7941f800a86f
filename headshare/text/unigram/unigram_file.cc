#include "headshare/text/unigram/unigram_file.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/field.h"
#include "headshare/base/strings/base64.h"
#include "headshare/text/added/added_file.h"

namespace headshare {
namespace {

using nlohmann::json;

constexpr size_t kMostSteps = 16;
constexpr size_t kLongestReplacement = 64;  // bytes

const EnumNames<NormalStepKind>& step_names() {
  static const EnumNames<NormalStepKind> names = {
      {NormalStepKind::kReplace, "replace"},     {NormalStepKind::kCollapseSpaces, "collapse-spaces"},
      {NormalStepKind::kDecompose, "decompose"}, {NormalStepKind::kStripMarks, "strip-marks"},
      {NormalStepKind::kLowercase, "lowercase"}, {NormalStepKind::kCharsmap, "charsmap"}};
  return names;
}

json stored_step(const NormalStep& step) {
  json object = {{"step", enum_name(step_names(), step.kind)}};
  if (step.kind == NormalStepKind::kReplace) object["from"] = step.from;
  if (step.kind == NormalStepKind::kReplace || step.kind == NormalStepKind::kCollapseSpaces) object["to"] = step.to;
  if (step.kind == NormalStepKind::kCharsmap) object["map"] = to_base64(step.map->bytes());
  return object;
}

NormalStep read_step(const json& object, const std::string& where) {
  const std::string& name = json_string(object, "step", where);
  for (const auto& [kind, its_name] : step_names()) {
    if (its_name != name) continue;
    switch (kind) {
      case NormalStepKind::kReplace:
        refuse_unknown_keys(object, {"step", "from", "to"}, where);
        HS_CHECK(!json_string(object, "from", where).empty(), where, ": a step that replaces an empty text");
        return replacing_step(json_string(object, "from", where), json_string(object, "to", where), where);
      case NormalStepKind::kCollapseSpaces:
        refuse_unknown_keys(object, {"step", "to"}, where);
        return replacing_step("", json_string(object, "to", where), where);
      case NormalStepKind::kCharsmap:
        refuse_unknown_keys(object, {"step", "map"}, where);
        return {.kind = kind,
                .map = std::make_shared<Charsmap>(from_base64(json_string(object, "map", where), where), where)};
      default:
        refuse_unknown_keys(object, {"step"}, where);
        return {.kind = kind};
    }
  }
  throw Error(join_text(where, ": unknown step ", brief_text(name)));
}

std::vector<int32_t> read_ids(const json& object, const char* key, const std::string& where) {
  std::vector<int32_t> ids;
  for (const json& value : json_list(object, key, where)) ids.push_back(json_id(value, join_text(where, ": ", key)));
  return ids;
}

}  // namespace

NormalStep replacing_step(const std::string& from, const std::string& to, const std::string& where) {
  HS_CHECK(from.size() <= kLongestReplacement && to.size() <= kLongestReplacement, where, ": a step that replaces ",
           from.size(), " bytes by ", to.size(), "; at most ", kLongestReplacement, " are read");
  return {.kind = from.empty() ? NormalStepKind::kCollapseSpaces : NormalStepKind::kReplace, .from = from, .to = to};
}

void check_steps(size_t count, const std::string& where) {
  HS_CHECK(count <= kMostSteps, where, ": ", count, " steps of normalisation; at most ", kMostSteps, " are read");
}

void write_unigram(const UnigramDefinition& d, json* object) {
  (*object)["tokens"] = d.tokens;
  (*object)["scores"] = d.scores;
  (*object)["special"] = d.special;
  write_added(d.added, d.tokens, {"verbatim", "strips-left"}, object);
  (*object)["unknown"] = d.unknown;
  (*object)["byte-fallback"] = d.byte_fallback;
  (*object)["splits-at-white"] = d.splits_at_white;
  (*object)["prefix"] = d.prefix;
  (*object)["pair-separators"] = d.pair_separators;
  (*object)["steps"] = json::array();
  for (const NormalStep& step : d.steps) (*object)["steps"].push_back(stored_step(step));
  if (d.language) (*object)["language"] = {{"id", d.language->id}, {"leads", d.language->leads}};
}

UnigramDefinition read_unigram(const json& object, const std::string& where) {
  std::vector<std::string> known = {"format",          "version", "kind",          "tokens",          "scores",
                                    "special",         "unknown", "byte-fallback", "splits-at-white", "prefix",
                                    "pair-separators", "steps",   "language"};
  known.insert(known.end(), std::begin(kAddedKeys), std::end(kAddedKeys));
  refuse_unknown_keys(object, known, where);
  UnigramDefinition d;
  for (const json& value : json_list(object, "tokens", where)) {
    d.tokens.push_back(json_string(value, join_text(where, ": token ", d.tokens.size())));
  }
  for (const json& value : json_list(object, "scores", where)) {
    HS_CHECK(value.is_number(), where, ": score ", d.scores.size(), " is ", brief_json(value), ", not a number");
    d.scores.push_back(value.get<double>());
  }
  d.special = read_ids(object, "special", where);
  d.added = read_added(object, d.tokens, where);
  d.unknown = json_id(object, "unknown", where);
  d.byte_fallback = json_bool(object, "byte-fallback", where);
  d.splits_at_white = json_bool(object, "splits-at-white", where);
  d.prefix = json_bool(object, "prefix", where);
  d.pair_separators = json_id(object, "pair-separators", where);
  const auto& steps = json_list(object, "steps", where);
  check_steps(steps.size(), where);
  for (const json& step : steps) d.steps.push_back(read_step(step, where + ": steps"));
  if (object.contains("language")) {
    const json& language = object["language"];
    const std::string name = where + ": language";
    d.language = {.id = json_id(language, "id", name), .leads = json_bool(language, "leads", name)};
    refuse_unknown_keys(language, {"id", "leads"}, name);
  }
  return d;
}

}  // namespace headshare
