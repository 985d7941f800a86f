#include "headshare/compare/variants.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/base/strings/visible.h"
#include "headshare/compare/embeddings.h"

namespace headshare {
namespace {

constexpr size_t kLongestName = 40;

// Lists all options that may differ between variants: those that a sweep may try, the scheme, and those of one family's
// models.
Fields variant_fields(ComparisonOptions& options) {
  Fields list = swept_fields(options);
  list.push_back(scheme_field(&options.model.attention.scheme, ""));
  for (const TaskFamily* family : task_families()) append(&list, family->model_fields(options));
  return list;
}

bool has_scheme(const std::vector<Variant>& variants, const std::string& scheme) {
  return std::any_of(variants.begin(), variants.end(), [&](const Variant& one) { return one.scheme == scheme; });
}

// Throws Error for a name that is not plain or is taken: directories of cells bear these names, and the figures'
// colours are those of schemes.
void check_name(const std::string& name, const std::vector<Variant>& others) {
  const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const auto allowed = [&](char c) { return plain(c) || c == '-' || c == '.' || c == '+'; };
  HS_CHECK(
      !name.empty() && name.size() <= kLongestName && plain(name[0]) && std::all_of(name.begin(), name.end(), allowed),
      "--variants: ", brief_text(name), " is no name for a variant; use 1 to ", kLongestName,
      " letters, digits, '_', '-', '.' or '+', a letter or digit first");
  const std::vector<std::string> schemes = scheme_names();
  HS_CHECK(std::find(schemes.begin(), schemes.end(), name) == schemes.end(), "--variants: ", name,
           " is the name of a scheme; give the variant another");
  HS_CHECK(find_variant(others, name) == nullptr, "--variants names ", name, " twice");
}

void check_not_swept(const ComparisonOptions& options, const Variant& variant) {
  const std::vector<SweepSetting> settings = sweep_settings(options);
  for (const auto& [name, value] : settings.front().values) {
    HS_CHECK(!variant.options.contains(name), "--variants ", variant.name, " sets ", name,
             ", which --sweep varies; leave it out of one of them");
  }
}

// Adds one option of an item, "heads=8", to the last of `variants`.
void add_option(const ComparisonOptions& options, const std::string& item, const std::string& setting,
                std::vector<Variant>* variants) {
  const size_t equals = setting.find('=');
  HS_CHECK(!variants->empty() && equals != std::string::npos, "--variants ", item,
           ": a name, an option and its value are wanted, as in --variants wide:scheme=mqa,heads=8");
  Variant& variant = variants->back();
  ComparisonOptions probe = options;
  Fields known = variant_fields(probe);
  const std::string name = setting.substr(0, equals);
  set_field(known, name, setting.substr(equals + 1), "--variants " + variant.name);
  const Field& field = *find_field(known, name);
  HS_CHECK(!variant.options.contains(field.name), "--variants ", variant.name, " sets ", field.name, " twice");
  variant.options[field.name] = field.value();
  if (field.name == "scheme") variant.scheme = field.value();
}

// Reads --variants: in "wide:heads=8", "head-width=16", "narrow:heads=2" items without a name belong to the variant
// before them.
std::vector<Variant> named_variants(const ComparisonOptions& options) {
  std::vector<Variant> variants;
  for (const std::string& item : options.variants) {
    std::string setting = item;
    const size_t colon = item.substr(0, item.find('=')).find(':');
    if (colon != std::string::npos) {
      const std::string name = item.substr(0, colon);
      check_name(name, variants);
      variants.push_back({.name = name, .scheme = options.model.attention.scheme});
      setting = item.substr(colon + 1);
      if (setting.empty()) continue;  // "plain:" has the other options as they are
    }
    add_option(options, item, setting, &variants);
  }
  for (const Variant& one : variants) check_not_swept(options, one);
  return variants;
}

// Lists the options in which two variants may differ, by the user's choice or by their embeddings.
Fields varied_fields(ComparisonOptions& options) {
  Fields list = variant_fields(options);
  append(&list, embedding_fields(options));
  return list;
}

nlohmann::json varied(ComparisonOptions options) { return to_json(varied_fields(options)); }

// `option` is what names it: "--reference mhaa".
void check_compared(const std::string& option, const std::string& name, const std::vector<Variant>& among) {
  std::vector<std::string> names;
  for (const Variant& one : among) names.push_back(one.name);
  HS_CHECK(find_variant(among, name) != nullptr, option, did_you_mean(name, names),
           " is not among what is compared: ", list_text(names));
}

std::string chosen_reference(const std::string& option, const std::string& name, const std::string& scheme,
                             const std::vector<Variant>& among) {
  if (!name.empty()) {
    check_compared(join_text("--", option, " ", shortened(name, 60)), name, among);
    return name;
  }
  if (find_variant(among, scheme) != nullptr) return scheme;
  const auto found = std::find_if(among.begin(), among.end(), [&](const Variant& one) { return one.scheme == scheme; });
  return found == among.end() ? scheme : found->name;
}

}  // namespace

const Variant* find_variant(const std::vector<Variant>& among, const std::string& name) {
  const auto found = std::find_if(among.begin(), among.end(), [&](const Variant& one) { return one.name == name; });
  return found == among.end() ? nullptr : &*found;
}

std::vector<Variant> chosen_variants(const ComparisonOptions& options) {
  return with_embeddings(options, attention_variants(options));
}

std::vector<Variant> attention_variants(const ComparisonOptions& options) {
  const std::vector<Variant> named = named_variants(options);
  std::vector<std::string> schemes = options.schemes;
  if (options.peop && !has_scheme(named, "sha")) schemes.emplace_back("sha");
  std::vector<Variant> chosen;
  if (!schemes.empty() || named.empty()) {
    for (const std::string& scheme : chosen_schemes(schemes)) chosen.push_back(scheme_variant(scheme));
  }
  chosen.insert(chosen.end(), named.begin(), named.end());
  return chosen;
}

void check_scheme_steps(const ComparisonOptions& options) {
  const std::vector<Variant> variants = chosen_variants(options);
  HS_CHECK(options.scheme_steps.empty() || options.match == Match::kTime,
           "--scheme-steps is what --match time came to; give --match time with it, or --steps for all");
  for (const std::string& item : options.scheme_steps) {
    const size_t equals = item.find('=');
    HS_CHECK(equals != std::string::npos, "--scheme-steps ", item, ": scheme=steps is wanted, as in mha=400");
    const std::string name = item.substr(0, equals);
    const bool known = find_variant(variants, name) != nullptr;
    if (!known) scheme_record(name);  // throws unless it is a scheme, which may be one that is not compared
  }
  if (options.match != Match::kTime) return;
  const std::vector<SweepSetting> settings = sweep_settings(options);
  for (const auto& [name, value] : settings.front().values) {
    HS_CHECK(name != "steps", "--match time decides every scheme's steps; leave steps out of --sweep");
  }
  for (const Variant& one : variants) {
    HS_CHECK(!one.options.contains("steps"),
             "--match time decides every variant's steps; leave steps out of --variants ", one.name);
  }
}

void check_asked_scheme_steps(const ComparisonOptions& options) {
  const std::vector<Variant> variants = chosen_variants(options);
  std::set<std::string> seen;
  for (const std::string& item : options.scheme_steps) {
    const std::string name = item.substr(0, item.find('='));
    check_compared(join_text("--scheme-steps ", shortened(item, 60), ": ", shortened(name, 60)), name, variants);
    HS_CHECK(seen.insert(name).second, "--scheme-steps names ", name, " twice");
  }
}

ComparisonOptions with_variant(ComparisonOptions options, const Variant& variant) {
  Fields known = varied_fields(options);
  for (const auto& [name, value] : variant.options.items()) {
    set_field(known, name, field_text(value, name), "--variants " + variant.name);
  }
  if (!options.embeddings.empty()) fit_to_tokenizer(&options);
  options.embeddings.clear();  // the variant is one of them
  return options;
}

std::string why_not(const ComparisonOptions& options, const Variant& variant) {
  const ComparisonOptions cell = with_variant(options, variant);
  try {
    const ModelOptions model = task_family(cell.task).likely_model(cell);
    const DistillationOptions& distillation = cell.own<TextOptions>().distillation;
    check_teacher(distillation, model);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<Variant> trainable_variants(const ComparisonOptions& options) {
  std::vector<Variant> variants = chosen_variants(options);
  std::erase_if(variants,
                [&](const Variant& one) { return !is_trained(one.scheme) || !why_not(options, one).empty(); });
  return variants;
}

std::string gate_name(AttentionOptions attention) { return to_json(fields(attention)).at("output-gate"); }

VariantsByGate planned_gates(const ComparisonOptions& options) {
  VariantsByGate variants;
  for (const Variant& variant : trainable_variants(options)) {
    variants[gate_name(with_variant(options, variant).model.attention)].push_back(variant.name);
  }
  return variants;
}

std::string gate_sentence(const VariantsByGate& variants) {
  const bool none_alone = variants.size() == 1 && variants.contains("none");
  if (variants.empty() || none_alone) return "";
  if (variants.size() == 1) return "Every model has an output gate (" + variants.begin()->first + ").";
  std::string text;
  for (const auto& [gate, names] : variants) text += (text.empty() ? "" : "; ") + gate + " in " + list_text(names);
  return "Output gates differ, and may move quality more than a scheme does: " + text + ".";
}

const Variant* trained_twin(const ComparisonOptions& options, const Variant& variant,
                            const std::vector<Variant>& among) {
  ComparisonOptions wanted = with_variant(options, variant);
  wanted.model.attention.scheme = scheme_record(variant.scheme).weights_of;
  const nlohmann::json same = varied(wanted);
  const auto found = std::find_if(among.begin(), among.end(),
                                  [&](const Variant& one) { return varied(with_variant(options, one)) == same; });
  return found == among.end() ? nullptr : &*found;
}

void check_references(const ComparisonOptions& options, const std::vector<Variant>& among) {
  chosen_references(options, among);
}

References chosen_references(const ComparisonOptions& options, const std::vector<Variant>& among) {
  return {.quality = chosen_reference("reference", options.reference, "mha", among),
          .peop = chosen_reference("peop-reference", options.peop_reference, "sha", among)};
}

}  // namespace headshare
