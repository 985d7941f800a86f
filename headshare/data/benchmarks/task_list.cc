#include "headshare/data/benchmarks/task_list.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"

namespace headshare {
namespace {

using enum Metric;

const std::vector<std::string> kEntailment = {"entailment", "not_entailment"};
const std::vector<std::string> kThreeWay = {"entailment", "neutral", "contradiction"};
const std::vector<std::string> kZeroOne = {"0", "1"};
const std::vector<std::string> kFalseTrue = {"false", "true"};

ColumnChoice column(std::vector<std::string> names) { return {.names = std::move(names)}; }

// Test files have no label.
ColumnChoice label_column(std::vector<std::string> names) { return {.names = std::move(names), .required = false}; }

TaskInfo glue(std::string name, std::string title, std::string folder) {
  return {.suite = Suite::kGlue,
          .name = std::move(name),
          .title = std::move(title),
          .folder = std::move(folder),
          .train = "train.tsv",
          .dev = "dev.tsv",
          .test = "test.tsv",
          .first = column({"sentence1"}),
          .second = column({"sentence2"}),
          .label = label_column({"label"}),
          .labels = kZeroOne,
          .metrics = {kAccuracy}};
}

TaskInfo superglue(std::string name, std::string folder, TaskForm form) {
  return {.suite = Suite::kSuperGlue,
          .name = std::move(name),
          .title = folder,
          .folder = folder,
          .train = "train.jsonl",
          .dev = "val.jsonl",
          .test = "test.jsonl",
          .form = form,
          .first = column({"premise"}),
          .second = column({"hypothesis"}),
          .label = label_column({"label"}),
          .labels = kFalseTrue,
          .metrics = {kAccuracy}};
}

TaskInfo mnli(const std::string& name, const std::string& title, const std::string& part) {
  TaskInfo task = glue(name, title, "MNLI");
  task.dev = "dev_" + part + ".tsv";
  task.test = "test_" + part + ".tsv";
  task.label = label_column({"gold_label"});
  task.labels = kThreeWay;
  return task;
}

std::vector<TaskInfo> glue_tasks() {
  TaskInfo cola = glue("cola", "CoLA", "CoLA");
  cola.columns = {"source", "label", "original_label", "sentence"};
  cola.first = column({"sentence"});
  cola.second = {};
  cola.metrics = {kMatthews};
  TaskInfo sst2 = glue("sst-2", "SST-2", "SST-2");
  sst2.first = column({"sentence"});
  sst2.second = {};
  TaskInfo mrpc = glue("mrpc", "MRPC", "MRPC");
  mrpc.first = column({"#1 String"});
  mrpc.second = column({"#2 String"});
  mrpc.label = label_column({"Quality"});
  mrpc.metrics = {kF1, kAccuracy};
  TaskInfo stsb = glue("sts-b", "STS-B", "STS-B");
  stsb.label = label_column({"score"});
  stsb.labels = {};
  stsb.most = 5;
  stsb.metrics = {kPearson, kSpearman};
  TaskInfo qqp = glue("qqp", "QQP", "QQP");
  qqp.first = column({"question1"});
  qqp.second = column({"question2"});
  qqp.label = label_column({"is_duplicate"});
  qqp.lenient = true;
  qqp.metrics = {kF1, kAccuracy};
  TaskInfo qnli = glue("qnli", "QNLI", "QNLI");
  qnli.first = column({"question"});
  qnli.second = column({"sentence"});
  qnli.labels = kEntailment;
  TaskInfo rte = glue("rte", "RTE", "RTE");
  rte.labels = kEntailment;
  // diagnostic.tsv has no labels, diagnostic-full.tsv has them and other names.
  TaskInfo ax = glue("ax", "AX", "diagnostic");
  ax.train = "";
  ax.dev = "diagnostic-full.tsv";
  ax.test = "diagnostic.tsv";
  ax.first = column({"sentence1", "Premise"});
  ax.second = column({"sentence2", "Hypothesis"});
  ax.label = label_column({"Label"});
  ax.labels = kThreeWay;
  ax.metrics = {kMatthews};
  return {cola,
          sst2,
          mrpc,
          stsb,
          qqp,
          mnli("mnli", "MNLI matched", "matched"),
          mnli("mnli-mm", "MNLI mismatched", "mismatched"),
          qnli,
          rte,
          glue("wnli", "WNLI", "WNLI"),
          ax};
}

std::vector<TaskInfo> superglue_tasks() {
  TaskInfo boolq = superglue("boolq", "BoolQ", TaskForm::kText);
  boolq.first = column({"passage"});
  boolq.second = column({"question"});
  TaskInfo cb = superglue("cb", "CB", TaskForm::kText);
  cb.labels = kThreeWay;
  cb.metrics = {kMacroF1, kAccuracy};
  TaskInfo copa = superglue("copa", "COPA", TaskForm::kChoice);
  copa.labels = kZeroOne;
  TaskInfo multirc = superglue("multirc", "MultiRC", TaskForm::kMultiRc);
  multirc.labels = kZeroOne;
  multirc.metrics = {kF1, kGroupedExactMatch};
  TaskInfo record = superglue("record", "ReCoRD", TaskForm::kRecord);
  record.labels = {};
  record.metrics = {};  // record_scores of answers.h
  TaskInfo rte = superglue("rte", "RTE", TaskForm::kText);
  rte.labels = kEntailment;
  // The two diagnostics have labels, and no other part.
  TaskInfo axb = superglue("ax-b", "AX-b", TaskForm::kText);
  axb.train = axb.test = "";
  axb.dev = "AX-b.jsonl";
  axb.first = column({"sentence1"});
  axb.second = column({"sentence2"});
  axb.labels = kEntailment;
  axb.metrics = {kMatthews};
  TaskInfo axg = superglue("ax-g", "AX-g", TaskForm::kText);
  axg.train = axg.test = "";
  axg.dev = "AX-g.jsonl";
  axg.labels = kEntailment;
  return {boolq,
          cb,
          copa,
          multirc,
          record,
          rte,
          superglue("wic", "WiC", TaskForm::kWords),
          superglue("wsc", "WSC", TaskForm::kPronoun),
          axb,
          axg};
}

// Returns the name in lower case, without '-' and '_'.
std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char one : name) {
    if (one != '-' && one != '_') plain += static_cast<char>('A' <= one && one <= 'Z' ? one + 'a' - 'A' : one);
  }
  return plain;
}

}  // namespace

