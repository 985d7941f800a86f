// Which task a model is trained on.
#pragma once

#include <memory>

#include "headshare/models/checkpoint.h"
#include "headshare/tasks/masked_language_model.h"

namespace headshare {

enum class TrainTask { kLanguageModel, kMaskedLanguageModel };

struct TaskOptions {
  TrainTask task = TrainTask::kLanguageModel;
  LanguageModelOptions language;  // its model is that of every task
  MaskedOptions masked;
};

Field task_field(TaskOptions& options);

// Throws UsageError for an option of the other task that is not at its default: the user believes that it matters.
// Defaults pass, because a resolved.yaml has every option.
void refuse_foreign_options(const TaskOptions& options);

// What the task starts with, to be set before the user's own options.
TaskOptions task_defaults(TrainTask task);

// The model with the vocabulary that the tokenizer will likely have, resolved.
ModelOptions likely_model(const TaskOptions& options);

// Bytes that a training step of the likely model takes.
double likely_training_bytes(const TaskOptions& options, TrainingShape shape);

// Reads the text and makes a model with initial values of `seed`.
std::unique_ptr<Task> open_task(const TaskOptions& options, uint64_t seed, c10::Device device,
                                const TrainingShape& shape, const Progress& progress);

}  // namespace headshare
