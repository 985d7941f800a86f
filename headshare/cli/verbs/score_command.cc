// headshare score scores predictions and translations that another program made, as the official scorers do.
#include <algorithm>

#include "headshare/base/files/placeholder.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/notice.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/terminal/table.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/score_translation.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/data/benchmarks/predictions.h"
#include "headshare/data/benchmarks/squad.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

using Json = nlohmann::ordered_json;

enum class Rules { kAuto, kV1, kV2 };

struct ScoreOptions {
  std::string question;
  std::vector<std::string> predictions;
  std::vector<std::string> gold;
  std::string task;
  std::string null_odds;
  double null_threshold = 1;
  Rules rules = Rules::kAuto;
  bool json = false;
  TranslationOptions translation;
};

std::string task_help() {
  std::string text;
  for (const Suite suite : {Suite::kGlue, Suite::kSuperGlue}) {
    text += text.empty() ? "" : "; ";
    for (const std::string& name : task_names(suite)) text += (text.empty() || text.ends_with("; ") ? "" : ", ") + name;
  }
  return text;
}

Fields own_fields(ScoreOptions& o) {
  static const EnumNames<Rules> rules = {{Rules::kAuto, "auto"}, {Rules::kV1, "v1.1"}, {Rules::kV2, "v2.0"}};
  return {
      naming_file(field(
          "gold", &o.gold,
          "the data set's file with the right answers, plain or .gz; for translations one or more files of references",
          {.aliases = {"reference"}})),
      field("task", &o.task, "which task of glue or superglue: " + task_help()),
      field("json", &o.json, "print one JSON object"),
      naming_file(
          field("null-odds", &o.null_odds,
                "squad: a JSON object with the probability (or any odds) of each question's having no answer; adds "
                "the best threshold for each score",
                {.aliases = {"na-prob-file"}})),
      field("null-threshold", &o.null_threshold, "squad: odds above it make a prediction \"no answer\"",
            {.aliases = {"na-prob-thresh"}}),
      field("rules", &o.rules, "squad: which official scorer; auto: v2.0 where the file knows unanswerable questions",
            rules),
  };
}

struct Result {
  std::vector<Score> scores;
  std::optional<double> task_score;
  int64_t missing = 0;
  int64_t examples = 0;
};

Result score_squad_file(const ScoreOptions& o) {
  const SquadData data = read_squad(o.gold[0]);
  if (const std::string note = misplaced_note(data); !note.empty()) notice(note);
  SquadPredictions predictions{.answers = read_squad_answers(o.predictions[0]), .null_threshold = o.null_threshold};
  if (!o.null_odds.empty()) predictions.null_odds = read_null_odds(o.null_odds);
  const SquadRules rules = o.rules == Rules::kAuto ? data.rules
                           : o.rules == Rules::kV1 ? SquadRules::kV1
                                                   : SquadRules::kV2;
  const SquadScores scores = score_squad(gold_answers(data), predictions, rules);
  if (scores.missing > 0) {
    notice(join_text(scores.missing, " of ", data.questions.size(),
                     " questions have no prediction and count as wrong; the first is ", scores.first_missing));
  }
  if (scores.unknown > 0) {
    notice(join_text(scores.unknown, " predictions are for questions that ", o.gold[0],
                     " does not have, and were ignored"));
  }
  return {.scores = to_scores(scores), .task_score = {}, .missing = scores.missing, .examples = scores.all.total};
}

Result score_task(const ScoreOptions& o, Suite suite) {
  const TaskInfo& task = find_task(suite, o.task);
  Result result;
  if (task.form == TaskForm::kRecord) {
    const std::vector<AnswerPair> pairs = read_record_answers(o.gold[0], o.predictions[0]);
    result.scores = record_scores(pairs);
    result.examples = static_cast<int64_t>(pairs.size());
    result.missing = std::count_if(pairs.begin(), pairs.end(), [](const auto& pair) { return !pair.predicted; });
    if (result.missing > 0) {
      notice(join_text(result.missing, " of ", pairs.size(), " queries have no prediction and count as wrong"));
    }
  } else {
    const GoldLabels gold = read_gold_labels(task, o.gold[0]);
    for (const std::string& note : gold.notes) notice(note);
    result.scores = measure(task.metrics, read_predictions(task, gold, o.predictions[0]));
    result.examples = static_cast<int64_t>(gold.index.size());
  }
  result.task_score = task_score(result.scores);
  return result;
}

Json to_object(const ScoreOptions& o, const Result& result) {
  Json object = {{"question", o.question}};
  if (o.question != "squad") object["task"] = o.task;
  for (const Score& score : result.scores) {
    const bool whole = score.name.ends_with("total");
    object[score.name] = whole ? Json(static_cast<int64_t>(score.value)) : Json(score.value);
  }
  if (result.task_score) object["score"] = *result.task_score;
  object["examples"] = result.examples;
  object["missing"] = result.missing;
  for (const Score& score : result.scores) {
    if (!score.name.ends_with("total")) object["signatures"][score.name] = score.signature;
  }
  return object;
}

void print_table(const ScoreOptions& o, const Result& result) {
  TextTable table({{"score", Align::kLeft}, {"value"}, {"signature", Align::kLeft}});
  for (const Score& score : result.scores) {
    const int digits = score.name.ends_with("total") ? 0 : o.question == "squad" ? 4 : 6;
    table.add({score.name, score_value_text(score.value, digits), score.signature});
  }
  if (result.task_score && result.scores.size() > 1) {
    table.add({"score", score_value_text(*result.task_score, 6), "their mean"});
  }
  print(table.text(terminal_width(Stream::kOut)));
}

