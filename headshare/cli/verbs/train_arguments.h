// This header reads what `headshare train` is asked for, and what an earlier call of it was.
#pragma once

#include <string>

#include "headshare/cli/arguments/args.h"
#include "headshare/cli/arguments/resumable.h"
#include "headshare/host/runtime_options.h"
#include "headshare/tasks/task_options.h"
#include "headshare/train/trainer.h"

namespace headshare {

struct TrainCommand {
  static constexpr const char* kVerb = "train";

  std::string out;
  bool resume = false;
  bool overwrite = false;
  bool dry_run = false;
  bool json = false;
  bool shard_optimizer = false;
  std::string start_from;
  std::string like;
  TaskOptions task;
  TrainOptions train;
  RuntimeOptions runtime;

  OptionGroups groups();

  void forget_call() { overwrite = resume = json = false; }
  void make_paths_whole();

 private:
  Fields run_fields();
};

Arguments arguments_of(TrainCommand& command);

// Tells whether a run of this task trains a tokenizer.
bool trains_tokenizer(const TaskOptions& task);

// Throws UsageError for an option that would change nothing: a user who sets it believes that it matters. It is not
// called for a run that goes on, whose options are in its directory.
void refuse_idle_options(const Arguments& arguments, TrainCommand command);

// Returns the command that began the run in `out`, and the same with the options of `typed` on top. Throws UsageError
// where there is none, and for options that would make it another run: only how far, how fast, what is kept and said
// may change.
Resumed<TrainCommand> resumed_train_command(const Arguments& typed, const std::string& out);

}  // namespace headshare
