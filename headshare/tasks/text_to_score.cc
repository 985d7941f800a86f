#include "headshare/tasks/text_to_score.h"

#include <cmath>

#include "headshare/base/error.h"

namespace headshare {

void check_scores(const TextScores& scores, const std::string& model) {
  for (const auto& [name, value] : scores.object.items()) {
    HS_CHECK(!value.is_number_float() || std::isfinite(value.get<double>()), name, " of ", model, " is ",
             value.get<double>(), ": its weights are finite, and what it computes from them is not; the model has ",
             "diverged: take an earlier checkpoint");
  }
}

}  // namespace headshare
