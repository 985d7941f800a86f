#include "headshare/tasks/finetune/predict.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/tasks/finetune/job.h"

namespace headshare {
namespace {

// Returns the task of GLUE or SuperGLUE of that name; null for the user's own table.
const TaskInfo* suite_task(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return nullptr;
  const Suite suite = name.substr(0, slash) == suite_name(Suite::kGlue) ? Suite::kGlue : Suite::kSuperGlue;
  return &find_task(suite, name.substr(slash + 1));
}

QuestionKind kind_of_note(const TunedEncoder& model) {
  const std::string where = model.encoder.directory.string();
  const TaskHeadOptions& head = model.encoder.model->options().task_head;
  const TaskInfo* task = suite_task(model.note.task);
  QuestionKind kind =
      task != nullptr ? kind_of(*task) : kind_of(TextExamples{.source = where, .labels = head.labels}, model.note.task);
  HS_CHECK(kind.head == head.kind && kind.outputs() == head.outputs && (task == nullptr || kind.labels == head.labels),
           where, ": ", kTaskNoteFile, " names the task ", model.note.task,
           ", and the model's head is another task's; they do not belong together");
  return kind;
}

// Returns the length of rows. Throws Error where they are longer than the model's context.
int64_t row_length(const TunedEncoder& model) {
  const int64_t context = model.encoder.model->options().context;
  HS_CHECK(model.note.max_length <= context, model.encoder.directory.string(), ": ", kTaskNoteFile,
           " asks for rows of ", model.note.max_length, " tokens, and the model's context is ", context);
  return model.note.max_length;
}

[[noreturn]] void refuse_scores(const TunedEncoder& model) {
  throw Error(join_text("the scores that ", model.encoder.directory.string(),
                        " gives are not finite numbers: the model has diverged, or its checkpoint is damaged"));
}

// Adds the probabilities of the classes or choices of each question of a batch.
void add_probabilities(const QuestionKind& kind, const QuestionBatch& batch, std::span<const size_t> places,
                       const Tensor& scores, std::vector<Prediction>* predictions) {
  if (kind.form == AnswerForm::kNumber) return;
  const Tensor values = scores.to(at::kCPU, at::kDouble);
  int64_t first = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const auto count = static_cast<int64_t>(batch[i].rows.size());
    const Tensor share = at::softmax(values.narrow(0, first, count).flatten(), 0).contiguous();
    const double* begin = share.const_data_ptr<double>();
    (*predictions)[places[i]].probabilities.assign(begin, begin + share.numel());
    first += count;
  }
}

// Throws Error where the rows do not have as many texts as the model's: a model of pairs says nothing of a single text,
// nor one of single texts of a pair.
void check_pairs(const TaskNote& note, const TaskInfo* task, const PredictColumns& columns) {
  const bool pairs = task == nullptr ? !note.table.pair.empty() : !task->second.names.empty();
  HS_CHECK(pairs || columns.pair.empty(), "--pair-column names a second text, and the model was fine-tuned on single ",
           "texts (", note.task, "); leave it out");
  HS_CHECK(!pairs || task == nullptr || !columns.pair.empty(), "the model was fine-tuned on pairs of texts (",
           note.task, "): name the column of the second one with --pair-column");
}

}  // namespace

Fields fields(PredictColumns& o) {
  return {
      field("text-column", &o.text, "column of the text, or of the first of two; empty: the one used in training"),
      field("pair-column", &o.pair, "column of the second text, likewise"),
      field("label-column", &o.label, "column of the right answer, likewise; the table may lack it"),
      field("table-format", &o.format,
            "tsv takes quotes as letters, tsv-quoted and csv as RFC 4180 does; auto: by the file's ending",
            table_format_names()),
      field("score", &o.score, "score the answers where the table has labels; --no-score does not read that column"),
  };
}

TunedEncoder open_tuned(const fs::path& path, c10::Device device) {
  TunedEncoder model{.encoder = load_encoder_model(find_tuned_model(path)), .note = {}};
  model.note = read_task_note(model.encoder.directory);
  model.encoder.model->to(device);
  return model;
}

Predictor::Predictor(TunedEncoder model)
    : model_(std::move(model)), kind_(kind_of_note(model_)), rows_(*model_.encoder.tokenizer, row_length(model_)) {}

