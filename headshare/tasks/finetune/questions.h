// Labelled examples of any task become questions to an encoder: rows of tokens, and what is right.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "headshare/data/benchmarks/examples.h"
#include "headshare/data/hash.h"
#include "headshare/metrics/metric.h"
#include "headshare/tasks/finetune/rows.h"

namespace headshare {

enum class AnswerForm {
  kClass,   // one row, a class
  kNumber,  // one row, a number
  kRow,     // several rows, one of which is right (ReCoRD: one or more)
};

struct Question {
  std::vector<EncodedRow> rows = {};
  int32_t label = -1;  // kClass: the class; kRow: the first right row; -1: unknown
  double number = std::numeric_limits<double>::quiet_NaN();  // kNumber
  int64_t index = 0;                                         // the index in the file
  int64_t group = 0;                                         // MultiRC: the question that an answer belongs to
  int64_t passage = 0;                                       // MultiRC: the paragraph of that question
  std::vector<std::string> choices = {};                     // ReCoRD: the text of each row's candidate
  std::vector<std::string> answers = {};                     // ReCoRD: the right texts
  std::vector<char> right_choices = {};                      // ReCoRD: which choices are one of these

  // Tells for kRow whether a row is a right one.
  bool right(size_t row) const;
};

// A QuestionKind is what a task asks.
struct QuestionKind {
  std::string name = {};  // "glue/cola"
  std::string title = {};
  AnswerForm form = AnswerForm::kClass;
  TaskHeadKind head = TaskHeadKind::kText;
  std::vector<std::string> labels = {};  // kClass: a name for each class
  std::vector<Metric> metrics = {};
  const TaskInfo* task = nullptr;  // null: the user's own table

  bool answers_are_texts() const { return task != nullptr && task->form == TaskForm::kRecord; }
  int64_t outputs() const { return form == AnswerForm::kClass ? static_cast<int64_t>(labels.size()) : 1; }
};

QuestionKind kind_of(const TaskInfo& task);

// A QuestionSet is a part of a task's data.
struct QuestionSet {
  std::string source = {};  // the file
  std::vector<Question> questions = {};
  bool labelled = false;
  std::vector<std::string> notes = {};  // sentences for the user: what was left out, cut or looks wrong
};

// Reads a file of a task of GLUE or SuperGLUE. Throws Error as the task's reader does.
QuestionSet read_questions(const TaskInfo& task, const std::string& path, RowEncoder& rows);

// Makes questions of texts already read, the user's own or a task's.
QuestionSet to_questions(const TextExamples& examples, RowEncoder& rows);

// Returns the kind of question that the user's own table asks: its classes, or numbers.
QuestionKind kind_of(const TextExamples& examples, const std::string& name);

// Keeps `most` of a part's examples, drawn by shuffled(); all where there are not more. The answers of a MultiRC
// question stay together, so that there it may be a few less: its scores are of whole questions.
void keep_some(std::optional<int64_t> most, QuestionSet* set);

// Takes `fraction` of the examples (at least one, leaving at least one) out of a set and returns them, drawn as
// keep_some does; from MultiRC it takes whole paragraphs. Throws Error for fewer than two of them.
QuestionSet split_off(double fraction, QuestionSet* set);

// Throws Error for two questions of one index: the index identifies an answer, in MultiRC within its question.
void check_indexes(const QuestionSet& set);

// Counts the questions of each class, for kClass.
std::vector<int64_t> class_counts(const QuestionSet& set, size_t classes);

// Adds the rows, and what is right, to a hash.
void add_to(ContentHash* hash, const QuestionSet& set);

// Answers are what a model answered to each question: a class, a number or a row.
using Answers = std::vector<double>;

// Returns an answer as files have it: a label, a number with every digit, a choice by its text or its place.
std::string answer_text(const QuestionKind& kind, const Question& question, double answer);

// Returns the task's scores of answers to a labelled set.
std::vector<Score> score_answers(const QuestionKind& kind, const QuestionSet& set, const Answers& answers);

// Returns those scores where every answer is the one that is right most often in `train` (the first of several): what a
// model has to beat. Absent for numbers, and where questions have different numbers of rows.
std::optional<std::vector<Score>> score_most_frequent(const QuestionKind& kind, const QuestionSet& train,
                                                      const QuestionSet& set);

}  // namespace headshare
