// An experiment reads the data of a task once and makes the models that are trained on it.
#pragma once

#include <memory>

#include "headshare/base/files/file.h"
#include "headshare/metrics/subject.h"
#include "headshare/models/model_options.h"
#include "headshare/models/size.h"
#include "headshare/tasks/task_options.h"
#include "headshare/train/task.h"

namespace headshare {

// A trial is a task with a fresh model.
struct Trial {
  std::unique_ptr<Task> task;
  ModelOptions options;                      // resolved
  std::shared_ptr<torch::nn::Module> model;  // the model of these options: the task's model, or one inside it
};

class Experiment {
 public:
  virtual ~Experiment() = default;

  // Tells what is learned and how it is judged. It may pass over the data: ask once.
  virtual Subject subject() const = 0;

  // Tells whether the data has this part.
  virtual bool has(Part part) const = 0;

  // Returns the model that these options make, resolved. They may differ from the options of the data in the model and
  // its batches.
  virtual ModelOptions model(const TaskOptions& options) const = 0;

  // Returns a task on the data with that model, which has initial values of `seed`. Throws Error when they do not fit
  // together or into the memory. The loop sets in `shape` whether blocks are recomputed and how many averages it keeps;
  // the task sets the rest.
  virtual Trial trial(const TaskOptions& options, uint64_t seed, c10::Device device,
                      const TrainingShape& shape) const = 0;

  // Leaves in `home` what another process needs besides the options to open the same data (the tokenizer), and sets the
  // options that name it.
  virtual void share(const fs::path& home, TaskOptions* options) const = 0;
};

}  // namespace headshare
