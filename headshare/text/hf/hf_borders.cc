#include "headshare/text/hf/hf_borders.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/text/hf/hf_parts.h"

namespace headshare {
namespace {

using nlohmann::json;

TemplateOutline begin_outline(const std::string& text, BeginOfPair form) {
  const bool again = form == BeginOfPair::kAgain || form == BeginOfPair::kAgainOneSegment;
  const bool one_segment = form == BeginOfPair::kAgainOneSegment || form == BeginOfPair::kOnceOneSegment;
  const std::string segment = one_segment ? ":0" : ":1";
  const std::string single = text + ":0 A:0";
  return {single, single + (again ? " " + text + segment : "") + " B" + segment};
}

// Returns the borders of the templates "X A" and "X A X B" or "X A B"; nothing for others.
std::optional<BpeBorders> begin_of_template(const TemplateOutline& form) {
  constexpr std::string_view kSingle = ":0 A:0";
  const std::string& single = form.first;
  if (!single.ends_with(kSingle) || single.size() == kSingle.size()) return std::nullopt;
  const std::string text = single.substr(0, single.size() - kSingle.size());
  const bool is_text = text == "A" || text == "B";  // a text twice, not a token before one
  if (is_text || text.find(' ') != std::string::npos) return std::nullopt;
  for (const auto& [of_pair, name] : begin_of_pair_names()) {
    if (form != begin_outline(text, of_pair)) continue;
    return BpeBorders{.form = BpeBorders::Form::kBegin, .begin = text, .begin_of_pair = of_pair};
  }
  return std::nullopt;
}

BpeBorders borders_of_template(const json& part, const std::string& where) {
  const TemplateOutline form = template_outline(part, where);
  if (adds_nothing(form)) return {.form = BpeBorders::Form::kNothing};
  if (form == kRobertaTemplate) return {.form = BpeBorders::Form::kRoberta};
  if (form == kBertTemplate || form == kModernBertTemplate) return {.form = BpeBorders::Form::kBert};
  const std::optional<BpeBorders> begin = begin_of_template(form);
  refuse(!begin, form.first + " and " + form.second,
         "a template other than <s> A </s> </s> B </s>, [CLS] A [SEP] B [SEP] and a token before each text,", where);
  return *begin;
}

BpeBorders borders_of_part(const json& part, const std::string& where) {
  const json& type = json_member(part, "type", where);
  if (type == "TemplateProcessing") return borders_of_template(part, where);
  refuse(type != "ByteLevel" && type != "RobertaProcessing", type, "type", where);
  if (type == "ByteLevel") return {};
  for (const auto& [key, text] : {std::pair<const char*, const char*>{"cls", "<s>"}, {"sep", "</s>"}}) {
    const json& token = json_member(part, key, where);
    refuse(!token.is_array() || token.empty() || token[0] != text, token, key, where);
  }
  return {.form = BpeBorders::Form::kRoberta};
}

bool adds_tokens(const BpeBorders& borders) {
  return borders.form != BpeBorders::Form::kNone && borders.form != BpeBorders::Form::kNothing;
}

BpeBorders borders_of_sequence(const json& part, const std::string& where) {
  BpeBorders borders;
  for (const json& one : json_list(part, "processors", where)) {
    const BpeBorders its = borders_of_part(one, where);
    if (its.form == BpeBorders::Form::kNone) continue;
    if (its.form == BpeBorders::Form::kNothing && adds_tokens(borders)) continue;
    refuse(adds_tokens(borders), one, "a second part that adds tokens,", where);
    borders = its;
  }
  return borders;
}

}  // namespace

BpeBorders read_bpe_borders(const json& object, const TokensBeside& beside, const std::string& where) {
  const json& part = optional_member(object, "post_processor");
  const std::string name = where + ": post_processor";
  BpeBorders borders;
  if (!part.is_null()) {
    const bool many = json_member(part, "type", name) == "Sequence";
    borders = many ? borders_of_sequence(part, name) : borders_of_part(part, name);
  }
  if (!beside.adds_begin) return borders;
  if (!*beside.adds_begin && borders.form == BpeBorders::Form::kBegin) {
    return {.form = BpeBorders::Form::kNothing};
  }
  const auto named = beside.names.find("bos_token");
  const bool adds = *beside.adds_begin && !adds_tokens(borders) && named != beside.names.end();
  return adds ? BpeBorders{.form = BpeBorders::Form::kBegin, .begin = named->second} : borders;
}

std::optional<int32_t> end_of_text_beside(const BpeBorders& borders, const TokensBeside& beside,
                                          const std::vector<std::string>& tokens) {
  constexpr std::pair<const char*, const char*> kPartners[] = {
      {"<s>", "</s>"}, {"<bos>", "<eos>"}, {"<|begin_of_text|>", "<|end_of_text|>"}};
  std::vector<std::string> texts;
  if (const auto named = beside.names.find("eos_token"); named != beside.names.end()) texts.push_back(named->second);
  for (const auto& [begin, end] : kPartners) {
    if (borders.begin == begin) texts.emplace_back(end);
  }
  for (const std::string& text : texts) {
    const auto found = std::find(tokens.begin(), tokens.end(), text);
    if (found != tokens.end()) return static_cast<int32_t>(found - tokens.begin());
  }
  return std::nullopt;
}

int32_t id_of_border(const std::vector<std::string>& tokens, const std::string& text, const std::string& where) {
  const auto found = std::find(tokens.begin(), tokens.end(), text);
  HS_CHECK(found != tokens.end(), where, ": the token ", brief_text(text),
           " stands before every text, and is not among the ", tokens.size(), " tokens");
  return static_cast<int32_t>(found - tokens.begin());
}

json begin_template(const std::string& text, int32_t id, BeginOfPair form) {
  return template_json(begin_outline(text, form), {{text, id}});
}

}  // namespace headshare