bool is_translation(const ScoreOptions& o) {
  const auto& questions = translation_questions();
  return std::find(questions.begin(), questions.end(), o.question) != questions.end();
}

// Refuses options of the other questions, which would change nothing.
void check_options(const Arguments& arguments, const ScoreOptions& o) {
  std::vector<std::string> questions = {"squad", "glue", "superglue"};
  questions.insert(questions.end(), translation_questions().begin(), translation_questions().end());
  HS_CHECK(std::find(questions.begin(), questions.end(), o.question) != questions.end(), "headshare score scores ",
           list_text(questions, "or"), ", not ", brief_text(o.question), did_you_mean(o.question, questions));
  HS_CHECK(!o.gold.empty() || !is_translation(o), "--reference is missing: which file has the right translations?");
  HS_CHECK(!o.gold.empty(), "--gold is missing: which file has the right answers?");
  check_translation_options(arguments, o.question, o.translation, o.predictions.size());
  if (o.json) arguments.refuse_idle({"width"}, "is about printed scores, and --json has all digits");
  if (is_translation(o)) {
    for (const char* name : {"task", "null-odds", "null-threshold", "rules"}) {
      HS_CHECK(!arguments.given(name), "--", name, " is not for ", o.question);
    }
    return;
  }
  HS_CHECK(o.predictions.size() == 1, o.question, " scores one file of predictions, not ", o.predictions.size());
  HS_CHECK(o.gold.size() == 1, o.question, " has one --gold, not ", o.gold.size(),
           " (\\, stands for a comma within a name)");
  if (o.question == "squad") {
    HS_CHECK(o.task.empty(), "--task is for glue and superglue; squad has none");
    HS_CHECK(o.null_odds.empty() || o.rules != Rules::kV1, "--null-odds belongs to the rules of v2.0, not v1.1");
    HS_CHECK(!o.null_odds.empty() || !arguments.given("null-threshold"), "--null-threshold needs --null-odds");
    return;
  }
  for (const char* name : {"null-odds", "null-threshold", "rules"}) {
    HS_CHECK(!arguments.given(name), "--", name, " is for squad, not for ", o.question);
  }
  HS_CHECK(!o.task.empty(), "--task is missing: which task of ", o.question, "?");
  find_task(o.question == "glue" ? Suite::kGlue : Suite::kSuperGlue, o.task);
}

void add_notes(Arguments* arguments) {
  arguments->note(
      "bleu, chrf and ter: a file for each system's translations and one for each reference, a line for a segment. "
      "Scores, intervals and p-values are those of sacreBLEU 2.6 to every printed digit, with the same seed; the line "
      "printed has its form, with the version of headshare. White space at the ends of lines and a byte order mark do "
      "not count. --json has all digits.");
  arguments->note(
      "squad: predictions are {\"question id\": \"answer\", ...}, an empty answer says that there is none. Scores are "
      "per cent, with the official scorers' digits: exact_match and f1; for v2.0 also has_ans_exact, has_ans_f1, "
      "no_ans_exact, no_ans_f1 and, with --null-odds, best_exact, best_exact_thresh, best_f1, best_f1_thresh. The "
      "official v2.0 scorer calls the first exact, and the parts HasAns_... and NoAns_.... A question without a "
      "prediction counts as wrong, and is said.");
  arguments->note(
      "glue: predictions as in a submission (a heading \"index<TAB>prediction\", lines in any order; the index is "
      "that of the gold's column, else the row from 0), or without that heading one label a line in the gold's order. "
      "MNLI has two tasks: mnli for dev_matched.tsv and mnli-mm for dev_mismatched.tsv.");
  arguments->note(
      "superglue: predictions as in a submission: {\"idx\": 0, \"label\": ...} a line, for record with the idx of the "
      "query; for multirc {\"idx\": 0, \"passage\": {\"questions\": [{\"idx\": 0, \"answers\": [{\"idx\": 0, "
      "\"label\": 1}]}]}}, where f1 is F1a and exact_match EM. Scores of glue and superglue are between 0 and 1 "
      "(correlations from -1); score is their mean.");
}

}  // namespace

int run_score(const Words& words) {
  ScoreOptions options;
  Arguments arguments(
      "score", "Scores predictions or translations of any program, without a model, as the official scorers do.");
  arguments.required("QUESTION",
                     "what was answered: squad, glue, superglue; or a metric of translations: bleu, chrf, ter",
                     &options.question);
  arguments.one_or_more("PREDICTIONS",
                        "the file with the predictions, of translations one or more; - is standard input",
                        &options.predictions);
  arguments.group("Scoring", own_fields(options));
  add_translation_options(&options.translation, &arguments);
  arguments.common({"gold", "task", "json", "null-odds", "rules", "tokenize", "lowercase", "word-order", "confidence",
                    "paired-bootstrap"});
  arguments.example("score squad predictions.json --gold dev-v1.1.json", "exact match and F1");
  arguments.example("score bleu ours.de theirs.de --reference test.de --paired-bootstrap 1000",
                    "BLEU of two systems, and whether they differ");
  add_notes(&arguments);
  if (!arguments.parse(words)) return kOk;
  as_usage([&] { check_options(arguments, options); });
  if (is_translation(options)) {
    score_translations(options.question, options.translation, options.predictions, options.gold, options.json);
    return kOk;
  }
  const Result result = options.question == "squad"
                            ? score_squad_file(options)
                            : score_task(options, options.question == "glue" ? Suite::kGlue : Suite::kSuperGlue);
  for (const Score& score : result.scores) {
    if (!score.note.empty()) notice(score.name + ": " + score.note);
  }
  print_result(
      options.json, [&] { return json_text(to_object(options, result), 2) + "\n"; },
      [&] { print_table(options, result); });
  return kOk;
}

}  // namespace headshare
