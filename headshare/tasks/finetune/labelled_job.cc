// Jobs of questions with labels are GLUE, SuperGLUE and the user's own tables.
#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/data/benchmarks/submission.h"
#include "headshare/models/size.h"
#include "headshare/ops/device_memory.h"
#include "headshare/tasks/finetune/coverage.h"
#include "headshare/tasks/finetune/jobs.h"
#include "headshare/tasks/finetune/labelled_task.h"

namespace headshare {

void check_step_fits(const EncoderOptions& model, const FineTuneOptions& tuning, int64_t length, c10::Device device,
                     TrainingShape shape, const FineTunedTeacher& teacher) {
  shape.batch = tuning.batch_size;
  shape.length = length;
  shape.scored = 0;
  double bytes = training_bytes(model, shape);
  // The teacher's weights are in memory already.
  if (!teacher.model.is_empty()) bytes += evaluation_bytes(teacher.model->options(), shape);
  check_memory_of(device, bytes, "fine-tuning this model", "use a smaller --batch-size or --max-length");
}

namespace {

constexpr int64_t kUsualLength = 128;
constexpr const char* kTest = "test";

// A FurtherPart is answered in the end, and scored where it has labels.
struct FurtherPart {
  std::string name;
  QuestionKind kind;
  QuestionSet set;
};

// Throws Error where all examples to train on have one number: every model would learn it, and no correlation is
// defined.
void check_numbers_differ(const QuestionSet& train) {
  const std::vector<Question>& all = train.questions;
  const bool same =
      std::all_of(all.begin(), all.end(), [&](const Question& one) { return one.number == all[0].number; });
  HS_CHECK(all.empty() || !same, train.source, ": all ", all.size(), " examples have the number ", all[0].number,
           "; there is nothing to learn from them");
}

class LabelledJob : public FineTuneJob {
 public:
  LabelledJob(QuestionKind kind, const JobOptions& options, const LoadedEncoder& trained)
      : FineTuneJob(kind.name),
        options_(options.tuning),
        model_(trained.model->options()),
        weights_(model_tensors(*trained.model)),
        rows_(*trained.tokenizer, options.tuning.row_length(model_, kUsualLength)) {
    rows_.keep_words(true);  // for coverage_of()
    data_.kind = std::move(kind);
    data_.padding = rows_.padding();
    data_.tokenizer = trained.tokenizer;
    data_.note = {.task = data_.kind.name, .max_length = rows_.length()};
    if (data_.kind.task == nullptr) data_.note.table = options.table;
    data_.teacher = open_tuned_teacher(options.distillation, {.task = data_.kind.name,
                                                              .head = head(),
                                                              .tokenizer = *trained.tokenizer,
                                                              .length = rows_.length(),
                                                              .d_model = model_.attention.d_model});
  }

  RowEncoder& rows() { return rows_; }

  // Sets the parts as they were read; without a validation part one is held back.
  void set_parts(QuestionSet train, std::optional<QuestionSet> validation) {
    if (data_.kind.form == AnswerForm::kNumber) check_numbers_differ(train);
    if (!validation) {
      HS_CHECK(options_.validation_fraction > 0, name_,
               " has no validation part; name one with --validation, or hold a ",
               "part of the training examples back with --validation-fraction");
      validation = split_off(options_.validation_fraction, &train);
    } else if (options_.validation_fraction > 0) {
      notes_.push_back(join_text(validation->source, " validates; --validation-fraction holds nothing back"));
    }
    keep_some(options_.train_examples, &train);
    keep_some(options_.validation_examples, &*validation);
    for (const QuestionSet* set : {&train, &*validation}) {
      HS_CHECK(set->labelled, set->source, " has no labels: models can neither be trained nor scored on it");
    }
    check_can_be_scored(data_.kind, *validation);
    check_indexes(*validation);
    data_.train = std::move(train);
    data_.validation = std::move(*validation);
    for (const QuestionSet* set : {&data_.train, &data_.validation}) add_notes(*set);
    note_large_numbers();
  }

  void add_part(const std::string& name, const QuestionKind& kind, QuestionSet set) {
    check_can_be_scored(kind, set);
    check_indexes(set);
    add_notes(set);
    further_.push_back({name, kind, std::move(set)});
  }

  int64_t examples() const override { return static_cast<int64_t>(data_.train.questions.size()); }
  int64_t validation_examples() const override { return static_cast<int64_t>(data_.validation.questions.size()); }

  bool scores_test() const override {
    return !further_.empty() && further_.back().name == kTest && further_.back().set.labelled;
  }

  ClassCounts classes() const override {
    ClassCounts all;
    if (data_.kind.form != AnswerForm::kClass) return all;
    const std::vector<int64_t> counts = class_counts(data_.train, data_.kind.labels.size());
    for (size_t i = 0; i < counts.size(); ++i) all.emplace_back(data_.kind.labels[i], counts[i]);
    return all;
  }

