// What `headshare finetune` found, as a table.
#pragma once

#include <string>
#include <vector>

#include "headshare/tasks/finetune/task_result.h"

namespace headshare {

// The table of scores over the seeds; "" where no task has a model.
std::string results_text(std::vector<TaskResult> results);

}  // namespace headshare
