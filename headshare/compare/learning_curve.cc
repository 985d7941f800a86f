#include "headshare/compare/learning_curve.h"

#include <fstream>

#include "headshare/base/json/json_input.h"

namespace headshare {

std::vector<CurvePoint> read_curve(const fs::path& metrics, double seconds_per_step, const std::string& score) {
  std::vector<CurvePoint> curve;
  std::ifstream in(metrics);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json event = json_or_discarded(line);
    if (!event.is_object() || event.value("event", nlohmann::json()) != "evaluation") continue;
    const auto loss = event.find("loss");
    if (loss == event.end() || !loss->is_number()) continue;  // the model diverged
    const std::optional<int64_t> step = json_count(event, "step");
    if (!step || (!curve.empty() && curve.back().step >= *step)) continue;  // a resumed run wrote it again
    curve.push_back({.step = *step,
                     .seconds = seconds_per_step * static_cast<double>(*step),
                     .validation_loss = loss->get<double>()});
    const auto noted = event.find(score);
    if (noted != event.end() && noted->is_number()) curve.back().validation_score = noted->get<double>();
  }
  return curve;
}

}  // namespace headshare
