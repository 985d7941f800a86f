// A TaskNote says what a fine-tuned model was made for: it is kept beside the weights, and `predict` reads it.
#pragma once

#include <cstdint>
#include <string>

#include "headshare/base/files/file.h"
#include "headshare/data/benchmarks/examples.h"
#include "headshare/tasks/finetune/squad_answers.h"

namespace headshare {

inline constexpr const char* kTaskNoteFile = "task.json";
inline constexpr const char* kSquadTask = "squad";
inline constexpr int64_t kTaskNoteVersion = 1;

struct TaskNote {
  std::string task = {};            // "glue/cola", "squad", "classify", ...: a name of job_names()
  int64_t max_length = 0;           // tokens of a row
  int64_t most_rows = 1;            // rows that evaluations looked at together
  OwnTable table = {};              // the columns of the user's own table; another file may have another format
  SquadWindowOptions windows = {};  // of SQuAD
  AnswerOptions answers = {};       // of SQuAD
};

// Writes task.json into the directory of a model.
void write_task_note(const fs::path& directory, const TaskNote& note);

// Reads the note. Throws Error, with the way out, where there is none (models of headshare before it wrote any, and
// other models), where it is damaged, of a newer version, or about an unknown task.
TaskNote read_task_note(const fs::path& directory);

}  // namespace headshare
