#include "headshare/compare/learning_curve.h"

#include <fstream>

namespace headshare {

std::vector<CurvePoint> read_curve(const fs::path& metrics, double seconds_per_step) {
  std::vector<CurvePoint> curve;
  std::ifstream in(metrics);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json event = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!event.is_object() || event.value("event", "") != "evaluation") continue;
    const auto loss = event.find("loss");
    if (loss == event.end() || !loss->is_number()) continue;  // of a model that diverged
    const int64_t step = event.value("step", int64_t{0});
    if (!curve.empty() && curve.back().step >= step) continue;  // written again by a resumed run
    curve.push_back({.step = step,
                     .seconds = seconds_per_step * static_cast<double>(step),
                     .validation_loss = loss->get<double>()});
  }
  return curve;
}

}  // namespace headshare
