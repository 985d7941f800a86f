#include "headshare/cli/verbs/train_arguments.h"

#include <set>

#include "headshare/base/files/placeholder.h"
#include "headshare/host/launch.h"
#include "headshare/host/task_paths.h"
#include "headshare/tasks/family.h"
#include "headshare/tasks/idle_options.h"
#include "headshare/tasks/translation/translation_options.h"

namespace headshare {
namespace {

// Lists the options that may change when a run goes on: how far, how fast, what is kept and said. Everything else makes
// it another run.
const std::set<std::string>& free_options() {
  static const std::set<std::string> names = {"out",       "resume",    "json",        "steps",          "threads",
                                              "device",    "log-every", "keep-last",   "evaluate-every", "save-every",
                                              "cache-dir", "patience",  "tensorboard", "shard-optimizer"};
  return names;
}

}  // namespace

Fields TrainCommand::run_fields() {
  return {
      trained_task_field(task),
      naming_directory(field("out", &out, "directory of the run: checkpoints, metrics, the resolved configuration",
                             {.aliases = {"output-dir"}})),
      field("resume", &resume, "go on from the last checkpoint in --out, with the options it was started with",
            {.aliases = {"resume-from-checkpoint"}}),
      field("overwrite", &overwrite, "delete the run in --out first", {.aliases = {"overwrite-output-dir"}}),
      naming_model(field(
          "start-from", &start_from,
          "a headshare model (run directory or checkpoint) whose weights training starts from; options of the model "
          "and its tokenizer are then those of this model unless they are given")),
      naming_model(
          field("like", &like,
                "options and tokenizer of this headshare model, without its weights: the same model from scratch")),
      field("dry-run", &dry_run, "check the options, print what the model takes, train nothing"),
      field("json", &json, "print the result as one JSON object"),
  };
}

OptionGroups TrainCommand::groups() {
  OptionGroups made = {option_group("Run", run_fields()), option_group("Model", fields(task.model))};
  for (const TaskFamily* family : task_families()) {
    Fields own = family->fields(task);
    if (family->trains_alone() && !own.empty()) made.push_back(option_group(family->heading(), std::move(own)));
  }
  Fields text = fields(task);
  for (Fields elsewhere : {fields(task.model), fields(task.own<TextOptions>().distillation)}) {
    std::erase_if(text, [&](const Field& one) { return find_field(elsewhere, one.name) != nullptr; });
  }
  text.push_back(field("model-vocabulary", &task.own<TextOptions>().vocabulary,
                       "tokens that the model has room for; auto: those of its tokenizer", {.min = 1, .max = 1 << 30}));
  made.push_back(option_group("Text", std::move(text)));
  made.push_back(option_group("Training", fields(train)));
  made.push_back(option_group("Distillation", fields(task.own<TextOptions>().distillation)));
  Fields computing = fields(runtime);
  computing.push_back(shard_field(&shard_optimizer));
  made.push_back(option_group("Computing", std::move(computing)));
  return made;
}

Arguments arguments_of(TrainCommand& command) {
  Arguments made(TrainCommand::kVerb,
                 "Trains one model with any attention scheme: a language model on text, causal or masked, one that "
                 "translates, on pairs, or one that tells the classes of images.");
  made.groups(command.groups());
  made.common({"text", "source", "target", "images", "task", "out", "scheme", "layers", "d-model", "heads", "context",
               "positions", "tokenizer", "steps", "batch-size", "learning-rate", "resume", "dry-run"});
  made.example("train --text book.txt --out run --scheme mhe_mul --steps 2000", "a language model");
  made.example("train --task mlm --text book.txt --out encoder --scheme mhe_add", "an encoder, on masked tokens");
  made.example(
      "train --task translation --source train.de --target train.en --validation-source valid.de "
      "--validation-target valid.en --out translator",
      "a model that translates");
  made.example("train --task image --images mnist --out digits", "an image classifier");
  return made;
}

void TrainCommand::make_paths_whole() {
  headshare::make_paths_whole(&task);
  for (std::string* model : {&start_from, &like}) *model = whole_path(*model);
}

bool trains_tokenizer(const TaskOptions& task) {
  if (!task_family(task.task).reads_text()) return false;
  const auto& translation = task.own<TranslationTaskOptions>();
  const bool source = task.task == "translation" && translation.separate_tokenizers;
  if (source && translation.source_tokenizer_path.empty()) return true;
  return task.own<TextOptions>().tokenizer_path.empty() && !task.own<TextOptions>().distillation.given();
}

void refuse_idle_options(const Arguments& arguments, TrainCommand command) {
  const TaskFamily& family = task_family(command.task.task);
  arguments.refuse_idle(idle_options(command.task, command.train));
  TextOptions& text = command.task.own<TextOptions>();
  if (!text.distillation.given()) arguments.refuse_idle(options_of_teachers(), "needs --teacher MODEL");
  if (!text.data.validation_text.empty()) {
    arguments.refuse_idle({"validation-fraction"},
                          "is held out of --text, and --validation-text is the validation part");
  }
  if (!text.data.test_text.empty()) {
    arguments.refuse_idle({"test-fraction"}, "is held out of --text, and --test-text is the test part");
  }
  // A model's own tokenizer is looked at where the model is.
  if (arguments.asked("tokenizer-path") && command.start_from.empty() && command.like.empty() &&
      !trains_tokenizer(command.task)) {
    for (const Field& one : fields(text.tokenizer)) {
      arguments.refuse_idle({one.name},
                            "is about a tokenizer that is made, and --tokenizer-path names one that there is");
    }
  }
  const bool judged =
      !family.learns_from_text() || !text.data.validation_text.empty() || text.data.validation_fraction > 0;
  if (!judged) arguments.refuse_idle({"patience"}, "stops a run by its validation part, and there is none");
  if (run_processes().size() == 1) arguments.refuse_idle({"shard-optimizer"}, kNoShards);
  if (command.dry_run) arguments.refuse_idle({"json"}, "is about the result, and --dry-run has none");
}

Resumed<TrainCommand> resumed_train_command(const Arguments& typed, const std::string& out) {
  Resumed<TrainCommand> both = resumed<TrainCommand>(typed, out, {.free = free_options(), .what = "the run in " + out});
  note_other_threads(both.began.runtime, both.command.runtime);
  return both;
}

}  // namespace headshare
