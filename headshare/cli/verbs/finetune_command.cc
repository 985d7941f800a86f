// headshare finetune adapts a trained encoder to labelled texts, or a vision transformer to labelled images, with
// several seeds and learning rates.
#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "headshare/base/files/directory_lock.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/arguments/resumable.h"
#include "headshare/cli/tables/finetune_table.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/progress.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/host/launch.h"
#include "headshare/host/model_input.h"
#include "headshare/report/statistics/wording.h"
#include "headshare/tasks/finetune/fine_tune_grid.h"
#include "headshare/tasks/finetune/predict.h"
#include "headshare/tasks/images/image_job.h"

namespace headshare {
namespace {

struct FineTuneCommand {
  static constexpr const char* kVerb = "finetune";

  std::string model;
  std::vector<std::string> tasks;
  std::string out;
  bool resume = false;
  bool overwrite = false;
  bool json = false;
  bool keep_models = true;
  bool shard_optimizer = false;
  int64_t seeds = 3;
  int64_t seed = 0;
  JobOptions job;
  FineTuneLearning tuning;
  ImageTuningOptions images;
  RuntimeOptions runtime;

  Fields run_fields() {
    return {
        naming_model(field("model", &model, "the model, where it is not named as MODEL")),
        field("task", &tasks,
              "glue and superglue (all their tasks), single ones (cola, superglue/rte), squad; of your own table "
              "classify (a class for a text), pair (for two texts), regress (a number, for one or two)"),
        naming_directory(
            field("out", &out, "directory for models, answers and results.json", {.aliases = {"output-dir"}})),
        field("seeds", &seeds, "models for each task and learning rate, differing in their seed",
              {.min = 1, .max = 1000}),
        field("seed", &seed, "the first seed: of new heads, the order of examples and dropout", {.min = 0}),
        field("resume", &resume, "go on in --out: finished models are kept, a begun one is continued"),
        field("overwrite", &overwrite, "delete what an earlier call left in --out first"),
        field("keep-models", &keep_models, "keep the best model of each run (and not only its answers and scores)"),
        field("json", &json, "print the results as one JSON object"),
    };
  }

  OptionGroups groups() {
    Fields answers = fields(job.windows);
    append(&answers, fields(job.answers));
    Fields computing = fields(runtime);
    computing.push_back(shard_field(&shard_optimizer));
    return {option_group("Run", run_fields()),
            option_group("Data", data_fields()),
            option_group("Images", fields(images)),
            option_group("Fine-tuning", fields(job.tuning)),
            option_group("Learning", fields(tuning)),
            option_group("Distillation", tuned_teacher_fields(job.distillation)),
            option_group("Answers in texts", std::move(answers)),
            option_group("Computing", std::move(computing))};
  }

  void forget_call() { resume = overwrite = json = false; }

  void make_paths_whole() {
    for (std::string* path : {&model, &job.files.data, &job.files.train, &job.files.validation, &job.files.test,
                              &job.distillation.teacher, &images.data.images}) {
      *path = whole_path(*path);
    }
  }

  FineTuneGrid grid() const {
    return {.out = out,
            .resume = resume,
            .overwrite = overwrite,
            .keep_models = keep_models,
            .seeds = seeds,
            .seed = seed,
            .job = job,
            .tuning = tuning,
            .processes = run_processes(),
            .shard_optimizer = shard_optimizer};
  }

