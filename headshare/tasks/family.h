// A family of tasks: what `train`, `compare` and `evaluate` need to know of models that learn the same kind of thing.
// Each has a folder here with its family.cc, and a line in families.inc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headshare/base/field.h"
#include "headshare/tasks/experiment.h"
#include "headshare/tasks/text_options.h"
#include "headshare/tasks/text_to_score.h"
#include "headshare/train/trainer.h"

namespace headshare {

enum class Preset { kQuick, kSmall, kBase };
const EnumNames<Preset>& preset_names();

class TaskFamily {
 public:
  virtual ~TaskFamily() = default;

  virtual std::vector<std::string> tasks() const = 0;  // what --task calls them: "mlm"; "offsets", "recall", ...
  virtual std::string learns() const = 0;              // what --help says of them: "the next tokens of text (decoders)"
  virtual std::string heading() const = 0;             // of its own options in --help: "Masked language model"

  // The tasks whose trained models these may begin with and be fine-tuned from, the usual one first; none where they
  // begin from nothing.
  virtual std::vector<std::string> begins_with() const { return {}; }

  // The text that its models, or those it begins with, read; null for families that read none, whose tasks refuse every
  // option of text.
  virtual TextOptions* text(TaskOptions&) const { return nullptr; }
  // Whether they learn from --text.
  virtual bool learns_from_text() const { return false; }

  // Whether `train` trains such models by themselves: those that are of use outside a comparison.
  virtual bool trains_alone() const { return false; }

  // Its own options, and those of its tasks that an option matters to.
  virtual Fields fields(TaskOptions&) const { return {}; }
  virtual std::vector<std::string> tasks_with(const std::string& /*option*/) const { return tasks(); }

  // Those of its own options that its model is made of: variants of a comparison may differ in them.
  virtual Fields model_fields(TaskOptions&) const { return {}; }

  // Options that change nothing for its tasks, beside those that check() refuses. A user who sets one believes that it
  // matters; one that a run began with stays.
  virtual std::vector<std::string> idle_options(const TaskOptions&) const { return {}; }

  // The attention schemes that a model of these options has.
  virtual std::vector<std::string> schemes(const TaskOptions& options) const {
    return {options.model.attention.scheme};
  }

  // The files and directories that its own options name.
  virtual std::vector<std::string*> paths(TaskOptions&) const { return {}; }

  // What options->task begins with where a user says nothing, and the sizes, steps and rates of a comparison. `asked`
  // is what the user says: a choice that other defaults follow from is read there, before it is applied.
  virtual void set_defaults(const TaskOptions& asked, TaskOptions* options, TrainOptions* train) const = 0;
  virtual void set_preset(Preset preset, TaskOptions* options, TrainOptions* train) const = 0;

  // Throws Error for options that exclude each other, or that this task ignores and that differ from those `untouched`
  // ones that it began with. No data is read.
  virtual void check(const TaskOptions& options, const TaskOptions& untouched) const = 0;

  // Throws Error where the options of models that are compared, one or several, make no sense beside each other: two
  // would be the same model, or none reads an option.
  virtual void check_models(const std::vector<TaskOptions>&) const {}

  // The model as far as it is known before data is read, resolved: the vocabulary of text is the one that the tokenizer
  // is asked for.
  virtual ModelOptions likely_model(const TaskOptions& options) const = 0;

  // The sequences of a batch, their length, and the share of their tokens that the output layer scores.
  virtual void set_shape(const TaskOptions& options, const ModelOptions& model, TrainingShape* shape) const {
    shape->batch = options.batch_size;
    shape->length = model.common().context;
  }

  // Whether trained models of this kind are scored on text by score(), which `evaluate` shows; those of its options
  // that matter then.
  virtual bool scores(const ModelOptions&) const { return false; }
  // Which of its tasks trains models like one that it scores.
  virtual std::string task_of(const ModelOptions&) const { return tasks().front(); }

  // Of a model that scores() holds for: why no training starts from its weights, "has ..."; "" where one does.
  virtual std::string why_not_start(const ModelOptions&) const { return ""; }
  // What a checkpoint brings besides its model options and tokenizer.json.
  virtual void take_more(const fs::path&, TaskOptions*) const {}
  virtual Fields scoring_fields(TaskOptions&) const { return {}; }
  virtual TextScores score(const TextToScore&, const TaskOptions&) const { return {}; }

  // Reads the data, and makes the tokenizer where there is one to make. Of fine-tuning: the data that its encoders
  // learn from first.
  virtual std::unique_ptr<Experiment> open(const TaskOptions& options, const Progress& progress) const = 0;
};

// In the order of families.inc.
std::vector<const TaskFamily*> task_families();

// The family of a task. Throws Error with the nearest name for an unknown one.
const TaskFamily& task_family(const std::string& task);

// The family that scores such a model. Throws Error where there is none.
const TaskFamily& scoring_family(const ModelOptions& model);

// The option that names the task: of all families, or of those that train alone.
Field task_field(TaskOptions& options);
Field trained_task_field(TaskOptions& options);

// TaskFamily::check, and that no other family's option is set: a user who sets one believes that it matters. Options at
// the value they began with pass, because a resolved.yaml has every option. And TaskFamily::check_models of `models`.
void check_task(const TaskOptions& options, const TaskOptions& untouched, const std::vector<TaskOptions>& models);

// Bytes that a training step of the likely model takes; of `shape` the loop says what it decides.
double likely_training_bytes(const TaskOptions& options, TrainingShape shape);

// Adds a family while it lives: for tests, and for programs that bring one of their own.
class AddedFamily {
 public:
  explicit AddedFamily(const TaskFamily& family);
  ~AddedFamily();
  AddedFamily(const AddedFamily&) = delete;
  AddedFamily& operator=(const AddedFamily&) = delete;

 private:
  const void* record_;
};

}  // namespace headshare
