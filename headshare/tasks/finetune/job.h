// A job is one task to fine-tune on: its data, the models that begin on it, and how they are scored in the end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/data/benchmarks/examples.h"
#include "headshare/metrics/coverage.h"
#include "headshare/models/size.h"
#include "headshare/tasks/finetune/fine_tuned_teacher.h"
#include "headshare/tasks/finetune/options.h"
#include "headshare/tasks/finetune/squad_task.h"
#include "headshare/train/task.h"

namespace headshare {

// TaskFiles tell where a task's parts lie.
struct TaskFiles {
  std::string data =
      {};  // a directory as the official archives unpack: glue/CoLA/train.tsv or CoLA/train.tsv, also .gz
  std::string train = {};  // files that take the place of those found there
  std::string validation = {};
  std::string test = {};
};

Fields fields(TaskFiles& files);

// JobOptions determine a task's data and model, but for the trained encoder and the seed.
struct JobOptions {
  TaskFiles files = {};
  OwnTable table = {};
  FineTuneOptions tuning = {};
  SquadWindowOptions windows = {};
  AnswerOptions answers = {};
  DistillationOptions distillation = {};
};

// The job of labelled images has this name; tasks/images makes it, from a vision transformer.
inline constexpr const char* kImageJob = "image";

// The mismatched half of MNLI has this name, as a task and as a part of MNLI.
inline constexpr const char* kMismatched = "mnli-mm";

// PartScores are what a model reached on a part of a task's data.
struct PartScores {
  std::string part;  // "validation", "test", or the task whose part it is: "mnli-mm"
  std::vector<Score> scores = {};
  double goal = 0;  // the number that stands for all of them
  int64_t examples = 0;
  std::optional<Coverage> coverage = {};
};

// ClassCounts tell how many examples each class has.
using ClassCounts = std::vector<std::pair<std::string, int64_t>>;

// Says what an accuracy is to be read against: "32 training examples; 0 50.0 %, 1 50.0 %".
std::string class_note(const ClassCounts& classes);

class FineTuneJob {
 public:
  virtual ~FineTuneJob() = default;

  const std::string& name() const { return name_; }  // "glue/cola"
  const std::vector<std::string>& notes() const { return notes_; }

  // Counts the training examples of an epoch (SQuAD: windows).
  virtual int64_t examples() const = 0;
  virtual int64_t validation_examples() const = 0;

  // Names the edition of a benchmark that has several, "v1.1"; "" for others.
  virtual std::string edition() const { return ""; }

  // Returns the goal of a model that makes no mistake: 1, or 100 for scores in per cent.
  virtual double full_goal() const { return 1; }

  // Tells whether the last part that judge() scores is a test part, which has no say in what is chosen.
  virtual bool scores_test() const { return false; }

  // Lists the classes and how many training examples each has; empty where there are none.
  virtual ClassCounts classes() const { return {}; }

  // Returns the goal that is reached by giving the most frequent answer of the training part to every question: the
  // goal on the test part where scores_test() and `test`, else what average_goal() would return. Absent where there is
  // no such answer.
  virtual std::optional<double> guessing(bool /*test*/) const { return {}; }

  // Returns 32 hexadecimal digits of all data that train and score models, as they read it; a teacher is not part of
  // it.
  virtual std::string fingerprint() const = 0;

  // Throws Error when the encoder cannot be begun with or a training step would not fit into memory: refused now rather
  // than in the middle of a grid. The loop fills in what it decides in `shape`.
  virtual void check_start(c10::Device device, TrainingShape shape) const = 0;

  // Makes a model with the trained weights and a new head, drawn from `seed`. The job must outlive the task. Throws
  // Error as check_start() does.
  virtual std::unique_ptr<Task> start(uint64_t seed, c10::Device device, TrainingShape shape) = 0;

  // Scores the model as it is now on every labelled part, the validation part first. Writes what it answers into
  // `directory` (which exists), PART.tsv, PART.jsonl or PART.json, in the form in which the task's scorer takes it.
  virtual std::vector<PartScores> judge(Task& task, const fs::path& directory, const Task::Progress& progress) = 0;

 protected:
  explicit FineTuneJob(std::string name) : name_(std::move(name)) {}

  std::string name_;
  std::vector<std::string> notes_;
};

// Lists the names of all tasks on texts: "glue/cola", ..., "superglue/boolq", ..., "squad", "classify", "pair",
// "regress".
std::vector<std::string> job_names();

// Names a task's directory: "glue-cola".
std::string job_folder(std::string name);

// Lists the tasks meant by what a user wrote: a suite stands for all its tasks that can be trained on, "cola" for
// "glue/cola"; a name that both suites have is refused. Throws Error, with the nearest name, for an unknown one.
std::vector<std::string> expand_job_names(const std::vector<std::string>& names);

// Reads a task's data. The encoder gives tokenizer, context and weights; both are shared. Throws Error for what readers
// refuse, for parts that are missing, naming the option that gives them, and for parts that cannot train or score a
// model.
std::unique_ptr<FineTuneJob> open_job(const std::string& name, const JobOptions& options, const LoadedEncoder& trained);

}  // namespace headshare
