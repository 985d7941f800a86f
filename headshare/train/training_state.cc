#include "headshare/train/training_state.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_reader.h"
#include "headshare/base/json/json_text.h"

namespace headshare {
namespace {

constexpr uint64_t kMostStateBytes = 64 << 20;

}  // namespace

nlohmann::json to_json(const TrainingState& state) {
  return {{"format_version", kTrainingFormatVersion},
          {"step", state.step},
          {"tokens", state.tokens},
          {"seconds", state.seconds},
          {"best_loss", state.best_loss ? nlohmann::json(*state.best_loss) : nlohmann::json()},
          {"best_step", state.best_step},
          {"evaluations_without_gain", state.evaluations_without_gain},
          {"gap", to_json(state.gap)},
          {"task", state.task}};
}

TrainingState training_state_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  const int64_t version = read.integer("format_version", 0);
  HS_CHECK(version <= kTrainingFormatVersion, where, " has format version ", version, "; this headshare reads up to ",
           kTrainingFormatVersion, ": use a newer one");
  TrainingState state{.step = read.integer("step", 0),
                      .tokens = read.integer("tokens", 0),
                      .seconds = read.number_from("seconds", 0),
                      .best_loss = std::nullopt,
                      .best_step = read.integer("best_step", 0),
                      .evaluations_without_gain = read.integer("evaluations_without_gain", 0),
                      .gap = gap_from_json(object.value("gap", nlohmann::json())),
                      .task = object.value("task", nlohmann::json())};
  const nlohmann::json best = object.value("best_loss", nlohmann::json());
  if (best.is_number()) state.best_loss = best.get<double>();
  return state;
}

void write_training_state(const fs::path& path, const TrainingState& state) {
  write_file(path, json_text(to_json(state), 2) + "\n");
}

TrainingState read_training_state(const fs::path& path) {
  return training_state_from_json(read_json_file(path, kMostStateBytes), path.string());
}

}  // namespace headshare
