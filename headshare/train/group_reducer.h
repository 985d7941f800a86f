// The processes of a run are those of a process group of torch.distributed.
#pragma once

#include <memory>
#include <string>

#include "headshare/train/reducer.h"

namespace headshare {

// Finds the group that this process's Python made, by its name. Gloo sums tensors of the CPU in it, and NCCL or Gloo
// those of a GPU. The group must outlive the reducer.
std::unique_ptr<Reducer> make_group_reducer(const std::string& group);

}  // namespace headshare
