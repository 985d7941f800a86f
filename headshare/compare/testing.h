// For tests only: these functions make comparisons that take a second.
#pragma once

#include <string>
#include <vector>

#include "headshare/base/testing.h"
#include "headshare/compare/cell_run.h"
#include "headshare/tasks/diagnostics/diagnostic.h"
#include "headshare/tasks/testing.h"

namespace headshare {

inline const auto kNeverStop = [] { return false; };

// Returns the place of a cell that is worked on where it is found once it is finished.
inline CellPlace place_in(const fs::path& home, const CellPlan& plan) { return {home, cell_home(home, plan.key)}; }

// Asks for 4 steps of a model of width 16 on the offsets task, with seed 3.
inline ComparisonOptions small_diagnostic(const std::vector<std::string>& schemes) {
  ComparisonOptions options = preset_options("offsets", Preset::kQuick);
  options.schemes = schemes;
  DiagnosticOptions& task = options.own<DiagnosticOptions>();
  task.sequence_length = 8;
  task.offsets = {1, 2};
  task.validation_sequences = task.test_sequences = 8;
  options.model.layers = 1;
  options.model.attention.d_model = 16;
  options.model.attention.heads = 2;
  options.batch_size = 4;
  options.train.steps = 4;
  options.train.evaluate_every = 2;
  options.train.log_every = 1;
  options.train.seed = 3;
  return options;
}

// Asks for the same on a text of 1,000 bytes below `folder`.
inline ComparisonOptions small_text(const std::vector<std::string>& schemes, const fs::path& folder) {
  const ComparisonOptions sizes = small_diagnostic(schemes);
  ComparisonOptions options;
  options.schemes = schemes;
  options.train = sizes.train;
  const LanguageModelOptions small = small_language();
  options.own<TextOptions>() = small;
  options.model = small.model;
  options.batch_size = small.batch_size;
  options.own<TextOptions>().data.validation_fraction = 0.2;
  options.own<TextOptions>().data.test_fraction = 0.1;
  options.own<TextOptions>().data.cache_directory = (folder / "cache").string();
  options.own<TextOptions>().data.text = {(folder / "book.txt").string()};
  write_file(folder / "book.txt", sentences(1000));
  return options;
}

}  // namespace headshare
