// The family of diagnostic tasks trains decoders, with heads of the task's own, on sequences made of random numbers.
#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/tasks/diagnostics/diagnostic_task.h"
#include "headshare/tasks/families.h"

namespace headshare {
namespace {

DiagnosticKind kind_of(const std::string& task) {
  for (const auto& [kind, name] : diagnostic_names()) {
    if (name == task) return kind;
  }
  throw Error("there is no diagnostic task '" + task + "'");
}

// Takes the model and the batch size from the program's options: it has one list of them for every task.
DiagnosticOptions of_task(const TaskOptions& options) {
  DiagnosticOptions made = options.own<DiagnosticOptions>();
  made.kind = kind_of(options.task);
  made.model = options.model;
  made.batch_size = options.batch_size;
  return made;
}

// Describes the data: "sequences made from random numbers; alphabet 16; offsets 1,3,7,12; ..."
std::string describe(const DiagnosticOptions& options) {
  std::string text = "sequences made from random numbers";
  const nlohmann::json difficulties = difficulty(options);
  for (const auto& [name, value] : difficulties.items()) text += join_text("; ", name, " ", field_text(value, name));
  return text;
}

class DiagnosticExperiment : public Experiment {
 public:
  explicit DiagnosticExperiment(const TaskOptions& options) : task_(of_task(options)) {}

  Subject subject() const override {
    return {.name = diagnostic_name(task_.kind),
            .sentence = sentence(task_.kind),
            .data = describe(task_),
            .measure = "accuracy",
            .direction = Direction::kHigherIsBetter,
            .block = "sequences",
            .has_test_part = true,
            .chance = make_generator(task_)->chance()};
  }

  bool has(Part) const override { return true; }

  ModelOptions model(const TaskOptions& options) const override { return decoder_options(of_task(options)); }

  Trial trial(const TaskOptions& options, uint64_t seed, c10::Device device,
              const TrainingShape& shape) const override {
    auto task = std::make_unique<DiagnosticTask>(of_task(options), seed, device, shape);
    const Decoder decoder = task->decoder();
    return {std::move(task), decoder->options(), decoder.ptr()};
  }

  void share(const fs::path&, TaskOptions*) const override {}

 private:
  DiagnosticOptions task_;
};

class DiagnosticsFamily : public TaskFamily {
 public:
  std::vector<std::string> tasks() const override {
    std::vector<std::string> names;
    for (const auto& [kind, name] : diagnostic_names()) names.push_back(name);
    return names;
  }
  std::string learns() const override { return "sequences made of random numbers, which need no data (decoders)"; }
  std::string heading() const override { return "Diagnostic tasks"; }

  Fields fields(TaskOptions& options) const override { return headshare::fields(options.own<DiagnosticOptions>()); }
  std::vector<std::string> tasks_with(const std::string& option) const override {
    std::vector<std::string> names;
    for (const DiagnosticKind kind : headshare::tasks_with(option)) names.push_back(diagnostic_name(kind));
    return names;
  }

  void set_defaults(const TaskOptions&, TaskOptions* options, TrainOptions* train) const override {
    const DiagnosticDefaults defaults = diagnostic_defaults(kind_of(options->task));
    options->own<DiagnosticOptions>() = defaults.options;
    options->model = defaults.options.model;
    options->batch_size = defaults.options.batch_size;
    train->steps = defaults.steps;
    train->schedule.learning_rate = defaults.learning_rate;
  }

  // Trains longer for the larger presets: the sizes stay those in which the tasks separate schemes.
  void set_preset(Preset preset, TaskOptions*, TrainOptions* train) const override {
    train->steps *= preset == Preset::kQuick ? 1 : preset == Preset::kSmall ? 5 : 20;
  }

  void check(const TaskOptions& options, const TaskOptions& untouched) const override {
    HS_CHECK(options.model.context == untouched.model.context,
             "--context is a text model's; the sequences of a diagnostic task set it (--sequence-length)");
    make_generator(of_task(options));  // refuses impossible sizes
  }

  ModelOptions likely_model(const TaskOptions& options) const override { return decoder_options(of_task(options)); }

  std::unique_ptr<Experiment> open(const TaskOptions& options, const Progress&) const override {
    return std::make_unique<DiagnosticExperiment>(options);
  }
};

}  // namespace

const TaskFamily& diagnostics_family() {
  static const DiagnosticsFamily family;
  return family;
}

}  // namespace headshare
