// Idle options are options of training that would be set for nothing.
#pragma once

#include "headshare/base/options/idle_option.h"
#include "headshare/tasks/family.h"

namespace headshare {

// Lists the options that change nothing for options.task: those of other families, and those of its own, of its model
// and of its training that nothing reads beside the others. A user who sets one believes that it matters.
IdleOptions idle_options(const TaskOptions& options, const TrainOptions& train);

}  // namespace headshare
