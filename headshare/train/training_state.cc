#include "headshare/train/training_state.h"

#include "headshare/base/error.h"
#include "headshare/base/json_count.h"

namespace headshare {
namespace {

constexpr uint64_t kMostStateBytes = 64 << 20;

template <class T>
T required(const nlohmann::json& object, const char* key, const std::string& where) {
  if constexpr (std::is_integral_v<T>) {
    const std::optional<int64_t> count = json_count(object, key);
    HS_CHECK(count, where, ": \"", key, "\" is missing or no whole number from 0 on: the file is damaged");
    return *count;
  } else {
    const auto found = object.find(key);
    HS_CHECK(found != object.end() && found->is_number() && found->template get<T>() >= 0, where, ": \"", key,
             "\" is missing or no number from 0 on: the file is damaged");
    return found->template get<T>();
  }
}

}  // namespace

void write_training_state(const fs::path& path, const TrainingState& state) {
  const nlohmann::json object = {{"format_version", kTrainingFormatVersion},
                                 {"step", state.step},
                                 {"tokens", state.tokens},
                                 {"seconds", state.seconds},
                                 {"best_loss", state.best_loss ? nlohmann::json(*state.best_loss) : nlohmann::json()},
                                 {"best_step", state.best_step},
                                 {"evaluations_without_gain", state.evaluations_without_gain},
                                 {"task", state.task}};
  write_file(path, object.dump(2) + "\n");
}

TrainingState read_training_state(const fs::path& path) {
  const nlohmann::json object = nlohmann::json::parse(read_file(path, kMostStateBytes), nullptr, false);
  const std::string where = path.string();
  HS_CHECK(object.is_object(), where, " is not a JSON object: it is damaged");
  const auto version = required<int64_t>(object, "format_version", where);
  HS_CHECK(version <= kTrainingFormatVersion, where, " has format version ", version, "; this headshare reads up to ",
           kTrainingFormatVersion, ": use a newer one");
  TrainingState state{.step = required<int64_t>(object, "step", where),
                      .tokens = required<int64_t>(object, "tokens", where),
                      .seconds = required<double>(object, "seconds", where),
                      .best_loss = std::nullopt,
                      .best_step = required<int64_t>(object, "best_step", where),
                      .evaluations_without_gain = required<int64_t>(object, "evaluations_without_gain", where),
                      .task = object.value("task", nlohmann::json())};
  const nlohmann::json best = object.value("best_loss", nlohmann::json());
  if (best.is_number()) state.best_loss = best.get<double>();
  return state;
}

}  // namespace headshare
