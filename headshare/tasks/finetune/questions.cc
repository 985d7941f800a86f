#include "headshare/tasks/finetune/questions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <unordered_set>

#include "headshare/base/error.h"
#include "headshare/base/strings/number.h"
#include "headshare/data/benchmarks/superglue.h"
#include "headshare/metrics/answers.h"
#include "headshare/tasks/finetune/subset.h"

namespace headshare {
namespace {

void add(QuestionSet* set, Question question) { set->questions.push_back(std::move(question)); }

void read_copa_questions(const std::string& path, RowEncoder& rows, QuestionSet* set) {
  for (const CopaExample& one : read_copa(path)) {
    const std::string asked =
        one.premise + (one.asks_cause ? " What was the cause of this?" : " What happened as a result?");
    add(set, {.rows = {rows.pair(asked, one.choice1), rows.pair(asked, one.choice2)},
              .label = one.label,
              .index = one.index});
  }
}

void read_wic_questions(const std::string& path, RowEncoder& rows, QuestionSet* set) {
  for (const WicExample& one : read_wic(path)) {
    add(set, {.rows = {rows.pair_with_words({one.sentence1, one.place1}, {one.sentence2, one.place2})},
              .label = one.label,
              .index = one.index});
  }
}

void read_wsc_questions(const std::string& path, RowEncoder& rows, QuestionSet* set) {
  const WscData data = read_wsc(path);
  for (const WscExample& one : data.examples) {
    add(set,
        {.rows = {rows.single_with_words(one.text, {one.noun, one.pronoun})}, .label = one.label, .index = one.index});
  }
  if (!data.note.empty()) set->notes.push_back(data.note);
}

void read_multirc_questions(const std::string& path, RowEncoder& rows, QuestionSet* set) {
  const MultiRcData data = read_multirc(path);
  if (!data.note.empty()) set->notes.push_back(data.note);
  for (const MultiRcExample& one : data.examples) {
    add(set, {.rows = {rows.pair(data.paragraphs[one.paragraph], one.question + " " + one.answer)},
              .label = one.label,
              .index = one.answer_index,
              .group = one.question_index,
              .passage = one.paragraph_index});
  }
}

std::string filled(std::string query, const std::string& candidate) {
  const std::string_view mark = "@placeholder";
  const size_t at = query.find(mark);
  return at == std::string::npos ? query : query.replace(at, mark.size(), candidate);
}

// Returns each candidate once, in the order of the passage.
std::vector<std::string> candidates_of(const RecordPassage& passage) {
  std::vector<std::string> texts;
  std::unordered_set<std::string> seen;
  for (const TextSpan& entity : passage.entities) {
    const std::string text = passage.text.substr(entity.begin, entity.end - entity.begin);
    if (seen.insert(text).second) texts.push_back(text);
  }
  return texts;
}

// Marks the choices that are an answer, as the official scorer compares texts.
void mark_right_choices(Question* question) {
  std::unordered_set<std::string> answers;
  for (const std::string& answer : question->answers) answers.insert(normalize_answer(answer));
  for (size_t row = 0; row < question->choices.size(); ++row) {
    const bool right = answers.contains(normalize_answer(question->choices[row]));
    if (right && question->label < 0) question->label = static_cast<int32_t>(row);
    question->right_choices.push_back(right ? 1 : 0);
  }
}

void read_record_questions(const std::string& path, RowEncoder& rows, QuestionSet* set) {
  const RecordData data = read_record(path);
  const bool kept = rows.keeps_words();
  rows.keep_words(false);  // each passage is in as many rows as it has candidates
  int64_t unanswerable = 0;
  for (const RecordQuery& query : data.queries) {
    const RecordPassage& passage = data.passages[query.passage];
    Question question{.index = query.index, .choices = candidates_of(passage), .answers = query.answers};
    for (const std::string& candidate : question.choices) {
      question.rows.push_back(rows.pair(passage.text, filled(query.query, candidate)));
    }
    if (!query.answers.empty()) mark_right_choices(&question);
    if (!query.answers.empty() && question.label < 0) ++unanswerable;
    HS_CHECK(!question.rows.empty(), path, ": query ", query.index, " has no candidate to choose from");
    add(set, std::move(question));
  }
  rows.keep_words(kept);
  if (!data.note.empty()) set->notes.push_back(data.note);
  if (unanswerable > 0) {
    set->notes.push_back(join_text(path, ": the answers of ", unanswerable, " of ", data.queries.size(),
                                   " queries are no candidates of their passages"));
  }
}

void note_cuts(int64_t rows_before, int64_t cut_before, const RowEncoder& rows, QuestionSet* set) {
  const int64_t cut = rows.shortened() - cut_before;
  if (cut == 0) return;
  set->notes.push_back(join_text(set->source, ": ", cut, " of ", rows.rows() - rows_before, " rows were longer than ",
                                 rows.length(), " tokens and were cut (--max-length)"));
}

}  // namespace

bool Question::right(size_t row) const {
  return right_choices.empty() ? static_cast<int64_t>(row) == label : right_choices.at(row) != 0;
}

QuestionKind kind_of(const TaskInfo& task) {
  QuestionKind kind{.name = suite_name(task.suite) + "/" + task.name,
                    .title = task.title,
                    .labels = task.labels,
                    .metrics = task.metrics,
                    .task = &task};
  const bool words = task.form == TaskForm::kWords || task.form == TaskForm::kPronoun;
  const bool choice = task.form == TaskForm::kChoice || task.form == TaskForm::kRecord;
  if (words) kind.head = TaskHeadKind::kWords;
  if (choice) {
    kind.form = AnswerForm::kRow;
    kind.labels.clear();
  } else if (task.labels.empty()) {
    kind.form = AnswerForm::kNumber;
  }
  return kind;
}

QuestionKind kind_of(const TextExamples& examples, const std::string& name) {
  QuestionKind kind{.name = name, .title = name, .labels = examples.labels};
  if (examples.labels.empty()) {
    kind.form = AnswerForm::kNumber;
    kind.metrics = {Metric::kPearson, Metric::kSpearman};
  } else {
    HS_CHECK(examples.labels.size() > 1, examples.source, ": every label is '", examples.labels[0],
             "'; there is nothing to tell apart");
    kind.metrics = {Metric::kAccuracy, Metric::kMacroF1};
  }
  return kind;
}

QuestionSet to_questions(const TextExamples& examples, RowEncoder& rows) {
  const int64_t rows_before = rows.rows();
  const int64_t cut_before = rows.shortened();
  QuestionSet set{.source = examples.source, .labelled = examples.labelled, .notes = examples.notes};
  for (const TextExample& one : examples.items) {
    EncodedRow row = examples.pairs ? rows.pair(one.first, one.second) : rows.single(one.first);
    add(&set, {.rows = {std::move(row)}, .label = one.label, .number = one.number, .index = one.index});
  }
  note_cuts(rows_before, cut_before, rows, &set);
  return set;
}

QuestionSet read_questions(const TaskInfo& task, const std::string& path, RowEncoder& rows) {
  if (task.form == TaskForm::kText) return to_questions(read_examples(task, path), rows);
  const int64_t rows_before = rows.rows();
  const int64_t cut_before = rows.shortened();
  QuestionSet set{.source = path};
  switch (task.form) {
    case TaskForm::kText:
      break;
    case TaskForm::kChoice:
      read_copa_questions(path, rows, &set);
      break;
    case TaskForm::kWords:
      read_wic_questions(path, rows, &set);
      break;
    case TaskForm::kPronoun:
      read_wsc_questions(path, rows, &set);
      break;
    case TaskForm::kMultiRc:
      read_multirc_questions(path, rows, &set);
      break;
    case TaskForm::kRecord:
      read_record_questions(path, rows, &set);
      break;
  }
  const Question& first = set.questions.front();  // readers refuse files without examples
  set.labelled = first.label >= 0 || !first.answers.empty();
  note_cuts(rows_before, cut_before, rows, &set);
  return set;
}

namespace {

// A Unit has examples that are drawn together, as places in the set.
using Unit = std::vector<size_t>;

// Groups the examples that are drawn together: the answers of one MultiRC question, or with `whole_passages` of all
// questions on one paragraph; any other example is alone.
std::vector<Unit> drawn_together(const QuestionSet& set, bool whole_passages) {
  std::map<std::pair<int64_t, int64_t>, size_t> places;
  std::vector<Unit> units;
  const bool grouped = std::any_of(set.questions.begin(), set.questions.end(),
                                   [](const Question& one) { return one.group != 0 || one.passage != 0; });
  for (size_t i = 0; i < set.questions.size(); ++i) {
    const Question& one = set.questions[i];
    const std::pair key(one.passage, whole_passages ? 0 : one.group);
    const auto [found, added] = places.try_emplace(key, units.size());
    if (!grouped || added) {
      units.push_back({i});
    } else {
      units[found->second].push_back(i);
    }
  }
  return units;
}

}  // namespace

void keep_some(std::optional<int64_t> most, QuestionSet* set) {
  const size_t total = set->questions.size();
  if (!most || static_cast<size_t>(*most) >= total) return;
  const std::vector<Unit> units = drawn_together(*set, /*whole_passages=*/false);
  std::vector<char> marked(total, 0);
  size_t kept = 0;
  for (const size_t drawn : shuffled(units.size(), "subset of examples")) {
    const Unit& unit = units[drawn];
    if (kept > 0 && kept + unit.size() > static_cast<size_t>(*most)) break;
    for (const size_t i : unit) marked[i] = 1;
    kept += unit.size();
  }
  set->questions = take_marked(marked, &set->questions);
  set->notes.push_back(join_text(set->source, ": ", kept, " of ", total, " examples are used",
                                 units.size() < total ? ", questions whole" : ""));
}

QuestionSet split_off(double fraction, QuestionSet* set) {
  const size_t total = set->questions.size();
  const std::vector<Unit> units = drawn_together(*set, /*whole_passages=*/true);
  HS_CHECK(units.size() >= 2, set->source, " has 1 ", total > 1 ? "paragraph" : "example",
           "; two are needed to hold one back");
  const auto wanted = static_cast<size_t>(std::llround(fraction * static_cast<double>(units.size())));
  const std::vector<char> drawn = draw_subset(std::clamp<size_t>(wanted, 1, units.size() - 1), units.size());
  std::vector<char> marked(total, 0);
  for (size_t u = 0; u < units.size(); ++u) {
    for (const size_t i : units[u]) marked[i] = drawn[u];
  }
  QuestionSet taken{.source = set->source, .labelled = set->labelled};
  taken.questions = take_marked(marked, &set->questions);
  set->notes.push_back(
      join_text(set->source, ": ", taken.questions.size(), " of ", total, " examples are held back for validation"));
  return taken;
}

void check_indexes(const QuestionSet& set) {
  std::set<std::array<int64_t, 3>> seen;
  for (const Question& one : set.questions) {
    HS_CHECK(seen.insert({one.passage, one.group, one.index}).second, set.source, ": two rows have the index ",
             one.index,
             " (the column index or idx), so nobody could say which answer belongs to which; number the rows, ",
             "or rename or take out that column");
  }
}

std::vector<int64_t> class_counts(const QuestionSet& set, size_t classes) {
  std::vector<int64_t> counts(classes);
  for (const Question& question : set.questions) {
    if (question.label >= 0) ++counts.at(static_cast<size_t>(question.label));
  }
  return counts;
}

void add_to(ContentHash* hash, const QuestionSet& set) {
  for (const Question& question : set.questions) {
    for (const EncodedRow& row : question.rows) {
      hash->update(row.ids.data(), row.ids.size() * sizeof(int64_t));
      hash->update(row.words.data(), sizeof(row.words));
    }
    hash->update(join_text(question.label, " ", question.number, " ", question.index, " ", question.group, "\n"));
    for (const std::string& answer : question.answers) hash->update(answer + "\n");
  }
  hash->update("end of part\n");
}

namespace {

std::vector<Score> score_texts(const QuestionSet& set, const Answers& answers) {
  std::vector<AnswerPair> pairs;
  for (size_t i = 0; i < answers.size(); ++i) {
    const Question& question = set.questions[i];
    pairs.push_back({.gold = question.answers, .predicted = question.choices.at(static_cast<size_t>(answers[i]))});
  }
  return record_scores(pairs);
}

}  // namespace

std::string answer_text(const QuestionKind& kind, const Question& question, double answer) {
  switch (kind.form) {
    case AnswerForm::kNumber:
      return exact_text(answer);  // scored again, it gives the same scores
    case AnswerForm::kClass:
      return kind.labels.at(static_cast<size_t>(answer));
    case AnswerForm::kRow:
      break;
  }
  return kind.answers_are_texts() ? question.choices.at(static_cast<size_t>(answer))
                                  : join_text(static_cast<int64_t>(answer));
}

std::vector<Score> score_answers(const QuestionKind& kind, const QuestionSet& set, const Answers& answers) {
  if (kind.answers_are_texts()) return score_texts(set, answers);
  Outcomes outcomes;
  for (size_t i = 0; i < answers.size(); ++i) {
    const Question& question = set.questions[i];
    if (kind.form == AnswerForm::kNumber) {
      outcomes.gold_numbers.push_back(question.number);
      outcomes.predicted_numbers.push_back(answers[i]);
    } else {
      outcomes.gold.push_back(question.label);
      outcomes.predicted.push_back(static_cast<int32_t>(answers[i]));
      outcomes.groups.emplace_back(question.passage, question.group);
    }
  }
  return measure(kind.metrics, outcomes);
}

std::optional<std::vector<Score>> score_most_frequent(const QuestionKind& kind, const QuestionSet& train,
                                                      const QuestionSet& set) {
  if (kind.form == AnswerForm::kNumber || set.questions.empty()) return std::nullopt;
  const size_t rows = set.questions.front().rows.size();
  const auto as_many = [rows](const Question& question) { return question.rows.size() == rows; };
  const size_t answers = kind.form == AnswerForm::kClass ? kind.labels.size() : rows;
  if (answers == 0) return std::nullopt;  // ReCoRD: no candidate anywhere
  for (const QuestionSet* part : {&train, &set}) {
    if (!std::all_of(part->questions.begin(), part->questions.end(), as_many)) return std::nullopt;
  }
  const std::vector<int64_t> counts = class_counts(train, answers);
  const auto most = std::max_element(counts.begin(), counts.end()) - counts.begin();
  return score_answers(kind, set, Answers(set.questions.size(), static_cast<double>(most)));
}

}  // namespace headshare
