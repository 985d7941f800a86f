#include "headshare/data/benchmarks/submission.h"

#include <nlohmann/json.hpp>

#include "headshare/base/error.h"
#include "headshare/base/json/json_text.h"

namespace headshare {
namespace {

using OrderedJson = nlohmann::ordered_json;

// COPA's and MultiRC's labels are numbers, the other tasks' texts; WSC's begin with a capital, as those that the
// benchmark's own program (jiant) writes.
OrderedJson label_of(const TaskInfo& task, const std::string& answer) {
  if (task.form == TaskForm::kPronoun) return answer == "true" ? "True" : "False";
  const bool numbers = task.form == TaskForm::kChoice || task.form == TaskForm::kMultiRc;
  return numbers ? OrderedJson(answer == "1" ? 1 : 0) : OrderedJson(answer);
}

std::string multirc_lines(const TaskInfo& task, const std::vector<SubmittedAnswer>& answers) {
  std::vector<OrderedJson> passages;
  for (const SubmittedAnswer& one : answers) {
    if (passages.empty() || passages.back()["idx"] != one.passage) {
      passages.push_back({{"idx", one.passage}, {"passage", {{"questions", OrderedJson::array()}}}});
    }
    OrderedJson& questions = passages.back()["passage"]["questions"];
    if (questions.empty() || questions.back()["idx"] != one.question) {
      questions.push_back({{"idx", one.question}, {"answers", OrderedJson::array()}});
    }
    questions.back()["answers"].push_back({{"idx", one.index}, {"label", label_of(task, one.answer)}});
  }
  std::string text;
  for (const OrderedJson& passage : passages) text += json_text(passage) + "\n";
  return text;
}

}  // namespace

std::string submission(const TaskInfo& task, const std::vector<SubmittedAnswer>& answers) {
  if (task.form == TaskForm::kMultiRc) return multirc_lines(task, answers);
  const bool glue = task.suite == Suite::kGlue;
  std::string text = glue ? "index\tprediction\n" : "";
  for (const SubmittedAnswer& one : answers) {
    text += glue ? join_text(one.index, "\t", one.answer)
                 : OrderedJson{{"idx", one.index}, {"label", label_of(task, one.answer)}}.dump();
    text += "\n";
  }
  return text;
}

std::string submission_ending(const TaskInfo& task) { return task.suite == Suite::kGlue ? "tsv" : "jsonl"; }

}  // namespace headshare