  Fields data_fields() {
    Fields list = fields(job.files);
    append(&list, fields(job.table));
    return list;
  }
};

Arguments arguments_of(FineTuneCommand& command) {
  Arguments made(
      FineTuneCommand::kVerb,
      "Fine-tunes a trained encoder on labelled texts and scores it as the task's own scorer does, or a vision "
      "transformer on labelled images.");
  made.optional("MODEL",
                "a trained or imported encoder, or vision transformer for --images: a checkpoint or run directory",
                &command.model);
  made.groups(command.groups());
  made.common({"task", "out", "images", "data", "train", "validation-fraction", "epochs", "batch-size", "learning-rate",
               "seeds", "train-examples", "max-length", "resume"});
  made.example("finetune encoder --task classify --train labelled.tsv --validation-fraction 0.2 --out tuned",
               "your own table with the columns text and label");
  made.example("finetune encoder --task cola --data glue/ --seeds 3 --out cola",
               "a task of GLUE, from the folder with all of them");
  made.example("finetune vit --images flowers --image-size 96 --learning-rate 1e-4,3e-4 --out flowers-vit",
               "images in a folder for each class, at another size");
  made.note(
      "The epoch that is best on the validation part is kept, and its scores are reported: they are a little too "
      "good, as the choice was made by the same examples. A --test part with labels has no such bias.");
  made.note(
      "What a model answered lies beside its scores. Of SQuAD v2.0 validation.json has the best span of every "
      "question and validation-null-odds.json how much likelier no answer is; exact_match and f1 are those of "
      "`headshare score squad validation.json --gold FILE --null-odds validation-null-odds.json --null-threshold "
      "0`. Where a part of FILE was judged, its gold is validation-gold.json.");
  made.note(
      "Where a loss or a gradient stops being finite, that learning rate is left out; a task for which none is left "
      "has no result, the "
      "others have, and the call ends with an error.");
  return made;
}

std::string fine_tuning_text(const Evaluation& evaluation) {
  std::string text = "loss " + format_fixed(evaluation.loss, 4);
  for (const Score& score : evaluation.scores) {
    if (!score.name.ends_with("total")) text += join_text("  ", score.name, " ", score_value_text(score.value, 4));
  }
  return text;
}

// Throws UsageError for options that images give no meaning.
void refuse_options_of_texts(const Arguments& arguments, FineTuneCommand command) {
  Fields texts = command.data_fields();
  append(&texts, fields(command.job.windows));
  append(&texts, fields(command.job.answers));
  append(&texts, tuned_teacher_fields(command.job.distillation));
  std::vector<std::string> names = names_of(texts);
  names.insert(names.end(), {"max-length", "group-by-length"});
  arguments.refuse_idle(names, "is about texts, and --images names images");
  arguments.refuse_idle({"validation-fraction"}, "holds texts back; images have --image-validation-fraction");
  if (run_processes().size() == 1) arguments.refuse_idle({"shard-optimizer"}, kNoShards);
}

// Throws UsageError for options that would change nothing for these tasks: a user who sets one believes that it
// matters.
void refuse_idle_options(const Arguments& arguments, FineTuneCommand command) {
  if (!command.job.distillation.given()) {
    arguments.refuse_idle(options_of_teachers(), "needs --teacher MODEL");
  }
  if (command.images.given()) return refuse_options_of_texts(arguments, command);
  arguments.refuse_idle(names_of(fields(command.images)), "is about images, which --images DIR names");
  const std::vector<std::string> tasks = as_usage([&] { return expand_job_names(command.tasks); });
  const auto any = [&](const std::function<bool(const std::string&)>& is) {
    return std::any_of(tasks.begin(), tasks.end(), is);
  };
  const auto named = [](const std::string& task) { return task.find('/') != std::string::npos; };
  const auto squad = [](const std::string& task) { return task == kSquadTask; };
  if (!any([&](const std::string& task) { return !named(task) && !squad(task); })) {
    arguments.refuse_idle(names_of(fields(command.job.table)), "is about your own table (classify, pair, regress)");
  }
  if (!any(squad)) {
    Fields answers = fields(command.job.windows);
    append(&answers, fields(command.job.answers));
    arguments.refuse_idle(names_of(answers), "is about --task squad");
  }
  if (run_processes().size() == 1) arguments.refuse_idle({"shard-optimizer"}, kNoShards);
  if (!any(named)) arguments.refuse_idle({"data"}, "is about the tasks of GLUE and SuperGLUE; name files with --train");
}

// Throws Error for a teacher of several tasks: a teacher teaches one task.
void check_one_task(const FineTuneCommand& command, const std::vector<std::string>& tasks) {
  DistillationOptions distillation = command.job.distillation;
  if (distillation.given()) distillation.teacher = find_tuned_model(distillation.teacher).string();
  check_distillation(distillation);
  HS_CHECK(!command.job.distillation.given() || tasks.size() == 1, "--teacher was fine-tuned on one task, and --task ",
           "names ", tasks.size(), ": ", list_text(tasks), "; fine-tune on each of them with a teacher of its own");
}

// FineTuningProgress shows how far the whole grid is.
class FineTuningProgress : public FineTuneObserver {
 public:
  explicit FineTuningProgress(int64_t models) : models_(models) {}

