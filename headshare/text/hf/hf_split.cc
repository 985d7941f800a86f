#include "headshare/text/hf/hf_split.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/text/hf/hf_parts.h"

namespace headshare {
namespace {

using nlohmann::json;

json byte_level(bool add_prefix_space, bool use_regex) {
  return {
      {"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

SplitRule rule_of_split(const json& part, const std::string& where) {
  const json& pattern = json_member(part, "pattern", where);
  const json& expression = optional_member(pattern, "Regex");
  const std::optional<SplitRule> rule =
      expression.is_string() ? rule_of_pattern(expression.get<std::string>()) : std::nullopt;
  HS_CHECK(rule.has_value(), where, ": it cuts text into words by ",
           expression.is_string() ? expression.get<std::string>() : pattern.dump(),
           "; headshare has the patterns of GPT-2, Llama 3, Qwen 2, Tekken and GPT-4o");
  const json& behavior = json_member(part, "behavior", where);
  refuse(behavior != "Isolated", behavior, "behavior", where);
  refuse(optional_bool(part, "invert", false, where), true, "invert", where);
  return *rule;
}

HfSplit read_sequence(const json& part, const std::string& where) {
  const auto& parts = json_list(part, "pretokenizers", where);
  const auto has_type = [&parts](size_t i, const char* type) { return optional_member(parts[i], "type") == type; };
  const bool pair = parts.size() == 2 && has_type(1, "ByteLevel");
  const bool digits = pair && has_type(0, "Digits");
  refuse(!digits && !(pair && has_type(0, "Split")), part, "a sequence other than Split or Digits, and ByteLevel,",
         where);
  refuse(optional_bool(parts[1], "add_prefix_space", true, where), true, "add_prefix_space behind another part", where);
  const bool use_regex = optional_bool(parts[1], "use_regex", true, where);
  refuse(use_regex != digits, use_regex, "use_regex", where);
  if (!digits) return {.rule = rule_of_split(parts[0], where)};
  refuse(!optional_bool(parts[0], "individual_digits", false, where), false, "individual_digits", where);
  return {.rule = SplitRule::kDigits};
}

}  // namespace

HfSplit read_hf_split(const json& part, const std::string& where) {
  const json& type = json_member(part, "type", where);
  if (type == "Sequence") return read_sequence(part, where);
  refuse(type != "ByteLevel", type, "type", where);
  const bool use_regex = optional_bool(part, "use_regex", true, where);
  return {.rule = use_regex ? SplitRule::kGpt2 : SplitRule::kNone,
          .add_prefix_space = optional_bool(part, "add_prefix_space", true, where)};
}

json hf_split_json(const HfSplit& split) {
  const json alone = byte_level(split.add_prefix_space, split.rule == SplitRule::kGpt2);
  if (split.rule == SplitRule::kGpt2 || split.rule == SplitRule::kNone) return alone;
  json first = {{"type", "Digits"}, {"individual_digits", true}};
  if (split.rule != SplitRule::kDigits) {
    first = {{"type", "Split"},
             {"pattern", {{"Regex", split_pattern(split.rule)}}},
             {"behavior", "Isolated"},
             {"invert", false}};
  }
  return {{"type", "Sequence"},
          {"pretokenizers", {first, byte_level(split.add_prefix_space, split.rule == SplitRule::kDigits)}}};
}

}  // namespace headshare
