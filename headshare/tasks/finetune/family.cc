// The families of labelled data fine-tune encoders, which learn masked tokens of a text first.
#include "headshare/base/error.h"
#include "headshare/base/options/prefixed.h"
#include "headshare/tasks/families.h"
#include "headshare/tasks/finetune/fine_tuning_options.h"

namespace headshare {
namespace {

// Throws Error for options of fine-tuning that are about other kinds of data.
void refuse_other_data(const TaskOptions& options, const TaskOptions& untouched) {
  BenchmarkOptions given = options.own<BenchmarkOptions>();
  BenchmarkOptions before = untouched.own<BenchmarkOptions>();
  const nlohmann::json defaults = to_json(fields(before));
  const auto refuse = [&](Fields list, const char* what) {
    for (const Field& one : prefixed(kFineTuningPrefix, std::move(list))) {
      HS_CHECK(one.value() == defaults.at(one.name), "--", one.name, " is about ", what, ", and --task is ",
               options.task, "; leave it out");
    }
  };
  const DataLayout data = fine_tuning_task(options.task).data;
  if (data != DataLayout::kAnswersInTexts) {
    refuse(fields(given.job.windows), "answers in texts");
    refuse(fields(given.job.answers), "answers in texts");
  }
  if (data != DataLayout::kOwnTable) refuse(fields(given.job.table), "a table of your own");
}

class FineTuningFamily : public TaskFamily {
 public:
  std::vector<std::string> tasks() const override {
    std::vector<std::string> names;
    for (const FineTuningTask& one : fine_tuning_tasks()) names.push_back(one.name);
    return names;
  }
  std::string learns() const override {
    return "labelled examples, of GLUE, SuperGLUE, SQuAD or a table of your own (encoders, fine-tuned)";
  }
  std::string heading() const override { return "Fine-tuning"; }
  std::vector<std::string> begins_with() const override { return {"mlm", "three-way"}; }

  bool reads_text() const override { return true; }
  bool learns_from_text() const override { return true; }

  Fields fields(TaskOptions& options) const override { return headshare::fields(options.own<BenchmarkOptions>()); }

  std::vector<std::string*> paths(TaskOptions& options) const override {
    BenchmarkOptions& own = options.own<BenchmarkOptions>();
    TaskFiles& files = own.job.files;
    return {&own.encoders, &files.data, &files.train, &files.validation, &files.test};
  }

  void set_defaults(const TaskOptions& asked, TaskOptions* options, TrainOptions* train) const override {
    first().set_defaults(asked, options, train);
  }
  void set_preset(Preset preset, TaskOptions* options, TrainOptions* train) const override {
    first().set_preset(preset, options, train);
  }

  void check(const TaskOptions& options, const TaskOptions& untouched) const override {
    first().check(options, untouched);
    refuse_other_data(options, untouched);
    check_fine_tuning_jobs(options);
    try {
      check_learning_rates(options.own<BenchmarkOptions>().tuning);
    } catch (const Error& error) {
      throw Error(in_fine_tuning_words(error.what()));
    }
  }

  void check_models(const std::vector<TaskOptions>& models) const override { first().check_models(models); }

  ModelOptions likely_model(const TaskOptions& options) const override { return first().likely_model(options); }
  void set_shape(const TaskOptions& options, const ModelOptions& model, TrainingShape* shape) const override {
    first().set_shape(options, model, shape);
  }
  std::unique_ptr<Experiment> open(const TaskOptions& options, const Progress& progress) const override {
    return first().open(options, progress);
  }

 private:
  const TaskFamily& first() const { return task_family(begins_with().front()); }
};

}  // namespace

const TaskFamily& finetune_family() {
  static const FineTuningFamily family;
  return family;
}

}  // namespace headshare
