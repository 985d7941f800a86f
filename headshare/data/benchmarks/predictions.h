// This header reads prediction files of GLUE and SuperGLUE tasks, joined with the gold they answer. Both come from
// outside: whatever does not fit together is an Error, never a score.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headshare/data/benchmarks/task_list.h"
#include "headshare/metrics/answers.h"
#include "headshare/metrics/metric.h"

namespace headshare {

// These are the right answers of a file of a task.
struct GoldLabels {
  std::string source;                   // the file
  std::vector<int64_t> index = {};      // of each example, as predictions name it (MultiRC: of each answer)
  Outcomes outcomes = {};               // gold or gold_numbers, and MultiRC's groups
  std::vector<std::string> notes = {};  // what the reader had to say of the file
};

// Reads a labelled file of any task but ReCoRD. Throws Error as the task's reader does, and when the file
// has no labels or an index twice.
GoldLabels read_gold_labels(const TaskInfo& task, const std::string& path);

// Returns the gold with the predictions beside it. Forms:
//   glue       GLUE's submissions, a heading "index<TAB>prediction" and a line for each example in any order;
//              without that heading one label (or number) a line, in the order of the gold
//   superglue  SuperGLUE's submissions, {"idx": 0, "label": "entailment"} a line in any order, for MultiRC
//              {"idx": 0, "passage": {"questions": [{"idx": 0, "answers": [{"idx": 0, "label": 1}]}]}}
// Labels are written as in the task's files; true and false in any case, or as truth values. Throws Error
// naming the file and the line, or the number of examples on both sides, for an unknown label, a number
// that is none, an index twice, an index the gold does not have, and missing predictions.
Outcomes read_predictions(const TaskInfo& task, const GoldLabels& gold, const std::string& path);

// Reads ReCoRD's predictions: {"idx": query, "label": "answer"} a line. A query without a prediction stays without one,
// as the official scorer has it.
std::vector<AnswerPair> read_record_answers(const std::string& gold, const std::string& predictions);

}  // namespace headshare
