// A gap lies between a model before training and its teacher; training closes a share of it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace headshare {

// Both numbers are Evaluation::criterion() on the validation part; they are unset where it was not evaluated.
struct Gap {
  std::optional<double> start = {};    // of the model before the first step
  std::optional<double> teacher = {};  // of its teacher

  // Returns the share of the gap between start and teacher that training closes: 0 at the start, 1 where `criterion` is
  // as good as the teacher's, above 1 where it is better, below 0 where it is worse than the start's. Returns nothing
  // where one of them is unknown, or the start is worse by no more than 1e-4 max(1, |teacher|): a share of rounding
  // says nothing.
  std::optional<double> recovered(double criterion) const;
};

nlohmann::json to_json(const Gap& gap);
// Reads a gap; numbers that are missing or no numbers are unknown.
Gap gap_from_json(const nlohmann::json& object);

}  // namespace headshare
