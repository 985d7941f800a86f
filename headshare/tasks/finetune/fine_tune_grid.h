// `finetune` makes a grid of models in one directory: one for every task, learning rate and seed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headshare/tasks/finetune/task_result.h"

namespace headshare {

struct FineTuneGrid {
  fs::path out;
  bool resume = false;      // goes on with what is in `out`: finished models stay
  bool overwrite = false;   // forgets what is in `out` first
  bool keep_models = true;  // keeps the models, and not only their answers and scores
  int64_t seeds = 3;
  int64_t seed = 0;  // the first
  JobOptions job = {};
  FineTuneLearning tuning = {};
  Reducer& processes = one_process();  // that train each model together
  bool shard_optimizer = false;
};

// A FineTuneObserver watches the grid, besides the training of each model.
class FineTuneObserver : public Observer {
 public:
  virtual void on_model(const std::string& /*task*/, double /*learning_rate*/, int64_t /*seed*/) {}
  virtual void on_model_finished() {}
};

using FineTuneJobs = std::vector<std::unique_ptr<FineTuneJob>>;

// Reads the data of every task: a mistake in the last one's file costs a minute, not a day. Throws Error for what
// open_job refuses, and for models that cannot be begun or do not fit into memory.
FineTuneJobs open_jobs(const FineTuneGrid& grid, const std::vector<std::string>& tasks, const LoadedEncoder& trained,
                       c10::Device device);

// Throws Error for models that cannot be begun or do not fit into memory; open_jobs() has done so.
void check_starts(const FineTuneGrid& grid, const FineTuneJobs& jobs, c10::Device device);

// These two are called by process 0 alone.
//
// Refuses what stands in grid.out and may not be replaced. The directory is locked.
void check_grid(const FineTuneGrid& grid);

// Goes on with what an earlier call left in grid.out, or deletes it, and notes what the models will be made of.
void begin_grid(const FineTuneGrid& grid, const FineTuneJobs& jobs, const fs::path& checkpoint);

// Trains what is not finished. A learning rate at which training diverges is left out with a notice. Throws Interrupted
// when asked to stop, after saving.
std::vector<TaskResult> run_grid(const FineTuneGrid& grid, const FineTuneJobs& jobs, c10::Device device,
                                 FineTuneObserver& observer, const std::function<bool()>& stop_requested);

}  // namespace headshare
