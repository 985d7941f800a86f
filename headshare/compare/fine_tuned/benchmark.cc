#include "headshare/compare/fine_tuned/benchmark.h"

#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/compare/measure.h"
#include "headshare/data/hash.h"
#include "headshare/tasks/finetune/fine_tuning_options.h"
#include "headshare/tasks/masked/masked_language_model.h"
#include "headshare/train/training_shape.h"

namespace headshare {
namespace {

double training_seconds(FineTuneJob& job, const Rehearsal& rehearsal) {
  const BenchmarkOptions& options = rehearsal.options.own<BenchmarkOptions>();
  const std::vector<double> rates = values_of(options.tuning.learning_rates);
  const FineTuneRun run{job, options.job.tuning, options.tuning, rates.front(), /*seed=*/0, rehearsal.device};
  const TrainOptions train = train_options(run);
  const std::unique_ptr<Task> task = job.start(/*seed=*/0, rehearsal.device, training_shape(train));
  return seconds_per_step(*task, train, rehearsal.device) * static_cast<double>(train.steps) *
         static_cast<double>(rates.size());
}

std::optional<double> in_per_cent(std::optional<double> goal, const FineTuneJob& job) {
  if (goal) *goal *= 100 / job.full_goal();
  return goal;
}

// Adds the score of guessing in each task, and in the mean of all where it is known of each.
void add_guessing(const std::vector<BenchmarkTask>& tasks, Subject* subject) {
  double sum = 0;
  bool all = true;
  for (const BenchmarkTask& task : tasks) {
    const std::optional<double>& guessing = subject->has_test_part ? task.test_guessing : task.guessing;
    subject->task_chances.push_back(guessing);
    all = all && guessing;
    sum += guessing.value_or(0);
  }
  if (all) subject->chance = sum / static_cast<double>(tasks.size());
}

// Names the files of a task that has no place in the directory of a suite.
std::string named_files(const TaskFiles& files) {
  std::string text;
  for (const std::string* file : {&files.train, &files.validation, &files.test}) {
    if (!file->empty()) text += (text.empty() ? "" : ", ") + fs::path(*file).filename().string();
  }
  return text.empty() ? "" : " (" + text + ")";
}

}  // namespace

std::vector<BenchmarkTask> read_benchmark(const Rehearsal& rehearsal) {
  const ComparisonOptions& options = rehearsal.options;
  const bool suite = fine_tuning_task(options.task).data == DataLayout::kSuite;
  std::vector<BenchmarkTask> tasks;
  for (const std::string& name : fine_tuning_jobs(options)) {
    try {
      const auto job = open_job(name, options.own<BenchmarkOptions>().job, rehearsal.encoder);
      tasks.push_back({.name = name,
                       .edition = job->edition(),
                       .examples = job->examples(),
                       .validation_examples = job->validation_examples(),
                       .fingerprint = job->fingerprint(),
                       .scores_test = job->scores_test(),
                       .guessing = in_per_cent(job->guessing(/*test=*/false), *job),
                       .test_guessing = in_per_cent(job->guessing(/*test=*/true), *job),
                       .notes = job->notes(),
                       .training_seconds = rehearsal.timed ? training_seconds(*job, rehearsal) : 0});
      const ClassCounts classes = job->classes();
      if (!classes.empty()) tasks.back().notes.push_back(class_note(classes));
    } catch (const Error& error) {
      const char* way_out = suite ? "; --tasks a,b,... leaves a task out" : "";
      throw Error(name + ": " + in_fine_tuning_words(error.what()) + way_out);
    }
  }
  return tasks;
}

LoadedEncoder stand_in_encoder(const ComparisonOptions& options) {
  const TokenizerOptions letters{.kind = TokenizerKind::kWordPiece, .vocabulary_size = 8, .min_count = 1};
  bool given = false;
  LoadedEncoder loaded;
  loaded.tokenizer = train_tokenizer(letters, [&given](std::string* chunk) {
    *chunk = "a b c\n";  // eight tokens with the special ones
    return !std::exchange(given, true);
  });
  TransformerOptions model = options.model;
  model.vocabulary = loaded.tokenizer->vocabulary_size();
  model.layers = 1;
  model.attention.scheme = "mha";
  MaskedOptions masked = options.own<MaskedOptions>();
  masked.encoder.embedding = {};  // a table, as the tokenizer has a vocabulary
  loaded.model = Encoder(encoder_options(model, masked, EncoderTask::kMasked));
  initialise(*loaded.model, /*seed=*/0);
  return loaded;
}

Subject benchmark_subject(const ComparisonOptions& options, const std::vector<BenchmarkTask>& tasks,
                          const EncoderSet& encoders) {
  const FineTuningTask& kind = fine_tuning_task(options.task);
  Subject subject{.name = kind.name,
                  .sentence = kind.sentence,
                  .data = "",
                  .measure = kind.measure,
                  .direction = Direction::kHigherIsBetter,
                  .block = "tasks",
                  .has_test_part = true,
                  .full_scale = 100};
  std::string fingerprints;
  for (const BenchmarkTask& task : tasks) {
    fingerprints += task.fingerprint;
    if (!task.edition.empty()) subject.name += "-" + task.edition;  // only SQuAD has editions, a benchmark of one task
    subject.data +=
        join_text(subject.data.empty() ? "" : ", ", task.name, " ", format_count(static_cast<double>(task.examples)),
                  " + ", format_count(static_cast<double>(task.validation_examples)));
    subject.has_test_part = subject.has_test_part && task.scores_test;
    subject.tasks.push_back(task.name);
  }
  add_guessing(tasks, &subject);
  subject.data += " examples to train and validate on" + named_files(options.own<BenchmarkOptions>().job.files) +
                  "; encoders that learned from " + encoders.described();
  subject.fingerprint = content_hash(fingerprints);
  subject.encoders = encoders.kind();
  return subject;
}

}  // namespace headshare
