#include "headshare/tasks/finetune/fine_tune_grid.h"

#include "headshare/base/files/output_mark.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/data/noted_fingerprint.h"
#include "headshare/models/noted_weights.h"
#include "headshare/tasks/finetune/predict.h"
#include "headshare/train/launch_file.h"
#include "headshare/train/training_shape.h"

namespace headshare {
namespace {

constexpr const char* kDataFile = "data.json";

OutputMark fine_tuning_mark(const fs::path& out) {
  std::vector<std::string> names = {kResolvedFile, "results.json", kWeightsFile,
                                    kTeacherFile,  kLaunchFile,    job_folder(kImageJob)};
  for (const std::string& task : job_names()) names.push_back(job_folder(task));
  return OutputMark(out, {.verb = "finetune", .what = "a fine-tuning", .names = std::move(names)});
}

// Notes the data that trained and scored a task's finished models, and throws Error where it changed under them.
void note_data(const fs::path& out, const FineTuneJob& job) {
  const fs::path file = out / job_folder(job.name()) / kDataFile;
  make_directories(file.parent_path());
  remove_partials(file.parent_path());
  note_fingerprint(file, job.fingerprint(),
                   join_text("the data of ", job.name(), " changed since ", out.string(),
                             " was begun; use another --out, or --overwrite"));
}

// Trains all models of one task; the result keeps those of the best learning rate.
TaskResult run_job(const FineTuneGrid& grid, FineTuneJob& job, c10::Device device, FineTuneObserver& observer,
                   const std::function<bool()>& stop_requested) {
  for (const std::string& note : job.notes()) notice(note);
  if (!job.classes().empty()) notice(join_text(job.name(), ": ", class_note(job.classes())));
  if (const std::optional<double> guessing = job.guessing(/*test=*/false)) {
    notice(join_text(job.name(), ": the most frequent answer, given to every question, scores ",
                     format_fixed(*guessing, 4), " (the mean of its metrics)"));
  }
  std::vector<int64_t> seeds;
  for (int64_t i = 0; i < grid.seeds; ++i) seeds.push_back(grid.seed + i);
  const auto train = [&](double rate, int64_t seed) {
    if (any_process(grid.processes, stop_requested())) throw Interrupted("stopped");
    observer.on_model(job.name(), rate, seed);
    const fs::path directory = grid.out / job_folder(job.name()) / join_text("lr-", rate, "-seed-", seed);
    const FineTuneRun run{job, grid.job.tuning, grid.tuning, rate, seed, device, grid.processes, grid.shard_optimizer};
    FineTunedModel model = fine_tune(run, directory, grid.keep_models, &observer, stop_requested);
    observer.on_model_finished();
    return model;
  };
  const auto failed = [&](double rate, const Diverged& reason) {
    const std::string failure = join_text(job.name(), " with learning rate ", rate, ": ", reason.what());
    notice(failure);
    return failure;
  };
  return {.task = job.name(),
          .search = search_rates(values_of(grid.tuning.learning_rates), seeds, train, failed),
          .classes = job.classes(),
          .notes = job.notes(),
          .examples = job.examples()};
}

}  // namespace

FineTuneJobs open_jobs(const FineTuneGrid& grid, const std::vector<std::string>& tasks, const LoadedEncoder& trained,
                       c10::Device device) {
  check_learning_rates(grid.tuning);
  FineTuneJobs jobs;
  for (const std::string& task : tasks) jobs.push_back(open_job(task, grid.job, trained));
  check_starts(grid, jobs, device);
  return jobs;
}

void check_starts(const FineTuneGrid& grid, const FineTuneJobs& jobs, c10::Device device) {
  const double rate = grid.tuning.learning_rates.front().value;
  for (const auto& job : jobs) {
    const FineTuneRun run{*job, grid.job.tuning, grid.tuning, rate, grid.seed, device};
    job->check_start(device, training_shape(train_options(run)));
  }
}

void check_grid(const FineTuneGrid& grid) {
  fine_tuning_mark(grid.out).check();
  const bool begun = path_exists(grid.out / kResolvedFile);
  HS_CHECK(!begun || grid.resume || grid.overwrite, grid.out.string(),
           " holds a fine-tuning already; --resume continues it, --overwrite deletes it, or choose another --out");
}

void begin_grid(const FineTuneGrid& grid, const FineTuneJobs& jobs, const fs::path& checkpoint) {
  const OutputMark mark = fine_tuning_mark(grid.out);
  if (!grid.resume) mark.clear();  // clears also what a call noted that ended before it wrote its options
  mark.set();
  note_weights(grid.out, checkpoint);
  const DistillationOptions& distillation = grid.job.distillation;
  if (distillation.given()) {
    note_weights(grid.out, find_checkpoint(find_tuned_model(distillation.teacher)), kTeacherFile);
  }
  for (const auto& job : jobs) note_data(grid.out, *job);
}

std::vector<TaskResult> run_grid(const FineTuneGrid& grid, const FineTuneJobs& jobs, c10::Device device,
                                 FineTuneObserver& observer, const std::function<bool()>& stop_requested) {
  std::vector<TaskResult> results;
  for (const auto& job : jobs) results.push_back(run_job(grid, *job, device, observer, stop_requested));
  return results;
}

}  // namespace headshare
