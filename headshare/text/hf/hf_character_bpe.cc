// Implements the part of hf_tokenizer.h that is about BPE over characters with byte fallback.
#include <algorithm>
#include <set>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/strings/valid_utf8.h"
#include "headshare/text/bpe/bpe_file.h"
#include "headshare/text/bpe/character_bpe_file.h"
#include "headshare/text/hf/hf_borders.h"
#include "headshare/text/hf/hf_parts.h"
#include "headshare/text/hf/hf_tokenizer.h"
#include "headshare/text/unicode/metaspace.h"

namespace headshare {
namespace {

using nlohmann::json;

json replacing(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}
const json& replace_spaces() {
  static const json part = replacing(" ", kMetaspace);
  return part;
}
json prepend_and_replace() {
  return {{"type", "Sequence"}, {"normalizers", {{{"type", "Prepend"}, {"prepend", kMetaspace}}, replace_spaces()}}};
}
// Gemma has this behind replaced spaces, where it finds nothing to cut at.
json idle_split() {
  return {{"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "MergedWithPrevious"}, {"invert", false}};
}
json metaspace_part(const char* scheme) {
  return {{"type", "Metaspace"}, {"replacement", kMetaspace}, {"prepend_scheme", scheme}, {"split", false}};
}
json decoder_part(bool strips) {
  json parts = {replacing(kMetaspace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (strips) parts.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", parts}};
}

struct SchemeName {
  SpaceBefore space;
  const char* name;
};
constexpr SchemeName kSchemes[] = {
    {SpaceBefore::kNever, "never"}, {SpaceBefore::kFirst, "first"}, {SpaceBefore::kEachPart, "always"}};

// Reads the normalizer's way of writing U+2581 for spaces; tells whether it has one.
bool read_replacement(const json& object, const std::string& where, CharacterBpeDefinition* d) {
  const json& part = optional_member(object, "normalizer");
  d->replaces_first = !part.is_null();
  if (part.is_null()) return false;
  const json alone = {{"type", "Sequence"}, {"normalizers", {replace_spaces()}}};
  const bool prepends = part == prepend_and_replace();
  refuse(!prepends && part != replace_spaces() && part != alone, part, "normalizer", where);
  d->space_before = prepends ? SpaceBefore::kEvenSpace : SpaceBefore::kNever;
  return true;
}

SpaceBefore scheme_of(const json& part, const std::string& where) {
  const json& scheme = optional_member(part, "prepend_scheme");
  if (scheme.is_null()) {
    return optional_bool(part, "add_prefix_space", true, where) ? SpaceBefore::kEachPart : SpaceBefore::kNever;
  }
  for (const SchemeName& one : kSchemes) {
    if (scheme == one.name) return one.space;
  }
  refuse(true, scheme, "prepend_scheme", where);
  return SpaceBefore::kNever;
}

void read_spaces(const json& object, const std::string& where, CharacterBpeDefinition* d) {
  const bool replaced = read_replacement(object, where, d);
  const json& part = optional_member(object, "pre_tokenizer");
  if (replaced) return refuse(!part.is_null() && part != idle_split(), part, "pre_tokenizer", where);
  const std::string name = where + ": pre_tokenizer";
  refuse(part.is_null(), part, "pre_tokenizer without a normalizer", where);
  const json& type = json_member(part, "type", name);
  refuse(type != "Metaspace", type, "type", name);
  const json& replacement = json_member(part, "replacement", name);
  refuse(replacement != kMetaspace, replacement, "replacement", name);
  refuse(optional_bool(part, "split", true, name), true, "split", name);
  d->space_before = scheme_of(part, name);
}

void read_decoder(const json& object, const std::string& where, CharacterBpeDefinition* d) {
  const json& part = optional_member(object, "decoder");
  d->strips_space = part == decoder_part(true);
  refuse(!d->strips_space && part != decoder_part(false), part, "decoder", where);
}

void check_character_model(const json& model, const std::string& where) {
  const json& dropout = optional_member(model, "dropout");
  refuse(!dropout.is_null() && dropout != 0.0, dropout, "dropout", where);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json& affix = optional_member(model, key);
    refuse(!affix.is_null() && affix != "", affix, key, where);
  }
  refuse(optional_bool(model, "ignore_merges", false, where), true, "ignore_merges beside byte_fallback", where);
}

bool is_one_character(const std::string& text) {
  size_t end = 0;
  return !text.empty() && next_code_point(text, &end) >= 0 && end == text.size();
}

// Added tokens that characters or merges make stay ordinary tokens as well; those with roles do not.
void find_special(CharacterBpeDefinition* d) {
  std::set<int32_t> merged;
  for (const TokenMerge& merge : d->merges) merged.insert({merge.left, merge.right, merge.result});
  std::set<int32_t> special;
  for (const AddedToken& token : d->added) {
    if (!merged.contains(token.id) && !is_one_character(token.text)) special.insert(token.id);
    if (token.special && token.text == "<pad>") d->padding = token.id;
  }
  for (const std::optional<int32_t>& role : {d->unknown, d->begin_of_text, d->end_of_text, d->padding}) {
    if (role) special.insert(*role);
  }
  d->special.assign(special.begin(), special.end());
}

}  // namespace

CharacterBpeDefinition character_bpe_from_hf_json(const json& object, const std::string& where,
                                                  const TokensBeside& beside) {
  note_lengths(object, where);
  const json& model = json_member(object, "model", where);
  const std::string name = where + ": model";
  check_character_model(model, name);
  CharacterBpeDefinition d;
  read_spaces(object, where, &d);
  read_decoder(object, where, &d);
  const BpeBorders borders = read_bpe_borders(object, beside, where);
  const bool begins = borders.form == BpeBorders::Form::kBegin;
  const bool supported =
      begins || borders.form == BpeBorders::Form::kNone || borders.form == BpeBorders::Form::kNothing;
  refuse(!supported, optional_member(object, "post_processor"), "post_processor", where);
  const json& vocabulary = json_member(model, "vocab", name);
  d.added = added_tokens(object, beside, ids_in_vocabulary(vocabulary, name), where);
  d.tokens = tokens_by_id(vocabulary, ids_and_texts(d.added), name);
  d.merges = merges_of_texts(hf_merges(model, name), d.tokens, name);
  if (const json& unknown = optional_member(model, "unk_token"); !unknown.is_null()) {
    d.unknown = id_of_border(d.tokens, json_string(unknown, name + ": unk_token"), name);
  }
  d.begin_of_pair = borders.begin_of_pair;
  if (begins) d.begin_of_text = id_of_border(d.tokens, borders.begin, where);
  d.end_of_text = end_of_text_beside(borders, beside, d.tokens);
  find_special(&d);
  return d;
}

json hf_json_from_character_bpe(const CharacterBpeDefinition& d) {
  json vocabulary = json::object();
  for (size_t id = 0; id < d.tokens.size(); ++id) vocabulary[d.tokens[id]] = id;
  json merges = json::array();
  for (const TokenMerge& merge : d.merges) {
    merges.push_back({d.tokens[static_cast<size_t>(merge.left)], d.tokens[static_cast<size_t>(merge.right)]});
  }
  const auto text_of = [&d](const std::optional<int32_t>& id) {
    return id ? json(d.tokens[static_cast<size_t>(*id)]) : json();
  };
  json normalizer, pre_tokenizer;
  if (d.replaces_first) {
    normalizer = d.space_before == SpaceBefore::kEvenSpace ? prepend_and_replace() : replace_spaces();
  } else {
    for (const SchemeName& one : kSchemes) {
      if (one.space == d.space_before) pre_tokenizer = metaspace_part(one.name);
    }
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added_tokens_json(d.added, d.special, d.tokens)},
          {"normalizer", normalizer},
          {"pre_tokenizer", pre_tokenizer},
          {"post_processor",
           d.begin_of_text ? begin_template(text_of(d.begin_of_text), *d.begin_of_text, d.begin_of_pair) : json()},
          {"decoder", decoder_part(d.strips_space)},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", text_of(d.unknown)},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"ignore_merges", false},
            {"vocab", vocabulary},
            {"merges", merges}}}};
}

}  // namespace headshare
