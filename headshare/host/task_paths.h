// The files that the options of a task name.
#pragma once

#include "headshare/tasks/task_options.h"

namespace headshare {

// whole_path() of all of them, those of every family's own options too.
void make_paths_whole(TaskOptions* options);

}  // namespace headshare