const std::vector<TaskInfo>& task_list() {
  static const std::vector<TaskInfo> tasks = [] {
    std::vector<TaskInfo> all = glue_tasks();
    for (TaskInfo& task : superglue_tasks()) all.push_back(std::move(task));
    return all;
  }();
  return tasks;
}

std::string suite_name(Suite suite) { return suite == Suite::kGlue ? "glue" : "superglue"; }

std::vector<std::string> task_names(Suite suite) {
  std::vector<std::string> names;
  for (const TaskInfo& task : task_list()) {
    if (task.suite == suite) names.push_back(task.name);
  }
  return names;
}

const TaskInfo& find_task(Suite suite, const std::string& name) {
  for (const TaskInfo& task : task_list()) {
    if (task.suite == suite && plain_name(task.name) == plain_name(name)) return task;
  }
  const std::vector<std::string> known = task_names(suite);
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
  throw Error(join_text(suite_name(suite), " has no task ", brief_text(name), did_you_mean(name, known),
                        "; its tasks are ", list));
}

fs::path find_task_file(const TaskInfo& task, const fs::path& root, TaskPart part) {
  const std::string& name = part == TaskPart::kTrain ? task.train : part == TaskPart::kDev ? task.dev : task.test;
  const char* what = part == TaskPart::kTrain ? "training" : part == TaskPart::kDev ? "development" : "test";
  HS_CHECK(!name.empty(), task.title, " has no ", what, " part");
  std::string tried;
  for (const fs::path& folder : {root / task.folder, root}) {
    for (const char* ending : {"", ".gz"}) {
      const fs::path path = folder / (name + ending);
      if (fs::exists(path)) return path;
      tried += (tried.empty() ? "" : ", ") + path.string();
    }
  }
  throw Error(join_text("the ", what, " part of ", task.title, " is not there; none of these exists: ", tried));
}

}  // namespace headshare
