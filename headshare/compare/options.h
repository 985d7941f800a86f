// What a comparison trains and what it makes equal.
#pragma once

#include <string>
#include <vector>

#include "headshare/attention/options.h"
#include "headshare/tasks/diagnostics/diagnostic.h"
#include "headshare/tasks/masked_language_model.h"
#include "headshare/train/fine_tuning.h"
#include "headshare/train/trainer.h"

namespace headshare {

enum class ComparisonTask {
  kLanguageModel,
  kMaskedLanguageModel,
  kOffsets,
  kRecall,
  kInduction,
  kDyck,
  kGlue,
  kSuperGlue,
  kSquad,
  kClassify,
  kPair,
  kRegress
};
enum class Preset { kQuick, kSmall, kBase };

// What is the same for all schemes: optimizer steps, training time, or total parameters.
enum class Match { kSteps, kTime, kParameters };

// What encoders are fine-tuned on, and how, where the task is that.
struct FineTuningOptions {
  std::string encoders = {};            // a comparison of masked language models; "": that comes first, on the text
  std::vector<std::string> tasks = {};  // of the suite; empty: all
  bool keep_models = false;
  JobOptions job = {};
  TuningOptions tuning = {};
};

// All but the first two begin with kFineTuningPrefix: pre-training has options of the same names.
Fields fields(FineTuningOptions& options);
inline constexpr const char* kFineTuningPrefix = "finetune-";

struct ComparisonOptions {
  ComparisonTask task = ComparisonTask::kLanguageModel;
  Preset preset = Preset::kQuick;
  std::vector<std::string> schemes = {"all"};
  std::vector<std::string> variants = {};  // "wide:scheme=mqa,heads=8"; a comma in a flag starts a new item
  std::string reference = {};              // the variant of differences and PRR; "": mha
  std::string peop_reference = {};         // of PEoP; "": sha
  int64_t seeds = 1;
  bool peop = false;  // sha joins the schemes
  Match match = Match::kSteps;
  std::vector<std::string> scheme_steps =
      {};                               // by variant, "mha=400": what matching time came to; empty: to be measured
  std::vector<std::string> sweep = {};  // "learning-rate=3e-4,1e-3"; a comma in a flag starts a new item
  LanguageModelOptions language;        // its model is that of every task
  MaskedOptions masked;                 // what masked language models have besides
  DiagnosticOptions diagnostic;
  FineTuningOptions fine_tuning;
  TrainOptions train;  // its seed is that of the first model; the others count up from it
};

Fields fields(ComparisonOptions& options);

// Whether the task is a diagnostic one: no text is read.
bool is_diagnostic(ComparisonTask task);
DiagnosticKind diagnostic_kind(ComparisonTask task);  // of a diagnostic task

// Whether the models are encoders, pre-trained once for every scheme and fine-tuned with every seed.
bool is_fine_tuning(ComparisonTask task);
bool is_suite(ComparisonTask task);  // GLUE or SuperGLUE: many tasks

// Whether what is trained from the beginning are encoders.
bool trains_encoders(ComparisonTask task);

// The tasks they are fine-tuned on, as open_job knows them. Throws Error for one that the suite does not have.
std::vector<std::string> fine_tuning_jobs(const ComparisonOptions& options);

// The comparison that trains these encoders, one seed each; without el_lossless, which has mha's weights.
ComparisonOptions pre_training(const ComparisonOptions& options);

// An Error about fine-tuning in the words of this command: "--epochs" is --finetune-epochs here.
std::string in_fine_tuning_words(const std::string& message);

// The task's and preset's sizes, steps and rates, to be set before the user's own.
ComparisonOptions preset_options(ComparisonTask task, Preset preset);
Preset parse_preset(const std::string& name);
ComparisonTask parse_task(const std::string& name);

// The schemes that "all" and the names in the list stand for, in the registry's order. An unknown name
// is refused with the nearest.
std::vector<std::string> chosen_schemes(const std::vector<std::string>& names);
// One combination of swept values: {{"learning-rate", "0.001"}}.
struct SweepSetting {
  std::vector<std::pair<std::string, std::string>> values = {};

  std::string name() const;  // "learning-rate=0.001"; "" when nothing is swept
};

// Every combination, the first option's values varying slowest; one empty setting without a sweep.
// Throws Error for an option that is not the model's or the training's, and a value it does not take.
std::vector<SweepSetting> sweep_settings(const ComparisonOptions& options);

// What a sweep may vary: everything a model and its training are made of, but the data, the seed and the scheme.
Fields swept_fields(ComparisonOptions& options);

// `options` with the setting's values.
ComparisonOptions with_setting(ComparisonOptions options, const SweepSetting& setting);

std::string match_name(Match match);
std::string task_name(ComparisonTask task);  // "language-model"

}  // namespace headshare
