#include "headshare/train/gap.h"

#include <algorithm>
#include <cmath>

namespace headshare {
namespace {

nlohmann::json or_null(const std::optional<double>& value) { return value ? nlohmann::json(*value) : nlohmann::json(); }

std::optional<double> number(const nlohmann::json& object, const char* name) {
  if (!object.is_object() || !object.contains(name) || !object[name].is_number()) return std::nullopt;
  return object[name].get<double>();
}

// Two evaluations of one model may differ by rounding; a share of such a difference is noise.
double least_gap(double teacher) { return 1e-4 * std::max(1.0, std::abs(teacher)); }

}  // namespace

std::optional<double> Gap::recovered(double criterion) const {
  if (!start || !teacher || !std::isfinite(*start)) return std::nullopt;
  if (!(*start - *teacher > least_gap(*teacher))) return std::nullopt;
  return (*start - criterion) / (*start - *teacher);
}

nlohmann::json to_json(const Gap& gap) { return {{"start", or_null(gap.start)}, {"teacher", or_null(gap.teacher)}}; }

Gap gap_from_json(const nlohmann::json& object) {
  return {.start = number(object, "start"), .teacher = number(object, "teacher")};
}

}  // namespace headshare
