#include "headshare/tasks/finetune/fine_tuning_options.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/base/options/prefixed.h"

namespace headshare {

const std::vector<FineTuningTask>& fine_tuning_tasks() {
  constexpr const char* kJudge = "Judge sentences, pairs of sentences and passages: each task has a model of its own.";
  static const std::vector<FineTuningTask> all = {
      {.name = "glue", .sentence = kJudge, .data = DataLayout::kSuite},
      {.name = "superglue", .sentence = kJudge, .data = DataLayout::kSuite},
      {.name = "squad",
       .sentence = "Find the answer to a question in a paragraph, or see that it has none.",
       .data = DataLayout::kAnswersInTexts,
       .measure = "F1"},
      {.name = "classify", .sentence = "Tell the class of a text.", .data = DataLayout::kOwnTable},
      {.name = "pair", .sentence = "Tell the class of a pair of texts.", .data = DataLayout::kOwnTable},
      {.name = "regress", .sentence = "Give a text its number.", .data = DataLayout::kOwnTable}};
  return all;
}

const FineTuningTask& fine_tuning_task(const std::string& name) {
  const auto& all = fine_tuning_tasks();
  const auto found = std::find_if(all.begin(), all.end(), [&](const FineTuningTask& one) { return one.name == name; });
  HS_CHECK(found != all.end(), "--task ", name, " fine-tunes nothing");
  return *found;
}

Fields fields(BenchmarkOptions& o) {
  Fields list = {
      naming_directory(field(
          "encoders", &o.encoders,
          "fine-tune the encoders of this `compare --task mlm|three-way --out DIR`, seed i from the encoder of seed i "
          "(or all "
          "from one, if it has one seed); without it encoders are trained first, on --text, and kept in OUT/encoders")),
      field(
          "encoder-seeds", &o.encoder_seeds,
          "encoders to pre-train for each scheme: auto as many as --seeds, so that intervals are of schemes; 1 begins "
          "all seeds with one encoder, so that intervals are of fine-tuning alone",
          {.min = 1, .max = 1000}),
      field("tasks", &o.tasks, "of glue or superglue only these (cola,rte); empty: all of them"),
  };
  Fields own = {field("keep-models", &o.keep_models, "keep every fine-tuned model, not only its answers and scores")};
  append(&own, fields(o.job.files));
  append(&own, fields(o.job.table));
  append(&own, fields(o.job.tuning));
  append(&own, fields(o.tuning));
  append(&own, fields(o.job.windows));
  append(&own, fields(o.job.answers));
  append(&list, prefixed(kFineTuningPrefix, std::move(own)));
  return list;
}

std::string in_fine_tuning_words(const std::string& message) {
  BenchmarkOptions options;
  return with_prefixed_names(kFineTuningPrefix, fields(options), message);
}

void check_fine_tuning_jobs(const TaskOptions& options) { fine_tuning_jobs(options); }

std::vector<std::string> fine_tuning_jobs(const TaskOptions& options) {
  const std::vector<std::string>& chosen = options.own<BenchmarkOptions>().tasks;
  const std::string& name = options.task;
  HS_CHECK(chosen.empty() || fine_tuning_task(name).data == DataLayout::kSuite,
           "--tasks chooses among the tasks of glue and superglue; --task ", name, " is a single one");
  if (chosen.empty()) return expand_job_names({name});
  std::vector<std::string> full;
  for (const std::string& task : chosen) full.push_back(task.starts_with(name + "/") ? task : name + "/" + task);
  return expand_job_names(full);
}

}  // namespace headshare
