// The data of a task, read once, and the models that are trained on it.
#pragma once

#include <memory>

#include "headshare/base/file.h"
#include "headshare/metrics/subject.h"
#include "headshare/models/model_options.h"
#include "headshare/models/size.h"
#include "headshare/tasks/task_options.h"
#include "headshare/train/task.h"

namespace headshare {

// A task with a fresh model.
struct Trial {
  std::unique_ptr<Task> task;
  ModelOptions options;                      // resolved
  std::shared_ptr<torch::nn::Module> model;  // that they make: the task's model, or one inside it
};

class Experiment {
 public:
  virtual ~Experiment() = default;

  // What is learned and how it is judged. May pass over the data: ask once.
  virtual Subject subject() const = 0;

  // Whether there is such a part of the data.
  virtual bool has(Part part) const = 0;

  // The model that these options make, resolved. They may differ from those of the data in the model and its batches.
  virtual ModelOptions model(const TaskOptions& options) const = 0;

  // That model with initial values of `seed`, and the data. Throws Error when they do not fit together or into the
  // memory. Of `shape` the loop says whether blocks are recomputed and how many averages it keeps; the rest is the
  // task's.
  virtual Trial trial(const TaskOptions& options, uint64_t seed, c10::Device device,
                      const TrainingShape& shape) const = 0;

  // Leaves in `home` what another process needs besides the options to open the same data (the tokenizer), and sets the
  // options that name it.
  virtual void share(const fs::path& home, TaskOptions* options) const = 0;
};

}  // namespace headshare
