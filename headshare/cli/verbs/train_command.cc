// headshare train trains one model on text.
#include "headshare/cli/verbs/train_command.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/arguments/resumable.h"
#include "headshare/cli/inputs/reading_progress.h"
#include "headshare/cli/tables/training_progress.h"
#include "headshare/cli/terminal/exit_codes.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/progress.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/train_arguments.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/data/text/kept_input.h"
#include "headshare/host/launch.h"
#include "headshare/host/model_input.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/noted_weights.h"
#include "headshare/models/size.h"
#include "headshare/ops/device_memory.h"
#include "headshare/report/statistics/wording.h"
#include "headshare/tasks/family.h"
#include "headshare/tasks/language/score_text.h"
#include "headshare/tasks/start_from.h"
#include "headshare/text/tokenizer_file.h"
#include "headshare/train/file_observers.h"
#include "headshare/train/jsonl.h"
#include "headshare/train/plateau.h"
#include "headshare/train/trainer.h"
#include "headshare/train/training_shape.h"

namespace headshare {
namespace {

// Returns what a task starts with, without the user's own options but those that decide it.
TrainCommand untouched(const std::string& task, const TaskOptions& asked) {
  TrainCommand command;
  command.task.task = task;
  task_family(task).set_defaults(asked, &command.task, &command.train);
  return command;
}

std::string task_of_teacher(const TrainCommand& command) {
  return as_usage([&] {
    const ModelOptions teacher = read_options(find_checkpoint(command.task.own<TextOptions>().distillation.teacher));
    return start_task({.directory = {}, .options = teacher, .tokenizer = nullptr});
  });
}

// Returns the options that everything else comes on top of: the task's first, then those of the model to start from or
// to be like. `asked` was read from `typed` on top of the plainest defaults.
TrainCommand beginning(const TrainCommand& asked, const Arguments& typed, std::optional<StartModel>* start) {
  std::string task = asked.task.task;
  std::optional<StartModel> model;  // whose options are taken
  if (!typed.asks_for_help() && !asked.resume) {
    if (!asked.start_from.empty() && !asked.like.empty()) {
      throw UsageError("--start-from takes the weights of a model and --like does not; leave one of them out");
    }
    const std::string path = asked.start_from.empty() ? asked.like : asked.start_from;
    if (!path.empty()) model = open_start(path);
    if (model && !typed.given("task")) task = start_task(*model);
    if (!model && asked.task.own<TextOptions>().distillation.given() && !typed.given("task"))
      task = task_of_teacher(asked);
  }
  if (model && !asked.like.empty()) as_usage([&] { check_start_task(*model, task); });
  TrainCommand command = untouched(task, asked.task);
  if (model && task == start_task(*model)) take_options(*model, &command.task);
  if (!asked.start_from.empty()) *start = std::move(model);
  return command;
}

// Checks what the user asks for beside the model to start from.
void check_start(const StartModel& start, const Arguments& arguments, TrainCommand* command) {
  const auto given = [&](const std::string& name) { return arguments.given(name); };
  const std::vector<std::string> differing = as_usage([&] { return keep_to_start(start, given, &command->task); });
  if (differing.empty()) return;
  notice(join_text("the model differs from ", start.directory.string(), " in ", list_text(differing)));
}

// A tokenizer that is asked for takes the place of the one of the model that --like names, and so does its vocabulary.
void prefer_own_tokenizer(const Arguments& arguments, TrainCommand* command) {
  TextOptions& text = command->task.own<TextOptions>();
  const bool path = arguments.given("tokenizer-path");
  if (!path && !arguments.given("tokenizer") && !arguments.given("vocabulary-size")) return;
  if (!path) text.tokenizer_path.clear();
  if (!arguments.given("model-vocabulary")) text.vocabulary.reset();
}

void keep_tokenizer_of_teacher(const Arguments& arguments, const TrainCommand& command) {
  const auto given = [&](const std::string& name) { return arguments.given(name); };
  as_usage([&] { keep_to_teacher(given, command.task.own<TextOptions>()); });
}

void refuse_models_in_out(const std::optional<StartModel>& start, const TrainCommand& command) {
  if (start) refuse_model_in_out("start-from", start->directory, command.out);
  if (!command.like.empty()) refuse_model_in_out("like", find_checkpoint(command.like), command.out);
  const std::string& teacher = command.task.own<TextOptions>().distillation.teacher;
  if (!teacher.empty()) refuse_model_in_out("teacher", find_checkpoint(teacher), command.out);
}

// Checks what the options mean together, before any text is read. Returns the model as far as it is known.
ModelOptions check_options(const TrainCommand& command) {
  return as_usage([&] {
    check_task(command.task, untouched(command.task.task, command.task).task, {command.task});
    const TextOptions& text = command.task.own<TextOptions>();
    if (trains_tokenizer(command.task)) check_tokenizer_options(text.tokenizer);
    check_schedule(command.train.schedule, command.train.steps);
    const ModelOptions model = task_family(command.task.task).likely_model(command.task);
    check_teacher(text.distillation, model);  // its tokenizer and weights are the task's to look at
    return model;
  });
}

// Takes over the size of a tokenizer that is there already: it says what vocabulary the model will have.
void take_vocabulary(TrainCommand* command) {
  TextOptions& text = command->task.own<TextOptions>();
  if (text.vocabulary || text.tokenizer_path.empty()) return;
  text.vocabulary = model_vocabulary(text, *load_tokenizer(text.tokenizer_path));
}

void print_dry_run(TrainCommand command) {
  const TextOptions& text = command.task.own<TextOptions>();
  const bool known = text.vocabulary || !text.tokenizer_path.empty();
  take_vocabulary(&command);
  const ModelOptions options = check_options(command);
  const TransformerOptions& model = options.common();
  const ModelSize size = measure(options);
  print(join_text("model       ", options.kind().is_causal() ? "" : options.kind().name() + ", ",
                  model.attention.scheme, ", ", model.layers, " layers of ", model.attention.d_model, ", ",
                  model.attention.heads, " heads, context ", model.context, savings_text(model), "\n"));
  if (task_family(command.task.task).reads_text()) {
    print(join_text("vocabulary  ", model.vocabulary,
                    known ? "" : " (what the tokenizer will have, or 8192 where only the text can tell)", "\n"));
  }
  print(join_text("parameters  ", format_count(static_cast<double>(size.total_parameters)), ", attention ",
                  format_count(static_cast<double>(size.attention_parameters)), "\n"));
  if (size.cache_bytes_per_token > 0)
    print(join_text("cache       ", size.cache_bytes_per_token, " bytes per token\n"));
  if (size.source_cache_bytes_per_token > 0) {
    print(join_text("            ", size.source_cache_bytes_per_token, " bytes per token of the source\n"));
  }
  const DistillationOptions& distillation = command.task.own<TextOptions>().distillation;
  if (distillation.given()) {
    const TeacherModel teacher = find_teacher(distillation, options);
    const auto parameters = static_cast<double>(measure(teacher.options).total_parameters);
    print(join_text("teacher     ", teacher.directory.string(), ", ", format_count(parameters), " parameters\n"));
  }
  print(join_text("training    ", command.train.steps, " steps, about ",
                  format_bytes(likely_training_bytes(command.task, training_shape(command.train))), "\n"));
}

OutputMark run_mark(const fs::path& directory) {
  return OutputMark(
      directory, {.verb = "train", .what = "a run", .names = run_names(), .unmistakable = {kEventFiles, kKeptInputs}});
}

void check_target(const TrainCommand& command, const RunDirectory& directory, const OutputMark& mark) {
  mark.check();
  HS_CHECK(command.resume || command.overwrite || !directory.has_run(), directory.path().string(),
           " holds a run already; --resume continues it, --overwrite deletes it, or choose another --out");
}

// `unit` names what training counted: "tokens".
std::string result_text(const TrainResult& result, const std::optional<Evaluation>& test, const std::string& unit,
                        const std::string& out) {
  std::string text =
      join_text("trained      ", result.steps, " steps, ", format_count(static_cast<double>(result.tokens)), " ", unit,
                " in ", format_duration(result.seconds), ", ", format_count(result.tokens_per_second), " ", unit, "/s",
                result.stopped_early ? ", stopped early" : "", "\n");
  if (!result.best_model.empty()) {
    const bool is_loss = !std::signbit(result.best_loss);  // a score that should be large counts below 0, also 0 itself
    text += join_text("validation   ", is_loss ? "loss " : "score ", format_fixed(std::abs(result.best_loss), 4),
                      " at step ", result.best_step, " (best)\n");
  }
  if (const auto recovered = result.gap.recovered(result.best_loss)) {
    text += join_text("recovered    ", recovered_text(*recovered), " of the gap between the start (loss ",
                      format_fixed(*result.gap.start, 4), ") and the teacher (loss ",
                      format_fixed(*result.gap.teacher, 4), ")\n");
  } else if (result.gap.teacher) {
    text += join_text("teacher      loss ", format_fixed(*result.gap.teacher, 4), "\n");
  }
  if (test) {
    text += "test         loss " + format_fixed(test->loss, 4);
    for (const Score& one : test->scores) text += ", " + score_heading(one.name) + " " + score_value_text(one.value, 4);
    text += "\n";
    for (const Score& one : test->scores) {
      if (!one.signature.empty()) text += "             " + one.signature + "\n";
    }
  }
  return text + "model        " + (result.best_model.empty() ? out : result.best_model) + "\n";
}

// Scores the test part by the model that was best on validation.
std::optional<Evaluation> score_test(Task& task, const TrainResult& result) {
  if (!task.has(Part::kTest) || result.best_model.empty()) return std::nullopt;
  load_tensors(*task.model(), read_weights(result.best_model), result.best_model);
  ProgressLine line("test");
  return task.evaluate(Part::kTest, [&line](int64_t done, int64_t total) {
    check_interrupted();
    line.update(static_cast<double>(done), static_cast<double>(total));
  });
}

nlohmann::json result_object(const TrainResult& result, const std::optional<Evaluation>& test) {
  nlohmann::json object = to_json(result);
  if (test) {
    object["test_loss"] = test->loss;
    for (const Score& score : test->scores) {
      object["test_" + score.name] = score.value;
      if (!score.signature.empty()) object["test_" + score.name + "_signature"] = score.signature;
    }
  }
  return object;
}

// Returns null where there is no plateau to watch for.
std::unique_ptr<PlateauWatch> watch_plateau(Task& task) {
  const std::optional<double> entropy = task.unigram_entropy();
  if (!entropy) return nullptr;
  notice(join_text("unigram entropy of the training text: ", format_fixed(*entropy, 3), " nats a token; a loss above ",
                   percent_text(kPlateauShare), " of it has learnt little more than frequencies"));
  return std::make_unique<PlateauWatch>(*entropy, task.plateau_advice());
}

void note_unknown(const Experiment& experiment) {
  const double share = experiment.subject().unknown_share;
  if (share > 0) notice(unknown_line("", share));
}

// Makes the task with its model: new, or with the weights that it starts from. A checkpoint of this run brings its own.
std::unique_ptr<Task> make_task(const TrainCommand& command, const RunDirectory& directory, c10::Device device,
                                const Progress& progress) {
  const std::unique_ptr<Experiment> experiment = task_family(command.task.task).open(command.task, progress);
  note_unknown(*experiment);
  std::unique_ptr<Task> task =
      experiment->trial(command.task, static_cast<uint64_t>(command.train.seed), device, training_shape(command.train))
          .task;
  const bool goes_on = command.resume && !directory.resumable().empty();
  if (!command.start_from.empty() && !goes_on) load_start(open_start(command.start_from), *task->model());
  return task;
}

// Lets process 0 read the data first: the others then find what it kept of them.
std::unique_ptr<Task> make_task_in_turn(const TrainCommand& command, const KeptInputs& kept,
                                        const RunDirectory& directory, c10::Device device, Reducer& processes) {
  std::unique_ptr<Task> task;
  const auto make = [&](const Progress& progress) {
    task = kept.reading([&] { return make_task(command, directory, device, progress); });
  };
  on_process_0(processes, [&](const Beat& beat) {
    ProgressLine line("text");
    const Progress show = show_reading(line);
    make([&](const DataProgress& progress) {
      show(progress);
      beat();
    });
  });
  in_all_processes(processes, [&](const Beat& beat) {
    if (task != nullptr) return;
    make([&](const DataProgress&) {
      check_interrupted();
      beat();
    });
  });
  check_same_data(processes, task->state().dump());
  const std::string& teacher = command.task.own<TextOptions>().distillation.teacher;
  if (!teacher.empty()) check_same_teacher(processes, find_checkpoint(teacher));
  return task;
}

// Scores the test part, keeps the result and prints it.
void finish(const TrainCommand& command, Task& task, const TrainResult& result) {
  const std::optional<Evaluation> test = score_test(task, result);
  nlohmann::json object = result_object(result, test);
  if (const auto entropy = task.unigram_entropy()) object["unigram_entropy"] = *entropy;
  const int64_t peak = peak_device_bytes(task.model()->parameters().front().device());
  if (peak > 0) object["peak_device_bytes"] = peak;
  write_file(fs::path(command.out) / "result.json", json_text(object, 2) + "\n");
  if (test) write_outputs(command.out, test->outputs);
  const std::string unit = task_family(command.task.task).unit();
  print_result(
      command.json, [&] { return json_text(object, 2) + "\n"; },
      [&] { print(result_text(result, test, unit, command.out)); });
}

// Returns the training options with evaluations before the first step: of the start and of the teacher, where there are
// any.
TrainOptions with_start_of_curve(const TrainCommand& command) {
  TrainOptions options = command.train;
  options.evaluate_start = !command.start_from.empty();
  options.evaluate_teacher = command.task.own<TextOptions>().distillation.given();
  return options;
}

// Notes the teacher's weights: a run that goes on must not learn from another model than it began with.
void note_teacher(const TrainCommand& command) {
  const std::string& teacher = command.task.own<TextOptions>().distillation.teacher;
  if (!teacher.empty()) note_weights(command.out, find_checkpoint(teacher), kTeacherFile);
}

// Trains in process 0, which keeps what all of them compute. `start` is the step that the run goes on after; nothing
// for a new one.
int lead(const TrainCommand& command, const RunDirectory& directory, Task& task, Trainer& trainer,
         const std::optional<int64_t>& start) {
  TrainingProgress progress("training", task_family(command.task.task).unit());
  trainer.observe(&progress);
  const std::unique_ptr<PlateauWatch> plateau = watch_plateau(task);
  if (plateau != nullptr) trainer.observe(plateau.get());
  write_resolved(command, directory.path());
  note_launch(directory.path());
  const auto jsonl = make_jsonl_observer(directory.path() / "metrics.jsonl", start);
  trainer.observe(jsonl.get());
  std::unique_ptr<Observer> events;
  if (command.train.tensorboard) {
    events = make_tensorboard_observer(directory.path(), start);
    trainer.observe(events.get());
  }
  const TrainResult result = trainer.run();
  progress.finish();
  finish(command, task, result);
  return kOk;
}

// Returns the device and sets what else is chosen when the program runs.
c10::Device start(TrainCommand* command, Reducer& processes) {
  const c10::Device device = start_runtime(command->runtime);
  check_launched_alike(processes, command->groups());  // once more: models to start from and earlier calls set options
  check_same_device(processes, device);
  check_micro_batches(processes, command->train.accumulation);
  warn_if_no_faster(command->train.precision, device);
  command->train.precision = resolve_precision(command->train.precision, device);
  command->train.optimizer.shard = command->shard_optimizer;
  return device;
}

// Says that a run has had `done` steps with other learning rates than one with its present number of steps has.
void note_other_schedule(const TrainOptions& train, int64_t began_steps, int64_t done) {
  for (int64_t step = 0; step < done; ++step) {
    const double rate = learning_rate_at(train.schedule, step, began_steps);
    if (rate == learning_rate_at(train.schedule, step, train.steps)) continue;
    notice(join_text("the run was begun with --steps ", began_steps, " and goes on with ", train.steps, ": its ", done,
                     " steps so far had other learning rates than those of a run of ", train.steps, " steps"));
    return;
  }
}

// A run that goes on was begun with `began_steps`.
int train(TrainCommand& command, int64_t began_steps) {
  Reducer& processes = run_processes();
  const c10::Device device = start(&command, processes);
  std::optional<RunDirectory> directory;
  on_process_0(processes, [&](const Beat& /*beat*/) {
    directory.emplace(command.out);
    check_target(command, *directory, run_mark(command.out));
  });
  if (!directory) directory.emplace(command.out, /*looks_on=*/true);

  KeptInputs kept(directory->path(), &command.task.own<TextOptions>().data, processes.size());
  const std::unique_ptr<Task> task = make_task_in_turn(command, kept, *directory, device, processes);
  Trainer trainer(*task, with_start_of_curve(command), *directory, {}, stop_requested, processes);
  // Nothing of an earlier run is touched until everything that can be refused has been looked at.
  std::optional<int64_t> done;
  if (command.resume) {
    // A run that was stopped before its first checkpoint keeps nothing, not even the evaluation of step 0.
    done = trainer.resume().value_or(kNothingDone);
    notice(join_text("going on after step ", std::max<int64_t>(*done, 0), " of ", command.train.steps));
    note_other_schedule(command.train, began_steps, *done);
  }
  if (!leads(processes)) {
    trainer.run();
    return kOk;
  }
  const OutputMark mark = run_mark(directory->path());
  if (!command.resume) mark.clear(kept.names());
  mark.set();
  note_teacher(command);
  remove_partials(directory->checkpoints());  // of a killed call; ours by now
  kept.keep();
  return lead(command, *directory, *task, trainer, done);
}

}  // namespace

ModelOptions configured_model(const std::string& config) {
  TrainCommand asked;
  Arguments typed = arguments_of(asked);
  typed.parse({"--config", config});
  std::optional<StartModel> start;
  TrainCommand command = beginning(asked, typed, &start);
  arguments_of(command).repeat(typed);
  take_vocabulary(&command);
  return check_options(command);
}

int run_train(const Words& words) {
  TrainCommand asked;
  Arguments typed = arguments_of(asked);
  typed.read(words);
  if (!typed.asks_for_help()) check_launched_alike(run_processes(), asked.groups());
  if (!asked.resume && !typed.asks_for_help() && goes_on_after_restart(run_processes(), asked.out)) {
    return run_train(resuming_words(asked, typed));
  }
  std::optional<StartModel> start;
  TrainCommand command = beginning(asked, typed, &start);
  Arguments arguments = arguments_of(command);
  if (!arguments.repeat(typed)) return kOk;
  check_dry_run(command, "run");
  if (!command.resume) refuse_idle_options(arguments, command);
  if (start) check_start(*start, arguments, &command);
  if (!command.like.empty() && !command.resume) prefer_own_tokenizer(arguments, &command);
  if (!start && !command.resume) keep_tokenizer_of_teacher(arguments, command);
  if (command.dry_run) {
    print_dry_run(command);
    return kOk;
  }
  if (command.out.empty()) throw UsageError("--out is missing: name a directory for the run");
  check_resume(command);
  if (!command.resume) as_usage([&] { refuse_models_in_out(start, command); });
  int64_t began_steps = command.train.steps;
  if (command.resume) {
    Resumed<TrainCommand> both = resumed_train_command(typed, command.out);
    began_steps = both.began.train.steps;
    command = std::move(both.command);
  }
  check_options(command);
  catch_interrupts();
  return work_resumably(command, [&] { return train(command, began_steps); });
}

}  // namespace headshare