  std::optional<double> guessing(bool test) const override {
    const auto goal = [this](const QuestionKind& kind, const QuestionSet& set) {
      const auto scores = score_most_frequent(kind, data_.train, set);
      return scores ? std::optional(task_score(*scores)) : std::nullopt;
    };
    if (test && scores_test()) return goal(further_.back().kind, further_.back().set);
    const std::optional<double> matched = goal(data_.kind, data_.validation);
    const auto mismatched = std::find_if(further_.begin(), further_.end(),
                                         [](const FurtherPart& part) { return part.name == kMismatched; });
    if (!matched || mismatched == further_.end()) return matched;
    return (*matched + goal(mismatched->kind, mismatched->set).value_or(*matched)) / 2;
  }

  std::string fingerprint() const override {
    ContentHash hash;
    for (const QuestionSet* set : {&data_.train, &data_.validation}) add_to(&hash, *set);
    for (const FurtherPart& part : further_) add_to(&hash, part.set);
    return hash.hex();
  }

  void check_start(c10::Device device, TrainingShape shape) const override {
    check_step_fits(starting_options(model_, head(), options_), options_, rows_.length(), device, shape, data_.teacher);
  }

  std::unique_ptr<Task> start(uint64_t seed, c10::Device device, TrainingShape shape) override {
    check_start(device, shape);
    if (!data_.teacher.model.is_empty()) data_.teacher.model->to(device);
    return std::make_unique<LabelledTask>(data_, options_, starting_model(model_, weights_, head(), options_, seed),
                                          seed, device, shape);
  }

  std::vector<PartScores> judge(Task& task, const fs::path& directory, const Task::Progress& progress) override {
    auto& labelled = dynamic_cast<LabelledTask&>(task);
    std::vector<PartScores> all;
    const auto one = [&](const std::string& name, const QuestionKind& kind, const QuestionSet& set) {
      const Answers answers = labelled.answers(set, progress);
      write_answers(kind, set, answers, directory / name);
      if (!set.labelled) return;
      note_single_answer(kind, set, answers);
      PartScores part{.part = name, .scores = score_answers(kind, set, answers), .examples = count_of(set)};
      part.goal = task_score(part.scores);
      part.coverage = coverage_of(data_.train, kind, set, answers);
      all.push_back(std::move(part));
    };
    one("validation", data_.kind, data_.validation);
    for (const FurtherPart& part : further_) one(part.name, part.kind, part.set);
    return all;
  }

 private:
  TaskHeadOptions head() const {
    return {.kind = data_.kind.head, .outputs = data_.kind.outputs(), .labels = data_.kind.labels};
  }

  // Throws Error for a single number to score: a correlation needs two or more.
  static void check_can_be_scored(const QuestionKind& kind, const QuestionSet& set) {
    HS_CHECK(kind.form != AnswerForm::kNumber || !set.labelled || set.questions.size() > 1, set.source,
             " gives 1 example to score numbers by, and a correlation needs 2 or more");
  }

  static int64_t count_of(const QuestionSet& set) { return static_cast<int64_t>(set.questions.size()); }

  void add_notes(const QuestionSet& set) { notes_.insert(notes_.end(), set.notes.begin(), set.notes.end()); }

  // Notes numbers far from 1: the loss is squared, so they make steps of another size than the learning rates are meant
  // for.
  void note_large_numbers() {
    if (data_.kind.form != AnswerForm::kNumber) return;
    constexpr double kFar = 100;
    double most = 0;
    for (const Question& question : data_.train.questions) most = std::max(most, std::abs(question.number));
    if (most <= kFar) return;
    notes_.push_back(join_text(data_.train.source, ": numbers reach ", most,
                               "; models learn better where they are scaled to a few units"));
  }

  // Notes a model that answers with one class only: it has learnt nothing but the most frequent class, and its scores
  // look valid.
  static void note_single_answer(const QuestionKind& kind, const QuestionSet& set, const Answers& answers) {
    const auto same = [&](double answer) { return answer == answers.front(); };
    const auto asked = [&](const Question& question) { return question.label == set.questions.front().label; };
    if (kind.form != AnswerForm::kClass || !std::all_of(answers.begin(), answers.end(), same) ||
        std::all_of(set.questions.begin(), set.questions.end(), asked)) {
      return;
    }
    notice(join_text(kind.name, ": this model answers every one of ", answers.size(), " examples of ", set.source,
                     " with '", kind.labels.at(static_cast<size_t>(answers.front())),
                     "': it predicts one class only; try other learning rates or more epochs"));
  }

  // Writes a model's answers in the form in which the task's scorer takes them; for the user's own table, as the table
  // has them.
  static void write_answers(const QuestionKind& kind, const QuestionSet& set, const Answers& answers, fs::path path) {
    std::vector<SubmittedAnswer> lines;
    for (size_t i = 0; i < answers.size(); ++i) {
      const Question& question = set.questions[i];
      lines.push_back({.index = question.index,
                       .answer = answer_text(kind, question, answers[i]),
                       .question = question.group,
                       .passage = question.passage});
    }
    static const TaskInfo plain{.suite = Suite::kGlue, .name = {}, .title = {}, .folder = {}};
    const TaskInfo& task = kind.task == nullptr ? plain : *kind.task;
    write_file(path += join_text(".", submission_ending(task)), submission(task, lines));
  }

