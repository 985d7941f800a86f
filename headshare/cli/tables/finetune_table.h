// This table shows what `headshare finetune` found.
#pragma once

#include <string>
#include <vector>

#include "headshare/tasks/finetune/task_result.h"

namespace headshare {

// Returns the table of scores over the seeds; "" where no task has a model.
std::string results_text(std::vector<TaskResult> results);

}  // namespace headshare
