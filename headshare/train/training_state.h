// training.json in a checkpoint holds where a run stands, besides its tensors.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "headshare/base/files/file.h"
#include "headshare/train/gap.h"

namespace headshare {

inline constexpr int64_t kTrainingFormatVersion = 1;

struct TrainingState {
  int64_t step = 0;
  int64_t tokens = 0;
  double seconds = 0;
  std::optional<double> best_loss;  // Evaluation::criterion() of the best evaluation
  int64_t best_step = 0;
  int64_t evaluations_without_gain = 0;
  Gap gap = {};
  nlohmann::json task;  // the task's place in its data
};

nlohmann::json to_json(const TrainingState& state);

// Throws Error, led by `where`, when the object is of a newer format or has other types.
TrainingState training_state_from_json(const nlohmann::json& object, const std::string& where);

void write_training_state(const fs::path& path, const TrainingState& state);

// Throws Error naming the file when it is damaged or of a newer format.
TrainingState read_training_state(const fs::path& path);

}  // namespace headshare
