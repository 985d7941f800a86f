// Training may start from the weights of a trained model (`train --start-from`) instead of random ones.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headshare/models/checkpoint.h"
#include "headshare/tasks/task_options.h"
#include "headshare/tasks/text_options.h"

namespace headshare {

// A StartModel is a trained model without its weights.
struct StartModel {
  fs::path directory;  // the checkpoint
  ModelOptions options;
  std::shared_ptr<Tokenizer> tokenizer;  // null where the model reads no text
};

// Opens the model of a checkpoint or run directory. Throws Error as load_model does; weights are checked, not read.
StartModel open_start(const fs::path& path);

// Returns the task that trains models of this kind: "language-model", "mlm".
std::string start_task(const StartModel& start);

// Throws Error, naming both, for another `task` than that of `start`.
void check_start_task(const StartModel& start, const std::string& task);

// Sets the task, the model, the vocabulary and the tokenizer of `options` to those of `start`. What the user asks for
// comes on top of that, and keep_to_start() then checks it.
void take_options(const StartModel& start, TaskOptions* options);

// Refuses what the weights do not fit. Throws Error naming the option, both values and the way out for
//   an option of the model with which some tensor would have another shape. Learned positions are the exception: a
//     shorter context takes the first of them; a longer one is refused, because nothing was learned for the rest
//   another tokenizer: the rows of the embedding belong to the tokens of the one that the model was trained with. A
//     size for new tokenizers alone is passed over with a notice
// `given` tells whether the user set the option of that name. Returns the options of the model that differ from `start`
// without harm: "context 64 instead of 128".
std::vector<std::string> keep_to_start(const StartModel& start, const std::function<bool(const std::string&)>& given,
                                       TaskOptions* options);

// Checks that a model that learns from a teacher has the teacher's tokenizer. Throws Error where the user asks for
// another kind; a size for new tokenizers alone is passed over with a notice. `given` is as above. Does nothing without
// a teacher.
void keep_to_teacher(const std::function<bool(const std::string&)>& given, const TextOptions& options);

// Copies the weights into a model that was made with options that keep_to_start() let pass, fitted to it by the family
// (TaskFamily::fit_start). What only the trained model
// has (a pooler, the head of a task) is left out; what it lacks (the masked-LM head of a fine-tuned encoder) keeps its
// initial values. A notice says either.
void load_start(const StartModel& start, torch::nn::Module& model);

}  // namespace headshare
