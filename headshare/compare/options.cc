#include "headshare/compare/options.h"

#include <algorithm>
#include <cctype>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/base/prefixed.h"
#include "headshare/compare/variants.h"

namespace headshare {
namespace {

const EnumNames<ComparisonTask>& task_names() {
  static const EnumNames<ComparisonTask> names = {{ComparisonTask::kLanguageModel, "language-model"},
                                                  {ComparisonTask::kMaskedLanguageModel, "mlm"},
                                                  {ComparisonTask::kOffsets, "offsets"},
                                                  {ComparisonTask::kRecall, "recall"},
                                                  {ComparisonTask::kInduction, "induction"},
                                                  {ComparisonTask::kDyck, "dyck"},
                                                  {ComparisonTask::kGlue, "glue"},
                                                  {ComparisonTask::kSuperGlue, "superglue"},
                                                  {ComparisonTask::kSquad, "squad"},
                                                  {ComparisonTask::kClassify, "classify"},
                                                  {ComparisonTask::kPair, "pair"},
                                                  {ComparisonTask::kRegress, "regress"}};
  return names;
}

const EnumNames<Preset>& preset_names() {
  static const EnumNames<Preset> names = {
      {Preset::kQuick, "quick"}, {Preset::kSmall, "small"}, {Preset::kBase, "base"}};
  return names;
}

const EnumNames<Match>& match_names() {
  static const EnumNames<Match> names = {
      {Match::kSteps, "steps"}, {Match::kTime, "time"}, {Match::kParameters, "parameters"}};
  return names;
}

// The name an enumeration's value goes by, and back.
template <class E>
E parse_name(const char* option, const std::string& name, const EnumNames<E>& names) {
  E value{};
  field(option, &value, "", names).parse(name);
  return value;
}

Fields own_fields(ComparisonOptions& o) {
  return {
      field("task", &o.task,
            "what the models learn: the next tokens of text, its masked tokens (mlm: encoders), a built-in diagnostic "
            "task "
            "that needs no data, or, as encoders that are fine-tuned, the tasks of GLUE or SuperGLUE, SQuAD, or a "
            "table of "
            "your own (classify, pair, regress)",
            task_names()),
      field("preset", &o.preset,
            "sizes and steps to start from: quick is minutes, small an hour, base a night on 2 cores", preset_names()),
      field("schemes", &o.schemes, "attention schemes to compare, or all; with --variants none unless named"),
      field("variants", &o.variants,
            "sets of options to compare besides, each under a name: wide:scheme=mqa,heads=8,rms:norm=rms; any option "
            "of model or training, several times"),
      field("reference", &o.reference,
            "what differences, PRR and saved memory are measured against, by its name; empty: mha"),
      field("peop-reference", &o.peop_reference, "what PEoP is measured against; empty: sha"),
      field("seeds", &o.seeds, "models per scheme or variant, each with its own initial values and batches",
            {.min = 1, .max = 1000}),
      field("peop", &o.peop, "PEoP is wanted: sha, which it is relative to, joins the schemes"),
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

// "learning-rate=3e-4", "1e-3", "heads=2", "4": items without "=" belong to the option before them.
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
    // As the field prints it: 3e-4 and 0.0003 are one setting.
    const std::string value = field_text(field.value(), "--sweep");
    std::vector<std::string>& values = swept.back().values;
    HS_CHECK(std::find(values.begin(), values.end(), value) == values.end(), "--sweep ", field.name, " names ", value,
             " twice");
    values.push_back(value);
  }
  return swept;
}

struct Sizes {
  int64_t layers, d_model, heads, context, batch, steps, vocabulary;
  double learning_rate;
};

Sizes text_sizes(Preset preset) {
  if (preset == Preset::kQuick) return {2, 96, 6, 96, 12, 400, 1024, 3e-3};
  if (preset == Preset::kSmall) return {4, 192, 6, 128, 16, 2000, 8192, 1e-3};
  return {6, 384, 6, 256, 32, 10000, 16384, 6e-4};
}

// Longer training for the larger presets: the sizes are those in which the tasks tell schemes apart.
int64_t diagnostic_steps_factor(Preset preset) {
  return preset == Preset::kQuick ? 1 : preset == Preset::kSmall ? 5 : 20;
}

}  // namespace

Fields swept_fields(ComparisonOptions& options) {
  Fields list = fields(options.language.model);
  for (Field& one : fields(options.train)) {
    if (one.name != "seed") list.push_back(std::move(one));
  }
  std::erase_if(list, [](const Field& one) { return one.name == "scheme"; });
  return list;
}

Fields fields(FineTuningOptions& o) {
  Fields list = {
      field("encoders", &o.encoders,
            "fine-tune the encoders of this `compare --task mlm --out DIR` (its first seed); without it encoders are "
            "trained first, on --text, and kept in OUT/encoders"),
      field("tasks", &o.tasks, "of glue or superglue only these (cola,rte); empty: all of them"),
  };
  Fields own = {field("keep-models", &o.keep_models, "keep every fine-tuned model, not only its answers and scores")};
  append(&own, fields(o.job.files));
  append(&own, fields(o.job.table));
  append(&own, fields(o.job.tuning));
  append(&own, fields(o.tuning));
  append(&own, fields(o.job.windows));
  append(&own, fields(o.job.answers));
  append(&list, prefixed(kFineTuningPrefix, std::move(own)));
  return list;
}

Fields fields(ComparisonOptions& o) {
  Fields list = own_fields(o);
  for (Field& one : fields(o.language)) {
    if (one.name != "scheme") list.push_back(std::move(one));
  }
  append(&list, fields(o.masked));
  append(&list, fields(o.diagnostic));
  append(&list, fields(o.fine_tuning));
  append(&list, fields(o.train));
  return list;
}

bool is_diagnostic(ComparisonTask task) {
  return task == ComparisonTask::kOffsets || task == ComparisonTask::kRecall || task == ComparisonTask::kInduction ||
         task == ComparisonTask::kDyck;
}

bool is_fine_tuning(ComparisonTask task) {
  return task == ComparisonTask::kGlue || task == ComparisonTask::kSuperGlue || task == ComparisonTask::kSquad ||
         task == ComparisonTask::kClassify || task == ComparisonTask::kPair || task == ComparisonTask::kRegress;
}

bool trains_encoders(ComparisonTask task) {
  return task == ComparisonTask::kMaskedLanguageModel || is_fine_tuning(task);
}

bool is_suite(ComparisonTask task) { return task == ComparisonTask::kGlue || task == ComparisonTask::kSuperGlue; }

std::vector<std::string> fine_tuning_jobs(const ComparisonOptions& options) {
  const std::string name = task_name(options.task);
  HS_CHECK(is_suite(options.task) || options.fine_tuning.tasks.empty(),
           "--tasks chooses among the tasks of glue and superglue; --task ", name, " is a single one");
  if (options.fine_tuning.tasks.empty()) return expand_job_names({name});
  std::vector<std::string> full;
  for (const std::string& task : options.fine_tuning.tasks) {
    full.push_back(task.starts_with(name + "/") ? task : name + "/" + task);
  }
  return expand_job_names(full);
}

ComparisonOptions pre_training(const ComparisonOptions& options) {
  ComparisonOptions encoders = options;
  encoders.task = ComparisonTask::kMaskedLanguageModel;
  encoders.fine_tuning = {};
  encoders.seeds = 1;
  encoders.reference = encoders.peop_reference = "";
  encoders.peop = false;
  encoders.schemes.clear();
  for (const Variant& one : chosen_variants(options)) {
    const bool plain = one.name == one.scheme;  // the rest stands in --variants
    if (plain && is_trained(one.scheme)) encoders.schemes.push_back(one.scheme);
  }
  return encoders;
}

std::string in_fine_tuning_words(const std::string& message) {
  FineTuningOptions options;
  const Fields known = fields(options);
  const auto begins_name = [](char c) { return c == '-' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::string made;
  for (size_t at = 0; at < message.size();) {
    size_t end = at + 2;
    if (message.compare(at, 2, "--") == 0) {
      while (end < message.size() && begins_name(message[end])) ++end;
      const std::string name = kFineTuningPrefix + message.substr(at + 2, end - at - 2);
      const bool ours = std::any_of(known.begin(), known.end(), [&](const Field& one) { return one.name == name; });
      made += ours ? "--" + name : message.substr(at, end - at);
    } else {
      made += message[at];
      end = at + 1;
    }
    at = end;
  }
  return made;
}

DiagnosticKind diagnostic_kind(ComparisonTask task) {
  switch (task) {
    case ComparisonTask::kRecall:
      return DiagnosticKind::kRecall;
    case ComparisonTask::kInduction:
      return DiagnosticKind::kInduction;
    case ComparisonTask::kDyck:
      return DiagnosticKind::kDyck;
    default:
      return DiagnosticKind::kOffsets;
  }
}

Preset parse_preset(const std::string& name) { return parse_name("preset", name, preset_names()); }

ComparisonTask parse_task(const std::string& name) { return parse_name("task", name, task_names()); }

std::string task_name(ComparisonTask task) { return enum_name(task_names(), task); }

std::string match_name(Match match) { return enum_name(match_names(), match); }

ComparisonOptions preset_options(ComparisonTask task, Preset preset) {
  ComparisonOptions options;
  options.task = task;
  options.preset = preset;
  options.train.keep_last = 1;
  options.train.tensorboard = false;
  if (is_diagnostic(task)) {
    const DiagnosticDefaults defaults = diagnostic_defaults(diagnostic_kind(task));
    options.diagnostic = defaults.options;
    options.language.model = defaults.options.model;
    options.language.batch.batch_size = defaults.options.batch_size;
    options.train.steps = defaults.steps * diagnostic_steps_factor(preset);
    options.train.schedule.learning_rate = defaults.learning_rate;
    return options;
  }
  if (trains_encoders(task)) {
    set_masked_defaults(&options.language);
    options.train.schedule.schedule = Schedule::kLinear;
  }
  const Sizes sizes = text_sizes(preset);
  options.language.model.layers = sizes.layers;
  options.language.model.attention.d_model = sizes.d_model;
  options.language.model.attention.heads = sizes.heads;
  options.language.model.context = sizes.context;
  options.language.batch.batch_size = sizes.batch;
  options.language.tokenizer.vocabulary_size = sizes.vocabulary;
  options.language.data.test_fraction = 0.1;
  options.train.steps = sizes.steps;
  options.train.schedule.learning_rate = sizes.learning_rate;
  return options;
}

std::vector<std::string> chosen_schemes(const std::vector<std::string>& names) {
  HS_CHECK(!names.empty(), "no scheme was named; give --schemes mha,sha,... or all");
  std::vector<std::string> wanted;
  bool all = false;
  for (const std::string& name : names) {
    if (name == "all") {
      all = true;
    } else {
      wanted.push_back(scheme_record(name).name);
    }
  }
  std::vector<std::string> chosen;
  for (const std::string& scheme : scheme_names()) {
    if (all || std::find(wanted.begin(), wanted.end(), scheme) != wanted.end()) chosen.push_back(scheme);
  }
  return chosen;
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
