// headshare predict labels new rows with a fine-tuned model, and images with a vision transformer.
#include "headshare/base/files/output_file.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/progress.h"
#include "headshare/cli/terminal/table.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/predict_images.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/host/runtime_options.h"
#include "headshare/report/statistics/wording.h"
#include "headshare/tasks/finetune/predict.h"

namespace headshare {
namespace {

struct PredictOptions {
  std::string model_path;
  std::vector<std::string> files;
  std::string out;
  std::optional<int64_t> top;
  bool json = false;
  bool overwrite = false;
  PredictColumns columns;
  RuntimeOptions runtime;
};

Fields own_fields(PredictOptions& o) {
  return {
      naming_file(field("out", &o.out, "write the answers into this file instead of standard output")),
      field("overwrite", &o.overwrite, "replace the file of --out where it exists already"),
      field("top", &o.top, "classes to show of each image, the likeliest first; auto: 1, with --json all of them",
            {.min = 1, .max = 1 << 20, .aliases = {"top-k"}}),
      field("json", &o.json, "one JSON object a line for each row or image, with the probability of every class"),
  };
}

// Tells whether answers are numbered within questions, and these within paragraphs, as MultiRC's are.
bool is_nested(const QuestionKind& kind) { return kind.task != nullptr && kind.task->form == TaskForm::kMultiRc; }

std::string heading(const QuestionKind& kind) {
  return join_text(is_nested(kind) ? "passage\tquestion\t" : "", "index\tprediction",
                   kind.form == AnswerForm::kNumber ? "" : "\tprobability", "\n");
}

std::string table_line(const Predictor& predictor, const Question& question, const Prediction& one) {
  const QuestionKind& kind = predictor.kind();
  std::string line = is_nested(kind) ? join_text(question.passage, "\t", question.group, "\t") : "";
  line += join_text(question.index, "\t", tsv_field(predictor.answer_text(question, one.answer)));
  if (!one.probabilities.empty()) {
    line += join_text("\t", format_fixed(one.probabilities.at(static_cast<size_t>(one.answer)), 6));
  }
  return line + "\n";
}

std::string json_line(const Predictor& predictor, const Question& question, const Prediction& one) {
  const QuestionKind& kind = predictor.kind();
  nlohmann::ordered_json object;
  if (is_nested(kind)) object = {{"passage", question.passage}, {"question", question.group}};
  object["index"] = question.index;
  if (kind.form == AnswerForm::kNumber) {
    object["prediction"] = one.answer;
    return json_text(object) + "\n";
  }
  object["prediction"] = predictor.answer_text(question, one.answer);
  object["probability"] = one.probabilities.at(static_cast<size_t>(one.answer));
  if (kind.form == AnswerForm::kClass) {
    for (size_t i = 0; i < kind.labels.size(); ++i) object["probabilities"][kind.labels[i]] = one.probabilities[i];
  } else {
    object["probabilities"] = one.probabilities;
  }
  return json_text(object) + "\n";
}

std::string answers_text(const Predictor& predictor, const QuestionSet& set, const std::vector<Prediction>& predictions,
                         bool json) {
  std::string text = json ? "" : heading(predictor.kind());
  for (size_t i = 0; i < predictions.size(); ++i) {
    text += json ? json_line(predictor, set.questions[i], predictions[i])
                 : table_line(predictor, set.questions[i], predictions[i]);
  }
  return text;
}

std::vector<Score> scores_of(const Predictor& predictor, const QuestionSet& set,
                             const std::vector<Prediction>& predictions) {
  if (!set.labelled) return {};
  if (predictor.kind().form == AnswerForm::kNumber && predictions.size() < 2) {
    notice(set.source + " has 1 row, and a correlation needs 2 or more: it is not scored");
    return {};
  }
  return predictor.score(set, predictions);
}

// This is what the model answers to a file, as it is written.
struct Answered {
  std::string source;  // the file
  size_t count = 0;    // rows, questions or images
  std::string text;
  std::vector<Score> scores;  // none where the file has no right answers
  size_t unreadable = 0;      // images without an answer
};

// Shows how far predicting is, and stops with Interrupted when the user asks.
class Watch {
 public:
  void operator()(int64_t done, int64_t total) {
    check_interrupted();
    line_.update(static_cast<double>(done), static_cast<double>(total));
  }