  FineTuneOptions options_;
  EncoderOptions model_;
  NamedTensors weights_;
  RowEncoder rows_;
  LabelledData data_;
  std::vector<FurtherPart> further_;
};

// Finds a part's file: the named one, else the one in --data, where it may be missing.
std::optional<std::string> file_of(const TaskInfo& task, const TaskFiles& files, const std::string& named,
                                   TaskPart part) {
  if (!named.empty()) return named;
  const std::string& name = part == TaskPart::kTrain ? task.train : part == TaskPart::kDev ? task.dev : task.test;
  if (files.data.empty() || name.empty()) return std::nullopt;
  for (const fs::path& root : {fs::path(files.data) / suite_name(task.suite), fs::path(files.data)}) {
    try {
      return find_task_file(task, root, part).string();
    } catch (const Error&) {
      // The file is not in this folder: it is in the next one, or nowhere.
    }
  }
  return std::nullopt;
}

// Lists the parts of other tasks with the same labels: MNLI's mismatched part and the diagnostics.
std::vector<std::string> relatives(const TaskInfo& task) {
  if (task.suite == Suite::kGlue && task.name == "mnli") return {kMismatched, "ax"};
  if (task.suite == Suite::kSuperGlue && task.name == "rte") return {"ax-b", "ax-g"};
  return {};
}

}  // namespace

std::unique_ptr<FineTuneJob> open_suite_job(const TaskInfo& task, const JobOptions& options,
                                            const LoadedEncoder& trained) {
  const TaskFiles& files = options.files;
  const QuestionKind kind = kind_of(task);
  auto job = std::make_unique<LabelledJob>(kind, options, trained);
  HS_CHECK(!files.data.empty() || !files.train.empty(), kind.name,
           " needs data: --data DIR with the official files, or --train FILE");
  const std::optional<std::string> found = file_of(task, files, files.train, TaskPart::kTrain);
  // The reader's own message says where it looked.
  const std::string train = found ? *found : find_task_file(task, files.data, TaskPart::kTrain).string();
  // A file in --data that was also named to train on must not be used to score.
  const auto other_file = [&](const TaskInfo& of, const std::string& named) {
    const std::optional<std::string> path = file_of(of, files, named, TaskPart::kDev);
    std::error_code missing;  // whoever reads the file reports the error
    return path && !fs::equivalent(*path, train, missing) ? path : std::nullopt;
  };
  const std::optional<std::string> validating = other_file(task, files.validation);
  const std::optional<std::string> test = file_of(task, files, files.test, TaskPart::kTest);
  check_files_differ({{"--train", train}, {"--validation", validating.value_or("")}, {"--test", test.value_or("")}});
  QuestionSet training = read_questions(task, train, job->rows());
  std::optional<QuestionSet> validation;
  if (validating) validation = read_questions(task, *validating, job->rows());
  job->set_parts(std::move(training), std::move(validation));
  for (const std::string& name : relatives(task)) {
    const TaskInfo& other = find_task(task.suite, name);
    if (const auto path = other_file(other, "")) {
      job->add_part(name, kind_of(other), read_questions(other, *path, job->rows()));
    }
    if (const auto path = file_of(other, files, "", TaskPart::kTest)) {
      job->add_part(join_text(name, "-", kTest), kind_of(other), read_questions(other, *path, job->rows()));
    }
  }
  if (test) job->add_part(kTest, kind, read_questions(task, *test, job->rows()));
  return job;
}

std::unique_ptr<FineTuneJob> open_table_job(const std::string& name, const JobOptions& options,
                                            const LoadedEncoder& trained) {
  const TaskFiles& files = options.files;
  OwnTable table = options.table;
  table.numbers = name == "regress";
  HS_CHECK(!files.train.empty(), name, " needs a table: --train FILE.tsv, .csv or .jsonl");
  HS_CHECK(name != "pair" || !table.pair.empty(), "pair needs the name of the second text's column: --pair-column");
  HS_CHECK(name != "classify" || table.pair.empty(), "--pair-column makes it the task pair, not classify");
  const TextExamples training = read_own_table(table, files.train);
  const QuestionKind kind = kind_of(training, name);
  auto job = std::make_unique<LabelledJob>(kind, options, trained);
  std::optional<QuestionSet> validation;
  if (!files.validation.empty()) {
    validation = to_questions(read_own_table(table, files.validation, training.labels), job->rows());
  }
  job->set_parts(to_questions(training, job->rows()), std::move(validation));
  if (!files.test.empty()) {
    const TextExamples test = read_own_table(table, files.test, training.labels, LabelColumn::kMayBeMissing);
    job->add_part(kTest, kind, to_questions(test, job->rows()));
  }
  return job;
}

}  // namespace headshare
