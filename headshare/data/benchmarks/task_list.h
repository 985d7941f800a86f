// This list holds the tasks of GLUE and SuperGLUE: where their files lie, what they hold, how they are scored. Readers
// (examples.h, superglue.h), scores and fine-tuning all read it.
#pragma once

#include <string>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/data/benchmarks/table.h"
#include "headshare/metrics/metric.h"

namespace headshare {

enum class Suite { kGlue, kSuperGlue };

// A form says what an example consists of; each form has its reader.
enum class TaskForm {
  kText,     // one text or two, and a class or a number: read_examples
  kChoice,   // COPA: read_copa
  kMultiRc,  // MultiRC: read_multirc
  kRecord,   // ReCoRD: read_record
  kWords,    // WiC: read_wic
  kPronoun,  // WSC: read_wsc
};

struct TaskInfo {
  Suite suite = Suite::kGlue;
  std::string name;        // "mnli-mm"
  std::string title;       // "MNLI mismatched"
  std::string folder;      // in the official archives: "MNLI"
  std::string train = {};  // file names in it, without .gz; "" where there is none
  std::string dev = {};
  std::string test = {};
  TaskForm form = TaskForm::kText;

  // These are the columns of a kText task, by the first of these names that the file has; `second` is empty for single
  // texts.
  ColumnChoice first = {};
  ColumnChoice second = {};
  ColumnChoice label = {};
  std::vector<std::string> columns = {};  // names for a file without a heading, but for its test part
  bool lenient = false;                   // the official files have rows cut short, and empty texts

  std::vector<std::string> labels = {};  // as the files write them, class 0 first; empty: a number
  double least = 0;                      // of a number
  double most = 0;
  std::vector<Metric> metrics = {};  // F1 is that of class 1
};

// Lists the tasks in the order of the papers.
const std::vector<TaskInfo>& task_list();

std::string suite_name(Suite suite);  // "glue", "superglue"
std::vector<std::string> task_names(Suite suite);

// Throws Error, with the nearest name and all others, when there is none. Case, '-' and '_' do not
// matter: "sst2" is "sst-2".
const TaskInfo& find_task(Suite suite, const std::string& name);

enum class TaskPart { kTrain, kDev, kTest };

// Finds the file of a part below `root`: in the task's own folder or in root itself, plain or .gz. Throws Error with
// the paths tried.
fs::path find_task_file(const TaskInfo& task, const fs::path& root, TaskPart part);

}  // namespace headshare
