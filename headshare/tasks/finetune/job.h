// One task to fine-tune on: its data, the models that begin on it, and how they are judged in the end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headshare/base/file.h"
#include "headshare/data/benchmarks/examples.h"
#include "headshare/metrics/coverage.h"
#include "headshare/models/size.h"
#include "headshare/tasks/finetune/options.h"
#include "headshare/tasks/finetune/squad_task.h"
#include "headshare/tasks/finetune/tuned_teacher.h"
#include "headshare/train/task.h"

namespace headshare {

// Where a task's parts lie.
struct TaskFiles {
  std::string data =
      {};  // a directory as the official archives unpack: glue/CoLA/train.tsv or CoLA/train.tsv, also .gz
  std::string train = {};  // files that take the place of those found there
  std::string validation = {};
  std::string test = {};
};

Fields fields(TaskFiles& files);

// Everything that determines a task's data and model, but for the trained encoder and the seed.
struct JobOptions {
  TaskFiles files = {};
  OwnTable table = {};
  FineTuneOptions tuning = {};
  WindowsOptions windows = {};
  AnswerOptions answers = {};
  DistillationOptions distillation = {};
};

// MNLI's mismatched half, as a task and as a part of MNLI.
inline constexpr const char* kMismatched = "mnli-mm";

// What a model reached on a part of a task's data.
struct PartScores {
  std::string part;  // "validation", "test", or the task whose part it is: "mnli-mm"
  std::vector<Score> scores = {};
  double goal = 0;  // the number that stands for all of them
  int64_t examples = 0;
  std::optional<Coverage> coverage = {};
};

// Classes with how many examples each has.
using ClassCounts = std::vector<std::pair<std::string, int64_t>>;

// "32 training examples; 0 50.0 %, 1 50.0 %": what an accuracy is to be read against.
std::string class_note(const ClassCounts& classes);

class FineTuneJob {
 public:
  virtual ~FineTuneJob() = default;

  const std::string& name() const { return name_; }  // "glue/cola"
  const std::vector<std::string>& notes() const { return notes_; }

  // Training examples of an epoch (SQuAD: windows).
  virtual int64_t examples() const = 0;
  virtual int64_t validation_examples() const = 0;

  // "v1.1" of a benchmark that has several; "".
  virtual std::string edition() const { return ""; }

  // The goal of a model that makes no mistake: 1, or 100 for scores in per cent.
  virtual double full_goal() const { return 1; }

  // Whether the last part that judge() scores is a test part, which has no say in what is chosen.
  virtual bool scores_test() const { return false; }

  // The classes and how many training examples each has; empty where there are none.
  virtual ClassCounts classes() const { return {}; }

  // The goal that is reached by giving the most frequent answer of the training part to every question: of the test
  // part where scores_test() and `test`, else in what average_goal() is of. Absent where there is no such answer.
  virtual std::optional<double> guessing(bool /*test*/) const { return {}; }

  // 32 hexadecimal digits of all data that train and score models, as they read it; not of a teacher.
  virtual std::string fingerprint() const = 0;

  // Throws Error when the encoder cannot be begun with or a training step would not fit into memory: refused now rather
  // than in the middle of a grid. Of `shape` the loop fills in what it decides.
  virtual void check_start(c10::Device device, TrainingShape shape) const = 0;

  // A model with the trained weights and a new head, drawn from `seed`. The job must outlive the task. Throws Error as
  // check_start() does.
  virtual std::unique_ptr<Task> start(uint64_t seed, c10::Device device, TrainingShape shape) = 0;

  // Every labelled part, the validation part first, scored with the model as it is now; what it answers is written into
  // `directory` (which exists), PART.tsv, PART.jsonl or PART.json, in the form in which the task's scorer takes it.
  virtual std::vector<PartScores> judge(Task& task, const fs::path& directory, const Task::Progress& progress) = 0;

 protected:
  explicit FineTuneJob(std::string name) : name_(std::move(name)) {}

  std::string name_;
  std::vector<std::string> notes_;
};

// The names of all tasks: "glue/cola", ..., "superglue/boolq", ..., "squad", "classify", "pair", "regress".
std::vector<std::string> job_names();

// What a task's directory is called: "glue-cola".
std::string job_folder(std::string name);

// The tasks meant by what a user wrote: a suite stands for all its tasks that can be trained on, "cola" for
// "glue/cola"; a name that both suites have is refused. Throws Error, with the nearest name, for an unknown one.
std::vector<std::string> expand_job_names(const std::vector<std::string>& names);

// Reads a task's data. The encoder gives tokenizer, context and weights; both are shared. Throws Error for what readers
// refuse, for parts that are missing, naming the option that gives them, and for parts that cannot train or score a
// model.
std::unique_ptr<FineTuneJob> open_job(const std::string& name, const JobOptions& options, const LoadedEncoder& trained);

}  // namespace headshare
