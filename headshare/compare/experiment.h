// What is compared: makes the task that one model is trained on.
#pragma once

#include <memory>

#include "headshare/compare/options.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/size.h"
#include "headshare/report/results/results.h"

namespace headshare {

// A task with a fresh model, and what that is.
struct Trial {
  std::unique_ptr<Task> task;
  ModelOptions options;      // resolved
  Decoder decoder{nullptr};  // the decoder inside; empty where the model is an encoder
};

class Experiment {
 public:
  virtual ~Experiment() = default;

  virtual const Subject& subject() const = 0;

  // The model that these options make, resolved; the scheme is the options'.
  virtual ModelOptions model(const ComparisonOptions& cell) const = 0;

  // The model with initial values of cell.train.seed, and its data. Throws Error when the options do not
  // fit the data or the memory.
  virtual Trial trial(const ComparisonOptions& cell, c10::Device device) const = 0;

  // Leaves in `home` what a process that trains one cell needs besides the options (the tokenizer), and
  // sets the options that name it.
  virtual void share(const fs::path& home, ComparisonOptions* options) const = 0;
};

// Reads the text and makes the tokenizer, where the task has one.
std::unique_ptr<Experiment> open_experiment(const ComparisonOptions& options, const Progress& progress = {});

}  // namespace headshare
