#include "headshare/tasks/family.h"

#include <algorithm>

#include "headshare/attention/idle_options.h"
#include "headshare/attention/schemes/collaborative.h"
#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/record_list.h"
#include "headshare/base/strings/format.h"
#include "headshare/models/model_kind.h"
#include "headshare/tasks/families.h"
#include "headshare/tasks/idle_options.h"

namespace headshare {
namespace {

using Families = RecordList<const TaskFamily*>;

Families& family_list() {
#define HS_FAMILY(name) &name##_family(),
  static Families list({
#include "headshare/tasks/families.inc"
  });
#undef HS_FAMILY
  return list;
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

// Tells whether models of `family` are made with the options of `other`.
bool reads(const TaskFamily& family, const TaskFamily& other) {
  const std::vector<std::string> first = family.begins_with();
  return &family == &other || (!first.empty() && &task_family(first.front()) == &other);
}

// Lists the options of `other` that the task does not have.
IdleOptions foreign_options(const TaskFamily& other, const std::string& task) {
  const TaskFamily& own = task_family(task);
  const std::vector<std::string> first = own.begins_with();
  TaskOptions options;
  IdleOptions foreign;
  for (const Field& one : other.fields(options)) {
    const std::vector<std::string> tasks = other.tasks_with(one.name);
    const auto among = [&](const std::string& name) {
      return std::find(tasks.begin(), tasks.end(), name) != tasks.end();
    };
    const bool mine = among(task) ||
                      (reads(own, other) && (tasks == other.tasks() || std::any_of(first.begin(), first.end(), among)));
    if (!mine) {
      foreign.push_back({one.name, join_text("belongs to --task ", list_text(tasks, "or"), "; the task is ", task)});
    }
  }
  return foreign;
}

// Throws Error for an option of `other` that differs from `untouched` and that the task does not have.
void refuse_foreign(const TaskFamily& other, TaskOptions options, TaskOptions untouched) {
  const nlohmann::json before = to_json(other.fields(untouched));
  const nlohmann::json now = to_json(other.fields(options));
  for (const IdleOption& one : foreign_options(other, options.task)) {
    HS_CHECK(now.at(one.name) == before.at(one.name), "--", one.name, " ", one.why);
  }
}

// Throws Error for an option of text that differs from `untouched`; the task reads no text.
void refuse_text(TaskOptions options, TaskOptions untouched) {
  const nlohmann::json before = to_json(fields(untouched.own<TextOptions>()));
  for (const Field& one : fields(options.own<TextOptions>())) {
    HS_CHECK(one.value() == before.at(one.name), "--", one.name, " is about text, which --task ", options.task,
             " does not read; leave it out");
  }
  HS_CHECK(options.own<TextOptions>().vocabulary == untouched.own<TextOptions>().vocabulary,
           "--model-vocabulary is about text, which --task ", options.task, " does not read; leave it out");
}

// Tells whether models of fine-tuning begin with the task's models, or are the task's own.
bool may_be_fine_tuned(const std::string& task) {
  const std::vector<const TaskFamily*> all = task_families();
  return std::any_of(all.begin(), all.end(), [&](const TaskFamily* family) {
    const std::vector<std::string> first = family->begins_with();
    return !first.empty() &&
           (family == &task_family(task) || std::find(first.begin(), first.end(), task) != first.end());
  });
}

std::string value_of(Fields list, const std::string& name) { return field_text(find_field(list, name)->value(), name); }

// Adds options of local layers; `unrotated` says why a rotary base does nothing, "" where it does.
void add_idle_windows(const TransformerOptions& model, const std::string& unrotated, IdleOptions* idle) {
  const std::string absent = "is about --local-window, which is not set";
  if (!model.attention.window) {
    for (const char* name : {"global-every", "global-first"}) idle->push_back({name, absent});
    idle->push_back({"local-rotary-base", unrotated.empty() ? absent : unrotated});
    return;
  }
  if (!unrotated.empty()) idle->push_back({"local-rotary-base", unrotated});
  if (!model.global_every) idle->push_back({"global-first", "is about --global-every, which is not set"});
}

// Adds options of a model that the model does not read beside the others, whatever its scheme.
void add_idle_in_model(TransformerOptions model, bool fine_tuned, IdleOptions* idle) {
  const Fields list = fields(model);
  const std::string positions = "does nothing with --positions " + value_of(list, "positions");
  const bool rotates =
      model.positions == PositionKind::kRotary || model.attention.own.get<CollaborativeOptions>().rotary_width;
  if (rotates) {
    append(idle, idle_scaling_options(model.attention.rotary_scaling));
  } else {
    for (const Field& one : rotary_fields(model.attention)) idle->push_back({one.name, positions});
  }
  add_idle_windows(model, rotates ? "" : positions, idle);
  if (model.positions != PositionKind::kSinusoidal) idle->push_back({"sinusoid-order", positions});
  if (is_gated(model.feed_forward)) {
    idle->push_back({"activation", "does nothing with --feed-forward " + value_of(list, "feed-forward")});
  }
  if (model.attention.attention_dropout == 0 && !fine_tuned) {  // fine-tuning has a dropout of its own
    idle->push_back({"attention-dropout-mask", "is about --attention-dropout, which is 0"});
  }
}

void add_idle_in_schedule(ScheduleOptions schedule, IdleOptions* idle) {
  const std::string why = "does nothing with --schedule " + value_of(fields(schedule), "schedule");
  if (schedule.schedule == Schedule::kConstant) idle->push_back({"min-learning-rate", why});
  if (schedule.schedule != Schedule::kWarmupStableDecay) idle->push_back({"decay-steps", why});
  if (schedule.warmup_steps) idle->push_back({"warmup-ratio", "does nothing beside --warmup-steps"});
}

}  // namespace

const EnumNames<Preset>& preset_names() {
  static const EnumNames<Preset> names = {
      {Preset::kQuick, "quick"}, {Preset::kSmall, "small"}, {Preset::kBase, "base"}};
  return names;
}

std::vector<const TaskFamily*> task_families() {
  std::vector<const TaskFamily*> list;
  for (const auto& one : family_list().all()) list.push_back(*one);
  return list;
}

const TaskFamily& task_family(const std::string& task) {
  std::vector<std::string> known;
  for (const TaskFamily* family : task_families()) {
    for (const std::string& name : family->tasks()) {
      if (name == task) return *family;
      known.push_back(name);
    }
  }
  throw Error(join_text("there is no task ", brief_text(task), did_you_mean(task, known)));
}

const TaskFamily& scoring_family(const ModelOptions& model) {
  for (const TaskFamily* family : task_families()) {
    if (family->scores(model)) return *family;
  }
  throw Error("there is no score on text for " + with_article(model.kind()));
}

Field task_field(TaskOptions& options) { return field_of(task_families(), options); }

Field trained_task_field(TaskOptions& options) {
  std::vector<const TaskFamily*> alone;
  for (const TaskFamily* family : task_families()) {
    if (family->trains_alone()) alone.push_back(family);
  }
  return field_of(alone, options);
}

IdleOptions idle_options(const TaskOptions& options, const TrainOptions& train) {
  const TaskFamily& own = task_family(options.task);
  IdleOptions idle;
  for (const std::string& name : own.idle_options(options)) {
    idle.push_back({name, "does nothing for a model that learns " + own.learns()});
  }
  add_idle_in_model(options.model, may_be_fine_tuned(options.task), &idle);
  append(&idle, idle_scheme_options(own.schemes(options)));
  add_idle_in_schedule(train.schedule, &idle);
  for (const TaskFamily* other : task_families()) {
    append(&idle, foreign_options(*other, options.task));
  }
  return idle;
}

void check_task(const TaskOptions& options, const TaskOptions& untouched, const std::vector<TaskOptions>& models) {
  for (const TaskFamily* other : task_families()) refuse_foreign(*other, options, untouched);
  const TaskFamily& family = task_family(options.task);
  if (!family.reads_text()) refuse_text(options, untouched);
  family.check(options, untouched);
  family.check_models(models);
}

double likely_training_bytes(const TaskOptions& options, TrainingShape shape) {
  const TaskFamily& family = task_family(options.task);
  const ModelOptions model = family.likely_model(options);
  family.set_shape(options, model, &shape);
  return training_bytes(model, shape) + teacher_bytes(options.own<TextOptions>().distillation, shape);
}

AddedFamily::AddedFamily(const TaskFamily& family) : record_(family_list().add(&family)) {}
AddedFamily::~AddedFamily() { family_list().take_out(static_cast<const TaskFamily* const*>(record_)); }

}  // namespace headshare
