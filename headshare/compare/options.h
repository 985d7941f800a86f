// ComparisonOptions say what a comparison trains and what it makes equal.
#pragma once

#include <string>
#include <vector>

#include "headshare/tasks/family.h"

namespace headshare {

// Match names the quantity that is equal for all schemes: optimizer steps, training time, or total parameters.
enum class Match { kSteps, kTime, kParameters };

struct ComparisonOptions : TaskOptions {
  Preset preset = Preset::kQuick;
  std::vector<std::string> schemes = {"all"};
  std::vector<std::string> variants = {};    // "wide:scheme=mqa,heads=8"; a comma in a flag starts a new item
  std::vector<std::string> embeddings = {};  // "hash-md-proj": each scheme and variant with each of these
  std::string reference = {};                // the variant of differences and PRR; "": mha
  std::string peop_reference = {};           // the variant that PEoP refers to; "": sha
  int64_t seeds = 1;
  double until_decided = 0;  // the share of the reference's measure that may be lost; 0: the seeds are fixed
  int64_t max_seeds = 20;    // the most seeds where they are added until it is decided
  bool peop = false;         // sha joins the schemes
  Match match = Match::kSteps;
  std::vector<std::string> scheme_steps =
      {};                               // by variant, "mha=400": what matching time came to; empty: to be measured
  std::vector<std::string> sweep = {};  // "learning-rate=3e-4,1e-3"; a comma in a flag starts a new item
  TrainOptions train;                   // its seed is that of the first model; the others count up from it
};

Fields fields(ComparisonOptions& options);

// Returns the sizes, steps and rates of a task and preset, to be set before the user's own.
ComparisonOptions preset_options(const std::string& task, Preset preset, const TaskOptions& asked = {});

// A SweepSetting is one combination of swept values: {{"learning-rate", "0.001"}}.
struct SweepSetting {
  std::vector<std::pair<std::string, std::string>> values = {};

  std::string name() const;  // "learning-rate=0.001"; "" when nothing is swept
};

// Returns every combination, the first option's values varying slowest; one empty setting without a sweep. Throws Error
// for an option that is not the model's or the training's, and for a value it does not take.
std::vector<SweepSetting> sweep_settings(const ComparisonOptions& options);

// Lists the options that a sweep may vary: everything a model and its training are made of, except the data, the seed
// and the scheme.
Fields swept_fields(ComparisonOptions& options);

// Returns `options` with the setting's values.
ComparisonOptions with_setting(ComparisonOptions options, const SweepSetting& setting);

std::string match_name(Match match);

}  // namespace headshare
