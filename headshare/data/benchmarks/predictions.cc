#include "headshare/data/benchmarks/predictions.h"

#include <optional>
#include <stdexcept>
#include <unordered_map>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/strings/number.h"
#include "headshare/data/benchmarks/examples.h"
#include "headshare/data/benchmarks/json_lines.h"
#include "headshare/data/benchmarks/superglue.h"
#include "headshare/text/unicode/lower_case.h"

namespace headshare {
namespace {

using Json = nlohmann::json;

// This class holds predictions by the index of their example.
class Answers {
 public:
  Answers(const TaskInfo& task, const GoldLabels& gold, const std::string& source)
      : task_(task), gold_(gold), source_(source), values_(gold.index.size()) {
    for (size_t i = 0; i < gold.index.size(); ++i) place_[gold.index[i]] = i;
  }

  void set(int64_t index, const std::string& value, const std::string& where) {
    const auto found = place_.find(index);
    HS_CHECK(found != place_.end(), where, ": the index ", index, " is not in ", gold_.source, ", which has ",
             gold_.index.size(), " examples");
    set_place(found->second, index, value, where);
  }

  // Adds the next prediction, in the order of the gold.
  void append(const std::string& value, const std::string& where) {
    if (next_ < values_.size()) set_place(next_, gold_.index[next_], value, where);
    ++next_;
  }

  // Checks, after append, that there are as many predictions as the gold has examples.
  void check_count() const {
    HS_CHECK(next_ == values_.size(), source_, " has ", next_, " predictions, one a line, for the ", values_.size(),
             " examples of ", gold_.source);
  }

  Outcomes join() const {
    Outcomes outcomes = gold_.outcomes;
    int64_t missing = 0;
    int64_t first = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!values_[i] && missing++ == 0) first = gold_.index[i];
      const double value = values_[i].value_or(0);
      if (task_.labels.empty()) {
        outcomes.predicted_numbers.push_back(value);
      } else {
        outcomes.predicted.push_back(static_cast<int32_t>(value));
      }
    }
    HS_CHECK(missing == 0, source_, ": ", missing, " of ", values_.size(), " examples of ", gold_.source,
             " have no prediction, the first is index ", first);
    return outcomes;
  }

 private:
  void set_place(size_t place, int64_t index, const std::string& value, const std::string& where) {
    HS_CHECK(!values_[place], where, ": a second prediction for index ", index);
    if (task_.labels.empty()) {
      values_[place] = parse_number(value, where);
    } else {
      const bool truth = task_.labels[1] == "true";
      values_[place] = find_label(truth ? lower_case(value) : value, task_.labels, where);
    }
  }

  const TaskInfo& task_;
  const GoldLabels& gold_;
  std::string source_;
  std::unordered_map<int64_t, size_t> place_;
  std::vector<std::optional<double>> values_;  // a class or a number
  size_t next_ = 0;
};

void read_submission_line(const std::string& line, const std::string& where, Answers* answers) {
  const size_t tab = line.find('\t');
  HS_CHECK(tab != std::string::npos && line.find('\t', tab + 1) == std::string::npos, where,
           ": two columns were expected, index and prediction, not ", brief_text(line));
  const std::string number = line.substr(0, tab);
  const std::optional<int64_t> index = number_in<int64_t>(number);
  HS_CHECK(index, where, ": the index must be a whole number, not ", brief_text(number));
  answers->set(*index, line.substr(tab + 1), where);
}

void read_glue(const std::string& path, Answers* answers) {
  LineReader lines(path);
  bool submission = false;
  while (const std::optional<std::string_view> read = lines.next()) {
    const std::string line(without_return(*read));
    if (lines.number() == 1 && lower_case(line) == "index\tprediction") {
      submission = true;
    } else if (submission) {
      read_submission_line(line, lines.where(), answers);
    } else {
      answers->append(line, lines.where());
    }
  }
  if (!submission) answers->check_count();
}

std::string label_of(const Json& record, const std::string& where) {
  return text_or_json(json_member(record, "label", where));
}

int64_t index_of(const Json& record, const std::string& where) { return json_id(record, "idx", where); }

