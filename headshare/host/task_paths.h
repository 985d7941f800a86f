// The options of a task name files, which must be found from any directory.
#pragma once

#include "headshare/tasks/task_options.h"

namespace headshare {

// Applies whole_path() to every path in the options, those of every family's own options too.
void make_paths_whole(TaskOptions* options);

}  // namespace headshare
