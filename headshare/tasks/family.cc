#include "headshare/tasks/family.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/json_input.h"
#include "headshare/base/nearest.h"
#include "headshare/tasks/families.h"

namespace headshare {
namespace {

std::vector<const TaskFamily*>& families() {
#define HS_FAMILY(name) &name##_family(),
  static std::vector<const TaskFamily*> all = {
#include "headshare/tasks/families.inc"
  };
#undef HS_FAMILY
  return all;
}

Field field_of(const std::vector<const TaskFamily*>& choice, TaskOptions& options) {
  std::vector<std::string> names;
  std::string help;
  for (const TaskFamily* family : choice) {
    const std::vector<std::string> tasks = family->tasks();
    names.insert(names.end(), tasks.begin(), tasks.end());
    help += join_text(help.empty() ? "what the models learn. " : "; ", list_text(tasks), ": ", family->learns());
  }
  return field("task", &options.task, help, names, {});
}

// Whether models of `family` are made with the options of `other`.
bool reads(const TaskFamily& family, const TaskFamily& other) {
  const std::vector<std::string> first = family.begins_with();
  return &family == &other || (!first.empty() && &task_family(first.front()) == &other);
}

// Throws Error for an option of `other` that differs from `untouched` and that the task does not have.
void refuse_foreign(const TaskFamily& other, TaskOptions options, TaskOptions untouched) {
  const nlohmann::json before = to_json(other.fields(untouched));
  for (const Field& one : other.fields(options)) {
    const std::vector<std::string> tasks = other.tasks_with(one.name);
    const TaskFamily& own = task_family(options.task);
    const auto among = [&](const std::string& task) {
      return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
    };
    const std::vector<std::string> first = own.begins_with();
    const bool mine = among(options.task) ||
                      (reads(own, other) && (tasks == other.tasks() || std::any_of(first.begin(), first.end(), among)));
    HS_CHECK(mine || one.value() == before.at(one.name), "--", one.name, " belongs to --task ", list_text(tasks, "or"),
             "; the task is ", options.task);
  }
}

}  // namespace

const EnumNames<Preset>& preset_names() {
  static const EnumNames<Preset> names = {
      {Preset::kQuick, "quick"}, {Preset::kSmall, "small"}, {Preset::kBase, "base"}};
  return names;
}

std::vector<const TaskFamily*> task_families() { return families(); }

const TaskFamily& task_family(const std::string& task) {
  std::vector<std::string> known;
  for (const TaskFamily* family : families()) {
    for (const std::string& name : family->tasks()) {
      if (name == task) return *family;
      known.push_back(name);
    }
  }
  throw Error(join_text("there is no task ", brief_text(task), did_you_mean(task, known)));
}

const TaskFamily& scoring_family(const ModelOptions& model) {
  for (const TaskFamily* family : families()) {
    if (family->scores(model)) return *family;
  }
  throw Error("there is no score on text for a model that is " + kind_name(model));
}

Field task_field(TaskOptions& options) { return field_of(families(), options); }

Field trained_task_field(TaskOptions& options) {
  std::vector<const TaskFamily*> alone;
  for (const TaskFamily* family : families()) {
    if (family->trains_alone()) alone.push_back(family);
  }
  return field_of(alone, options);
}

void check_task(const TaskOptions& options, const TaskOptions& untouched) {
  for (const TaskFamily* other : families()) refuse_foreign(*other, options, untouched);
  task_family(options.task).check(options, untouched);
}

double likely_training_bytes(const TaskOptions& options, TrainingShape shape) {
  const TaskFamily& family = task_family(options.task);
  const ModelOptions model = family.likely_model(options);
  family.set_shape(options, model, &shape);
  return training_bytes(model, shape) + teacher_bytes(options.language.distillation, shape);
}

AddedFamily::AddedFamily(const TaskFamily& family) { families().push_back(&family); }
AddedFamily::~AddedFamily() { families().pop_back(); }

}  // namespace headshare