QuestionSet Predictor::read(const std::string& file, const PredictColumns& columns) {
  const TaskInfo* task = kind_.task;
  const bool own = task == nullptr || !columns.text.empty();
  HS_CHECK(own || (columns.pair.empty() && columns.label.empty()),
           "--pair-column and --label-column need --text-column: ", "without it ", file, " is read as a file of ",
           kind_.title);
  if (!own) {
    QuestionSet set = read_questions(*task, file, rows_);
    check_indexes(set);
    if (!columns.score) set.labelled = false;
    return set;
  }
  HS_CHECK(task == nullptr || task->form == TaskForm::kText, "--text-column is about tables of texts; ", kind_.title,
           " is read from a file of its own form");
  check_pairs(model_.note, task, columns);
  OwnTable table = task == nullptr ? model_.note.table : OwnTable();
  const auto choose = [](const std::string& given, std::string* column) {
    if (!given.empty()) *column = given;
  };
  choose(columns.text, &table.text);
  choose(columns.pair, &table.pair);
  choose(columns.label, &table.label);
  if (!columns.score) table.label = "";
  table.format = columns.format;
  table.numbers = kind_.form == AnswerForm::kNumber;
  QuestionSet set = to_questions(read_own_table(table, file, kind_.labels, LabelColumn::kMayBeMissing), rows_);
  check_indexes(set);
  return set;
}

std::vector<Prediction> Predictor::predict(const QuestionSet& set, const Task::Progress& progress) const {
  std::vector<Prediction> predictions(set.questions.size());
  const Answerer answerer{model_.encoder.model, kind_, rows_.padding(), static_cast<size_t>(model_.note.most_rows)};
  const Answers answers = ask_all(
      answerer, set, progress, [&](const QuestionBatch& batch, std::span<const size_t> places, const Tensor& scores) {
        if (!at::isfinite(scores).all().item<bool>()) refuse_scores(model_);
        add_probabilities(kind_, batch, places, scores, &predictions);
      });
  for (size_t i = 0; i < answers.size(); ++i) predictions[i].answer = answers[i];
  return predictions;
}

std::string Predictor::answer_text(const Question& question, double answer) const {
  return headshare::answer_text(kind_, question, answer);
}

std::vector<Score> Predictor::score(const QuestionSet& set, const std::vector<Prediction>& predictions) const {
  Answers answers;
  for (const Prediction& one : predictions) answers.push_back(one.answer);
  return score_answers(kind_, set, answers);
}

SquadPredictor::SquadPredictor(TunedEncoder model)
    : model_(std::move(model)), rows_(*model_.encoder.tokenizer, row_length(model_)) {
  const TaskHeadOptions& head = model_.encoder.model->options().task_head;
  HS_CHECK(head.kind == TaskHeadKind::kToken && head.outputs == 2, model_.encoder.directory.string(), ": ",
           kTaskNoteFile, " names the task ", kSquadTask,
           ", and the model's head is another task's; they do not belong together");
}

SquadSet SquadPredictor::read(const std::string& file) {
  return make_windows(read_squad(file), rows_, model_.note.windows, /*teach=*/false);
}

SquadAnswers SquadPredictor::predict(const SquadSet& set, const Task::Progress& progress) const {
  const SquadAnswerer answerer{model_.encoder.model, rows_.padding(), static_cast<size_t>(model_.note.most_rows),
                               model_.note.answers};
  return answer_all(answerer, set, progress, [&](const SquadWindows&, const Tensor& scores) {
    if (scores.isnan().any().item<bool>()) refuse_scores(model_);
  });
}

fs::path find_tuned_model(const fs::path& path) {
  if (!path_exists(path / "results.json") || path_exists(path / "config.json")) return path;
  std::vector<std::string> kept;
  for (const fs::directory_entry& task : fs::directory_iterator(path)) {
    if (!task.is_directory()) continue;
    for (const fs::directory_entry& run : fs::directory_iterator(task.path())) {
      if (path_exists(run.path() / "checkpoints" / "best" / "config.json")) kept.push_back(run.path().string());
    }
  }
  std::sort(kept.begin(), kept.end());
  HS_CHECK(!kept.empty(), path.string(), " kept no model: fine-tune again without --no-keep-models");
  if (kept.size() == 1) return kept.front();
  const size_t all = kept.size();
  constexpr size_t kMost = 6;
  if (all > kMost) kept.resize(kMost);
  throw Error(join_text(path.string(), " holds ", all, " models; name one of them: ", list_text(kept, "or"),
                        all > kMost ? ", ..." : ""));
}

}  // namespace headshare