 private:
  ProgressLine line_{"predicting"};
};

Answered answer_rows(TunedEncoder model, const PredictOptions& options) {
  Predictor predictor(std::move(model));
  const QuestionSet set = predictor.read(options.files.front(), options.columns);
  for (const std::string& note : set.notes) notice(note);
  std::optional<Watch> watch(std::in_place);
  const std::vector<Prediction> predictions = predictor.predict(set, std::ref(*watch));
  watch.reset();
  return {.source = set.source,
          .count = predictions.size(),
          .text = answers_text(predictor, set, predictions, options.json),
          .scores = scores_of(predictor, set, predictions)};
}

// Writes a question's answer. Questions that may have no answer get "" where none is likelier than the best span.
std::string question_line(const SquadSet& set, const SquadAnswers& answers, size_t i, bool json) {
  const auto& candidates = answers.candidates[i];
  const bool may_have_none = set.data.rules == SquadRules::kV2;
  const bool none = candidates.empty() || (may_have_none && answers.null_odds[i] > 0);
  const std::string text = none ? "" : candidates.front().text;
  const std::string& id = set.data.questions[i].id;
  if (!json) {
    const std::string odds = may_have_none ? "\t" + format_fixed(answers.null_odds[i], 6) : "";
    return join_text(tsv_field(id), "\t", tsv_field(text), odds, "\n");
  }
  nlohmann::ordered_json object = {{"id", id}, {"prediction", text}};
  if (may_have_none) object["null_odds"] = answers.null_odds[i];
  object["candidates"] = nlohmann::ordered_json::array();
  for (const AnswerCandidate& one : candidates) {
    object["candidates"].push_back({{"text", one.text}, {"score", one.score}});
  }
  return json_text(object) + "\n";
}

Answered answer_questions(TunedEncoder model, const PredictOptions& options) {
  SquadPredictor predictor(std::move(model));
  const SquadSet set = predictor.read(options.files.front());
  for (const std::string& note : set.notes) notice(note);
  std::optional<Watch> watch(std::in_place);
  const SquadAnswers answers = predictor.predict(set, std::ref(*watch));
  watch.reset();
  const SquadData& data = set.data;
  Answered answered{.source = data.source, .count = data.questions.size(), .text = "", .scores = {}};
  if (!options.json) answered.text = data.rules == SquadRules::kV2 ? "id\tprediction\tnull_odds\n" : "id\tprediction\n";
  for (size_t i = 0; i < data.questions.size(); ++i) answered.text += question_line(set, answers, i, options.json);
  if (!options.columns.score) return answered;
  if (can_be_scored(data)) {
    answered.scores = to_scores(score_squad(gold_answers(data), to_predictions(data, answers), data.rules));
  } else {
    notice(data.source + " has questions without a right answer: it is answered, and not scored");
  }
  return answered;
}

std::string scores_text(const std::vector<Score>& scores) {
  std::string text;
  for (const Score& score : scores) {
    text += join_text(text.empty() ? "" : ", ", score.name, " ", score_value_text(score.value, 4));
  }
  return text;
}

// Prints a summary. With --out the answers are in a file and this is the result; else it is said beside them.
void print_summary(const PredictOptions& options, const Answered& answered) {
  for (const Score& score : answered.scores) {
    if (!score.note.empty()) notice(score.name + ": " + score.note);
  }
  const std::string scores = scores_text(answered.scores);
  if (options.out.empty()) {
    if (!scores.empty()) print_status(join_text(answered.source, ": ", scores));
    return;
  }
  if (options.json) {
    nlohmann::ordered_json object = {{"rows", answered.count}, {"out", options.out}};
    for (const Score& score : answered.scores) object["scores"][score.name] = score.value;
    print_json(json_text(object, 2) + "\n");
    return;
  }
  print(join_text("rows    ", answered.count, "\n"));
  if (!scores.empty()) print("scores  " + scores + "\n");
  print("out     " + options.out + "\n");
}

// Tells whether the model reads images. Others are opened by open_tuned(), which says what is wrong with them.
bool reads_images(const std::string& path) {
  return read_options(find_checkpoint(find_tuned_model(path))).find<VisionOptions>() != nullptr;
}

// Throws UsageError for options that a vision transformer gives no meaning, or that only it does.
void refuse_other_inputs(const Arguments& arguments, const PredictOptions& options, bool images) {
  PredictColumns columns;
  if (images) {
    return arguments.refuse_idle(names_of(fields(columns)),
                                 "is about tables of texts, and " + options.model_path + " reads images");
  }
  arguments.refuse_idle({"top"}, "is about images, and " + options.model_path + " reads texts");
  if (options.files.size() == 1) return;
  throw UsageError(join_text(options.model_path, " labels the rows of one FILE, and there are ", options.files.size()));
}

// Throws UsageError for columns that a file of questions about texts does not have.
void refuse_columns(const Arguments& arguments, const std::string& model) {
  for (const char* name : {"text-column", "pair-column", "label-column", "table-format"}) {
    if (!arguments.given(name)) continue;
    throw UsageError(join_text("--", name, " is about tables, and ", model,
                               " answers questions about texts: FILE is a JSON file of SQuAD's form; leave it out"));
  }
}

// Checks the answers' file before the long work; returns nothing without --out.
std::optional<OutputFile> answers_file(const PredictOptions& o) {
  if (o.out.empty()) return std::nullopt;
  const fs::path model = find_checkpoint(find_tuned_model(o.model_path));
  InputPaths inputs = o.files;
  inputs.push_back(model.string());
  return OutputFile(o.out, o.overwrite ? Overwrite::kYes : Overwrite::kNo, inputs);
}

Answered answer_texts(const Arguments& arguments, const PredictOptions& options, c10::Device device) {
  TunedEncoder model = open_tuned(options.model_path, device);
  if (!model.answers_questions()) return answer_rows(std::move(model), options);
  refuse_columns(arguments, options.model_path);
  return answer_questions(std::move(model), options);
}

Answered label_images(const PredictOptions& options, c10::Device device) {
  LabelledImages labelled = predict_images({.model = find_tuned_model(options.model_path),
                                            .images = options.files,
                                            .top = options.top,
                                            .json = options.json},
                                           device);
  return {.source = "",
          .count = labelled.count,
          .text = std::move(labelled.text),
          .scores = {},
          .unreadable = labelled.unreadable};
}

Arguments arguments_of(PredictOptions& options) {
  Arguments made("predict", "Labels new rows with a model that `headshare finetune` made, and images.");
  made.required("MODEL",
                "a fine-tuned model (OUT/TASK/lr-RATE-seed-SEED of `headshare finetune --out OUT`), or a model of "
                "images: a run of `train --task image`, an imported vision transformer",
                &options.model_path);
  made.one_or_more("FILE",
                   "the rows: a .tsv, .csv or .jsonl table as `finetune --train` takes, labels or not; - is standard "
                   "input. Or images: PNG and JPEG files, IDX files, folders of them",
                   &options.files);
  made.group("Answers", own_fields(options));
  made.group("Rows", fields(options.columns));
  made.group("Computing", fields(options.runtime));
  made.common({"out", "top", "json", "text-column", "pair-column", "table-format", "score", "threads"});
  made.example("predict tuned/cola/lr-0.001-seed-0 rows.tsv", "a label and its probability for every row");
  made.example("predict tuned/cola/lr-0.001-seed-0 - --json <rows.jsonl", "every class's probability, as JSON lines");
  made.example("predict vit-run photos/ --top 3", "the three likeliest classes of every image in a folder");
  made.note(
      "Each row gets a line: its index (the column index or idx, else its number from 0), the predicted label and its "
      "probability; a model of `regress` gives a number. If the file has labels, the scores go to standard error, with "
      "--out to standard output.");
  made.note(
      "A model of GLUE or SuperGLUE reads that task's files, or any table with --text-column. A model of SQuAD reads a "
      "JSON file in SQuAD's form and answers with a piece of the text; null_odds above 0 mean that no answer is "
      "likelier.");
  made.note(
      "An image gets --top lines: its path (within an IDX file PATH[7]), a class and its probability. It is resized, "
      "cut and scaled as the model's training images were. Images that cannot be read are named, the others labelled, "
      "and the call ends with an error.");
  return made;
}

}  // namespace

int run_predict(const Words& words) {
  PredictOptions options;
  Arguments arguments = arguments_of(options);
  if (!arguments.parse(words)) return kOk;
  if (options.out.empty()) arguments.refuse_idle({"overwrite"}, "is about --out, which is not given");
  if (!options.columns.score) arguments.refuse_idle({"label-column"}, "is not read with --no-score");
  const bool images = reads_images(options.model_path);
  refuse_other_inputs(arguments, options, images);
  const std::optional<OutputFile> out = answers_file(options);
  catch_interrupts();
  const c10::Device device = start_runtime(options.runtime);
  const Answered answered = images ? label_images(options, device) : answer_texts(arguments, options, device);
  if (out) {
    out->write(answered.text);
  } else {
    options.json ? print_json(answered.text) : print(answered.text);
    flush_output();
  }
  print_summary(options, answered);
  HS_CHECK(answered.unreadable == 0, answered.unreadable, " of ", answered.unreadable + answered.count,
           " images cannot be read and have no label");
  return kOk;
}

}  // namespace headshare
