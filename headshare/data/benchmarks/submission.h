// Answers as GLUE and SuperGLUE take them for their test parts, in the form that read_predictions reads back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headshare/data/benchmarks/task_list.h"

namespace headshare {

struct SubmittedAnswer {
  int64_t index = 0;     // of the example; MultiRC: of the answer option
  std::string answer;    // a label as the task's files write it, a number, or ReCoRD's text
  int64_t question = 0;  // MultiRC, whose lines nest: answer options of a question
  int64_t passage = 0;   // of a passage follow each other
};

// Returns the text of a submission. GLUE: a heading "index<TAB>prediction" and a line for each answer. SuperGLUE:
// {"idx": 0, "label": "true"} a line, for MultiRC a line for each passage with its questions and their answer options.
std::string submission(const TaskInfo& task, const std::vector<SubmittedAnswer>& answers);

// Returns "tsv" or "jsonl".
std::string submission_ending(const TaskInfo& task);

}  // namespace headshare
