// A learning curve shows how a model's validation loss fell; it is read from the files of its run.
#pragma once

#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/report/results/results.h"

namespace headshare {

// Reads the evaluations in metrics.jsonl, those before a resumption included; none where there is no such file. `score`
// is the metric to note beside the loss, or "".
std::vector<CurvePoint> read_curve(const fs::path& metrics, double seconds_per_step, const std::string& score = "");

}  // namespace headshare