  void on_model(const std::string& task, double learning_rate, int64_t seed) override {
    what_ = join_text(task, " lr ", learning_rate, " seed ", seed);
  }
  void on_model_finished() override {
    ++done_;
    share_ = 0;
  }

  void on_step(const StepReport& report) override {
    share_ = static_cast<double>(report.step) / static_cast<double>(report.total_steps);
    show(join_text("step ", report.step, "/", report.total_steps, "  loss ", format_fixed(report.loss, 4)));
  }
  void on_evaluation_progress(int64_t done, int64_t total) override {
    show(join_text("evaluating ", done, "/", total));
  }
  void on_evaluation(const EvaluationReport& report) override {
    print_status(join_text(what_, ", step ", report.step, ": ", fine_tuning_text(report.evaluation),
                           report.best ? " (best so far)" : ""));
  }

  void on_teacher(const Evaluation& teacher) override {
    if (std::exchange(teacher_shown_, true)) return;  // every model of the grid has the same
    print_status("teacher: " + fine_tuning_text(teacher));
  }

  void hide() { line_.hide(); }

 private:
  void show(const std::string& details) {
    line_.update(static_cast<double>(done_) + share_, static_cast<double>(models_), what_ + "  " + details);
  }

  ProgressLine line_{"finetune"};
  std::string what_;
  int64_t models_;
  int64_t done_ = 0;
  bool teacher_shown_ = false;
  double share_ = 0;
};

void print_results(const FineTuneCommand& command, const std::vector<TaskResult>& results,
                   const nlohmann::ordered_json& options) {
  const nlohmann::ordered_json object = results_object(command.model, results, options);
  write_file(fs::path(command.out) / "results.json", json_text(object, 2) + "\n");
  print_result(
      command.json, [&] { return json_text(object, 2) + "\n"; }, [&] { print(results_text(results)); });
}

// OpenedJobs are what is fine-tuned on, and the checkpoint that all models begin with.
struct OpenedJobs {
  FineTuneJobs jobs;
  fs::path checkpoint;
};

OpenedJobs open_images(const FineTuneCommand& command, const FineTuneGrid& grid, c10::Device device) {
  const LoadedVision trained = load_vision_model(command.model);
  OpenedJobs opened{.jobs = {}, .checkpoint = trained.directory};
  ProgressLine line("images");
  opened.jobs.push_back(
      open_image_job(command.images, command.job.tuning, trained, [&line](int64_t done, int64_t total) {
        check_interrupted();
        line.update(static_cast<double>(done), static_cast<double>(total));
      }));
  check_starts(grid, opened.jobs, device);
  return opened;
}

OpenedJobs open_texts(const FineTuneCommand& command, const FineTuneGrid& grid, c10::Device device) {
  const LoadedEncoder trained = load_encoder_model(command.model);
  return {.jobs = open_jobs(grid, expand_job_names(command.tasks), trained, device), .checkpoint = trained.directory};
}

// Throws UsageError where the model reads texts and images are given, or the other way round, and for tasks that do not
// fit together.
void check_tasks(const FineTuneCommand& command) {
  const ModelOptions model = read_options(find_checkpoint(command.model));
  const bool vision = model.find<VisionOptions>() != nullptr;
  as_usage([&] {
    HS_CHECK(!vision || command.images.given(), command.model, " reads images: name labelled ones with --images DIR");
    HS_CHECK(vision || !command.images.given(), "--images is for vision transformers, and ", command.model, " is ",
             model.kind().what_it_does(model));
    if (command.images.given()) {
      HS_CHECK(command.tasks.empty() || command.tasks == std::vector<std::string>{kImageJob}, "--task ",
               list_text(command.tasks), " is about texts, and --images names images; leave one of them out");
    } else {
      check_one_task(command, expand_job_names(command.tasks));
    }
  });
}

int finetune(FineTuneCommand& command) {
  check_tasks(command);
  as_usage([&] { check_learning_rates(command.tuning); });
  const std::string& teacher = command.job.distillation.teacher;
  if (!teacher.empty() && !command.resume) {
    as_usage([&] { refuse_model_in_out("teacher", find_tuned_model(teacher), command.out); });
  }
  Reducer& processes = run_processes();
  const c10::Device device = start_runtime(command.runtime);
  check_same_device(processes, device);
  check_micro_batches(processes, command.tuning.accumulation);
  warn_if_no_faster(command.tuning.precision, device);
  command.tuning.precision = resolve_precision(command.tuning.precision, device);
  const FineTuneGrid grid = command.grid();
  std::optional<DirectoryLock> lock;
  on_process_0(processes, [&](const Beat& /*beat*/) {
    lock.emplace(grid.out);
    check_grid(grid);
  });
  const auto [jobs, checkpoint] =
      command.images.given() ? open_images(command, grid, device) : open_texts(command, grid, device);
  if (processes.size() > 1) {  // the fingerprint of a job reads all of its rows
    std::string fingerprints;
    for (const auto& job : jobs) fingerprints += job->fingerprint() + " ";
    check_same_data(processes, fingerprints);
  }
  if (!teacher.empty()) check_same_teacher(processes, find_checkpoint(find_tuned_model(teacher)));
  nlohmann::ordered_json options;
  on_process_0(processes, [&](const Beat& /*beat*/) {
    begin_grid(grid, jobs, checkpoint);
    options = write_resolved(command, grid.out);
    note_launch(grid.out);
  });
  FineTuningProgress progress(static_cast<int64_t>(jobs.size() * command.tuning.learning_rates.size()) * command.seeds);
  const std::vector<TaskResult> results = run_grid(grid, jobs, device, progress, stop_requested);
  progress.hide();
  if (leads(processes)) print_results(command, results, options);
  for (const TaskResult& result : results) {
    HS_CHECK(!result.search.models.empty(), result.search.failures.back());
  }
  return kOk;
}

// Reads the options of an earlier call. Finished models would not know of other options than those, except for how much
// is done and where.
FineTuneCommand resumed_fine_tuning(const Arguments& typed, const std::string& out) {
  const std::set<std::string> free = {"out",           "resume",  "json",   "seeds",          "task",
                                      "learning-rate", "threads", "device", "shard-optimizer"};
  Resumed<FineTuneCommand> both =
      resumed<FineTuneCommand>(typed, out, {.free = free, .what = "the fine-tuning in " + out});
  note_other_threads(both.began.runtime, both.command.runtime);
  return std::move(both.command);
}

}  // namespace

int run_finetune(const Words& words) {
  FineTuneCommand command;
  Arguments arguments = arguments_of(command);
  if (!arguments.parse(words)) return kOk;
  check_launched_alike(run_processes(), command.groups());
  if (!command.resume && goes_on_after_restart(run_processes(), command.out)) {
    return run_finetune(resuming_words(command, arguments));
  }
  if (command.out.empty()) throw UsageError("--out is missing: where should the models be kept?");
  check_resume(command);
  if (command.resume) command = resumed_fine_tuning(arguments, command.out);
  if (command.model.empty()) throw UsageError("MODEL is missing: name the model to fine-tune");
  if (command.tasks.empty() && !command.images.given()) {
    throw UsageError(
        "--task is missing, such as --task glue, --task cola or --task classify; a vision transformer "
        "needs --images DIR");
  }
  if (!command.resume) refuse_idle_options(arguments, command);
  catch_interrupts();
  return work_resumably(command, [&] { return finetune(command); });
}

}  // namespace headshare