void read_superglue(const TaskInfo& task, const std::string& path, Answers* answers) {
  for_each_json_line(path, [&](const Json& record, const std::string& where) {
    if (task.form != TaskForm::kMultiRc) {
      answers->set(index_of(record, where), label_of(record, where), where);
      return;
    }
    const Json& passage = json_member(record, "passage", where);
    for (const Json& question : json_list(passage, "questions", where)) {
      for (const Json& answer : json_list(question, "answers", where)) {
        answers->set(index_of(answer, where), label_of(answer, where), where);
      }
    }
  });
}

template <class Example>
void add_labels(const std::vector<Example>& examples, GoldLabels* gold) {
  for (const Example& example : examples) {
    gold->index.push_back(example.index);
    gold->outcomes.gold.push_back(example.label);
  }
}

void add_texts(const TaskInfo& task, const TextExamples& examples, GoldLabels* gold) {
  HS_CHECK(examples.labelled, examples.source, " has no labels: predictions for it cannot be scored here");
  gold->notes = examples.notes;
  if (!task.labels.empty()) {
    add_labels(examples.items, gold);
    return;
  }
  for (const TextExample& example : examples.items) {
    gold->index.push_back(example.index);
    gold->outcomes.gold_numbers.push_back(example.number);
  }
}

void add_multirc(const MultiRcData& data, GoldLabels* gold) {
  for (const MultiRcExample& example : data.examples) {
    gold->index.push_back(example.answer_index);
    gold->outcomes.gold.push_back(example.label);
    gold->outcomes.groups.emplace_back(example.paragraph_index, example.question_index);
  }
}

}  // namespace

GoldLabels read_gold_labels(const TaskInfo& task, const std::string& path) {
  GoldLabels gold{.source = path};
  switch (task.form) {
    case TaskForm::kText:
      add_texts(task, read_examples(task, path), &gold);
      break;
    case TaskForm::kChoice:
      add_labels(read_copa(path), &gold);
      break;
    case TaskForm::kWords:
      add_labels(read_wic(path), &gold);
      break;
    case TaskForm::kPronoun:
      add_labels(read_wsc(path).examples, &gold);
      break;
    case TaskForm::kMultiRc:
      add_multirc(read_multirc(path), &gold);
      break;
    case TaskForm::kRecord:
      throw std::logic_error("ReCoRD has answers, not labels");
  }
  HS_CHECK(gold.outcomes.gold.empty() || gold.outcomes.gold[0] >= 0, path,
           " has no labels: predictions for it cannot be scored here");
  std::unordered_map<int64_t, size_t> seen;
  for (size_t i = 0; i < gold.index.size(); ++i) {
    const auto [first, is_new] = seen.try_emplace(gold.index[i], i);
    HS_CHECK(is_new, path, ": the examples ", first->second + 1, " and ", i + 1, " have the same index, ",
             gold.index[i]);
  }
  return gold;
}

Outcomes read_predictions(const TaskInfo& task, const GoldLabels& gold, const std::string& path) {
  Answers answers(task, gold, path);
  if (task.suite == Suite::kGlue) {
    read_glue(path, &answers);
  } else {
    read_superglue(task, path, &answers);
  }
  return answers.join();
}

std::vector<AnswerPair> read_record_answers(const std::string& gold, const std::string& predictions) {
  const RecordData data = read_record(gold);
  std::vector<AnswerPair> pairs;
  std::unordered_map<int64_t, size_t> places;
  for (const RecordQuery& query : data.queries) {
    HS_CHECK(!query.answers.empty(), gold, ": query ", query.index, " has no answers: it cannot be scored here");
    HS_CHECK(places.try_emplace(query.index, pairs.size()).second, gold, ": two queries have the index ", query.index);
    pairs.push_back({.gold = query.answers, .predicted = std::nullopt});
  }
  for_each_json_line(predictions, [&](const Json& record, const std::string& where) {
    const int64_t index = index_of(record, where);
    const auto found = places.find(index);
    HS_CHECK(found != places.end(), where, ": the query ", index, " is not in ", gold, ", which has ", pairs.size());
    std::optional<std::string>& predicted = pairs[found->second].predicted;
    HS_CHECK(!predicted, where, ": a second prediction for query ", index);
    predicted = json_string(record, "label", where);
  });
  return pairs;
}

}  // namespace headshare
