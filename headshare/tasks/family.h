// A family of tasks tells `train`, `compare` and `evaluate` what they need to know of models that learn the same kind
// of thing. Each family has a folder here with its family.cc, and a line in families.inc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headshare/base/options/field.h"
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
  virtual std::string heading() const = 0;             // heading of its own options in --help: "Masked language model"

  // Lists the tasks whose trained models these may begin with and be fine-tuned from, the usual one first; the list is
  // empty where they begin from nothing. `compare` knows one family that does: that of labelled data, whose models
  // begin with encoders (compare/fine_tuned).
  virtual std::vector<std::string> begins_with() const { return {}; }

  // Tells whether its models, or those they begin with, read text, so that TextOptions matter; tasks of other families
  // refuse every option of text.
  virtual bool reads_text() const { return false; }
  // Tells whether they learn from --text.
  virtual bool learns_from_text() const { return false; }

  // Names what a step counts, and training for its speed.
  virtual std::string unit() const { return "tokens"; }

  // Tells whether `train` trains such models by themselves: those that are of use outside a comparison.
  virtual bool trains_alone() const { return false; }

  // List the family's own options, and the tasks of the family that an option matters to.
  virtual Fields fields(TaskOptions&) const { return {}; }
  virtual std::vector<std::string> tasks_with(const std::string& /*option*/) const { return tasks(); }

  // Lists the family's own options that its model is made of: variants of a comparison may differ in them.
  virtual Fields model_fields(TaskOptions&) const { return {}; }

  // Lists options that change nothing for its tasks, beside those that check() refuses. A user who sets one believes
  // that it matters; one that a run began with stays.
  virtual std::vector<std::string> idle_options(const TaskOptions&) const { return {}; }

  // Lists the attention schemes that a model of these options has.
  virtual std::vector<std::string> schemes(const TaskOptions& options) const {
    return {options.model.attention.scheme};
  }

  // Lists the files and directories that its own options name.
  virtual std::vector<std::string*> paths(TaskOptions&) const { return {}; }

  // Set what options->task begins with where a user says nothing, and the sizes, steps and rates of a comparison.
  // `asked` is what the user says: a choice that other defaults follow from is read there, before it is applied.
  virtual void set_defaults(const TaskOptions& asked, TaskOptions* options, TrainOptions* train) const = 0;
  virtual void set_preset(Preset preset, TaskOptions* options, TrainOptions* train) const = 0;

  // Throws Error for options that exclude each other, and for options that this task ignores and that differ from
  // `untouched`, the options that it began with. No data is read.
  virtual void check(const TaskOptions& options, const TaskOptions& untouched) const = 0;

  // Throws Error where the options of the compared models, one or several, make no sense together: two would be the
  // same model, or none reads an option.
  virtual void check_models(const std::vector<TaskOptions>&) const {}

  // Returns the model as far as it is known before data is read, resolved: the vocabulary of text is the one that the
  // tokenizer is asked for.
  virtual ModelOptions likely_model(const TaskOptions& options) const = 0;

  // Sets the sequences of a batch, their length, and the share of their tokens that the output layer scores.
  virtual void set_shape(const TaskOptions& options, const ModelOptions& model, TrainingShape* shape) const {
    shape->batch = options.batch_size;
    shape->length = model.common().context;
  }

  // Tells whether score() scores trained models of this kind on text, which `evaluate` shows; scoring_fields() lists
  // the options that matter then.
  virtual bool scores(const ModelOptions&) const { return false; }
  // Returns the task of this family that trains models like one that it scores.
  virtual std::string task_of(const ModelOptions&) const { return tasks().front(); }

  // Says why no training starts from the weights of a model that scores() holds for, "has ..."; "" where one does.
  virtual std::string why_not_start(const ModelOptions&) const { return ""; }
  // Takes what a checkpoint brings besides its model options and tokenizer.json.
  virtual void take_more(const fs::path&, TaskOptions*) const {}
  // Changes the weights of a model that training starts from so that they mean in `model` what they meant in theirs.
  // Throws Error where they cannot.
  virtual void fit_start(const ModelOptions& /*start*/, const torch::nn::Module& /*model*/, NamedTensors*) const {}
  virtual Fields scoring_fields(TaskOptions&) const { return {}; }
  virtual TextScores score(const TextToScore&, const TaskOptions&) const { return {}; }

  // Reads the data, and makes the tokenizer where there is one to make. For fine-tuning it reads the data that its
  // encoders learn from first.
  virtual std::unique_ptr<Experiment> open(const TaskOptions& options, const Progress& progress) const = 0;
};

// Lists the families in the order of families.inc.
std::vector<const TaskFamily*> task_families();

// Returns the family of a task. Throws Error with the nearest name for an unknown one.
const TaskFamily& task_family(const std::string& task);

// Returns the family that scores such a model. Throws Error where there is none.
const TaskFamily& scoring_family(const ModelOptions& model);

// Return the option that names the task: a task of any family, or of those that train alone.
Field task_field(TaskOptions& options);
Field trained_task_field(TaskOptions& options);

// Calls TaskFamily::check, and TaskFamily::check_models of `models`. Also throws Error where an option of another
// family is set: a user who sets one believes that it matters. Options at the value they began with pass, because a
// resolved.yaml has every option.
void check_task(const TaskOptions& options, const TaskOptions& untouched, const std::vector<TaskOptions>& models);

// Returns the bytes that a training step of the likely model takes; the loop sets in `shape` what it decides.
double likely_training_bytes(const TaskOptions& options, TrainingShape shape);

// An AddedFamily adds a family while it lives: for tests, and for programs that bring one of their own.
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
