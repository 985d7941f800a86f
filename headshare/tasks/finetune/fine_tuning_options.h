// A comparison that fine-tunes encoders has these options: what they are fine-tuned on, and how.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/tasks/finetune/fine_tuning.h"
#include "headshare/tasks/task_options.h"

namespace headshare {

// DataLayout tells where the labelled examples are.
enum class DataLayout { kSuite, kAnswersInTexts, kOwnTable };

// A FineTuningTask is what --task names: GLUE, SuperGLUE, SQuAD, or a table of the user's own.
struct FineTuningTask {
  std::string name;      // "glue"
  std::string sentence;  // what it asks of the models
  DataLayout data;
  std::string measure = "score";
};

const std::vector<FineTuningTask>& fine_tuning_tasks();

// Returns the task of that name, which must exist.
const FineTuningTask& fine_tuning_task(const std::string& name);

struct BenchmarkOptions {
  std::string encoders = {};  // a comparison of masked language models; "": that comes first, on the text
  std::optional<int64_t> encoder_seeds = {};  // pre-trained here for each variant; default: as many as are fine-tuned
  std::vector<std::string> tasks = {};        // tasks of the suite; empty: all
  bool keep_models = false;
  JobOptions job = {};
  FineTuneLearning tuning = {};
};

// All but the first three begin with kFineTuningPrefix: pre-training has options of the same names.
Fields fields(BenchmarkOptions& options);
inline constexpr const char* kFineTuningPrefix = "finetune-";

// Puts an Error about fine-tuning into the words of a comparison: "--epochs" is --finetune-epochs there.
std::string in_fine_tuning_words(const std::string& message);

// Lists the tasks of options.task as open_job knows them. Throws Error for one that the suite does not have.
std::vector<std::string> fine_tuning_jobs(const TaskOptions& options);

// Throws Error as fine_tuning_jobs() does.
void check_fine_tuning_jobs(const TaskOptions& options);

}  // namespace headshare
