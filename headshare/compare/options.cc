#include "headshare/compare/options.h"

#include <algorithm>

#include "headshare/base/error.h"

namespace headshare {
namespace {

const EnumNames<Match>& match_names() {
  static const EnumNames<Match> names = {
      {Match::kSteps, "steps"}, {Match::kTime, "time"}, {Match::kParameters, "parameters"}};
  return names;
}

Fields own_fields(ComparisonOptions& o) {
  return {
      task_field(o),
      field("preset", &o.preset,
            "sizes and steps to start from: with all schemes, quick takes minutes, small hours, base days on 2 cores",
            preset_names()),
      field("schemes", &o.schemes, "attention schemes to compare, or all; with --variants none unless named"),
      field("variants", &o.variants,
            "sets of options to compare besides, each under a name: wide:scheme=mqa,heads=8,rms:norm=rms; any option "
            "of model or training, several times"),
      field("embeddings", &o.embeddings,
            "token embeddings of encoders, each with every scheme and variant: wordpiece (a table), "
            "hash-md-emb|pool|add|proj, hash-lsh-emb|pool|add|proj, trigram, characters, or all; empty: what "
            "--token-embedding says"),
      field("reference", &o.reference,
            "what differences, PRR and saved memory are measured against, by its name; empty: mha"),
      field("peop-reference", &o.peop_reference, "what PEoP is measured against; empty: sha"),
      field("seeds", &o.seeds, "models per scheme or variant, each with its own initial values and batches",
            {.min = 1, .max = 1000}),
      field("until-decided", &o.until_decided,
            "add seeds until it is decided which cheaper schemes lose less than this share of quality, such as 0.02; "
            "0: train --seeds and no more",
            {.min = 0, .max = 1}),
      field("max-seeds", &o.max_seeds, "seeds that --until-decided may reach", {.min = 1, .max = 1000}),
      field("peop", &o.peop, "add sha, the baseline of PEoP, to the schemes"),
      field("match", &o.match,
            "what is made equal: optimizer steps, training time (of mha in --steps), or total parameters (by wider "
            "feed-forward parts)",
            match_names()),
      field("scheme-steps", &o.scheme_steps,
            "with --match time, the steps of each scheme or variant (mha=400,...); empty: as many as its speed allows"),
      field("sweep", &o.sweep,
            "try each of these values for every scheme and report its best by validation: "
            "learning-rate=3e-4,1e-3; any option of model or training, several times"),
  };
}

struct SweptOption {
  std::string name;
  std::vector<std::string> values;
};

// Reads --sweep: in "learning-rate=3e-4", "1e-3", "heads=2", "4" items without "=" belong to the option before them.
std::vector<SweptOption> swept_options(const ComparisonOptions& options) {
  ComparisonOptions probe = options;
  Fields known = swept_fields(probe);
  std::vector<SweptOption> swept;
  for (const std::string& item : options.sweep) {
    const size_t equals = item.find('=');
    HS_CHECK(equals != std::string::npos || !swept.empty(), "--sweep ", item,
             ": an option and its values are wanted, as in --sweep learning-rate=3e-4,1e-3");
    const std::string text = equals == std::string::npos ? item : item.substr(equals + 1);
    const std::string name = equals == std::string::npos ? swept.back().name : item.substr(0, equals);
    set_field(known, name, text, "--sweep");
    const Field& field = *find_field(known, name);
    if (equals != std::string::npos) swept.push_back({.name = field.name, .values = {}});
    // The field prints the value, so that 3e-4 and 0.0003 are one setting.
    const std::string value = field_text(field.value(), "--sweep");
    std::vector<std::string>& values = swept.back().values;
    HS_CHECK(std::find(values.begin(), values.end(), value) == values.end(), "--sweep ", field.name, " names ", value,
             " twice");
    values.push_back(value);
  }
  return swept;
}

}  // namespace

Fields swept_fields(ComparisonOptions& options) {
  Fields list = fields(options.model);
  append(&list, task_family(options.task).model_fields(options));
  for (Field& one : fields(options.train)) {
    if (one.name != "seed") list.push_back(std::move(one));
  }
  std::erase_if(list, [](const Field& one) { return one.name == "scheme"; });
  return list;
}

Fields fields(ComparisonOptions& o) {
  Fields list = own_fields(o);
  for (Field& one : fields(static_cast<TaskOptions&>(o))) {
    if (one.name != "scheme") list.push_back(std::move(one));
  }
  for (const TaskFamily* family : task_families()) append(&list, family->fields(o));
  append(&list, fields(o.train));
  return list;
}

std::string match_name(Match match) { return enum_name(match_names(), match); }

ComparisonOptions preset_options(const std::string& task, Preset preset, const TaskOptions& asked) {
  ComparisonOptions options;
  options.task = task;
  options.preset = preset;
  options.train.keep_last = 1;
  options.train.tensorboard = false;
  const TaskFamily& family = task_family(task);
  family.set_defaults(asked, &options, &options.train);
  family.set_preset(preset, &options, &options.train);
  return options;
}

std::string SweepSetting::name() const {
  std::string text;
  for (const auto& [option, value] : values) text += (text.empty() ? "" : " ") + option + "=" + value;
  return text;
}

std::vector<SweepSetting> sweep_settings(const ComparisonOptions& options) {
  std::vector<SweepSetting> all = {SweepSetting()};
  for (const SweptOption& swept : swept_options(options)) {
    std::vector<SweepSetting> longer;
    for (const SweepSetting& shorter : all) {
      for (const std::string& value : swept.values) {
        longer.push_back(shorter);
        longer.back().values.emplace_back(swept.name, value);
      }
    }
    all = std::move(longer);
  }
  return all;
}

ComparisonOptions with_setting(ComparisonOptions options, const SweepSetting& setting) {
  Fields known = swept_fields(options);
  for (const auto& [name, value] : setting.values) set_field(known, name, value, "--sweep");
  return options;
}

}  // namespace headshare
