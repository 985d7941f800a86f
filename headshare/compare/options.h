// What a comparison trains and what it makes equal.
#pragma once

#include <string>
#include <vector>

#include "headshare/attention/options.h"
#include "headshare/tasks/diagnostics/diagnostic.h"
#include "headshare/tasks/masked_language_model.h"
#include "headshare/train/trainer.h"

namespace headshare {

enum class ComparisonTask { kLanguageModel, kMaskedLanguageModel, kOffsets, kRecall, kInduction, kDyck };
enum class Preset { kQuick, kSmall, kBase };

// What is the same for all schemes: optimizer steps, training time, or total parameters.
enum class Match { kSteps, kTime, kParameters };

struct ComparisonOptions {
  ComparisonTask task = ComparisonTask::kLanguageModel;
  Preset preset = Preset::kQuick;
  std::vector<std::string> schemes = {"all"};
  int64_t seeds = 1;
  bool peop = false;  // sha joins the schemes
  Match match = Match::kSteps;
  std::vector<std::string> scheme_steps = {};  // "mha=400": what matching time came to; empty: to be measured
  std::vector<std::string> sweep = {};         // "learning-rate=3e-4,1e-3"; a comma in a flag starts a new item
  LanguageModelOptions language;               // its model is that of every task
  MaskedOptions masked;                        // what masked language models have besides
  DiagnosticOptions diagnostic;
  TrainOptions train;  // its seed is that of the first model; the others count up from it
};

Fields fields(ComparisonOptions& options);

// Whether the task is a diagnostic one: no text is read.
bool is_diagnostic(ComparisonTask task);
DiagnosticKind diagnostic_kind(ComparisonTask task);  // of a diagnostic task

// The task's and preset's sizes, steps and rates, to be set before the user's own.
ComparisonOptions preset_options(ComparisonTask task, Preset preset);
Preset parse_preset(const std::string& name);
ComparisonTask parse_task(const std::string& name);

// The schemes that "all" and the names in the list stand for, in the registry's order. An unknown name
// is refused with the nearest.
std::vector<SchemeKind> chosen_schemes(const std::vector<std::string>& names);
// Those of the options, and sha where PEoP is asked for.
std::vector<SchemeKind> chosen_schemes(const ComparisonOptions& options);

// Throws Error when scheme_steps is no such list, or stands without matching time.
void check_scheme_steps(const ComparisonOptions& options);

// One combination of swept values: {{"learning-rate", "0.001"}}.
struct SweepSetting {
  std::vector<std::pair<std::string, std::string>> values = {};

  std::string name() const;  // "learning-rate=0.001"; "" when nothing is swept
};

// Every combination, the first option's values varying slowest; one empty setting without a sweep.
// Throws Error for an option that is not the model's or the training's, and a value it does not take.
std::vector<SweepSetting> sweep_settings(const ComparisonOptions& options);

// `options` with the setting's values.
ComparisonOptions with_setting(ComparisonOptions options, const SweepSetting& setting);

// Why a scheme cannot be part of this comparison ("el_shared ... rotary"), or "" when it can.
std::string why_not(const ComparisonOptions& options, SchemeKind scheme);

std::string match_name(Match match);

}  // namespace headshare
