#include "headshare/tasks/start_from.h"

#include <ATen/ATen.h>

#include <map>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/tasks/family.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

constexpr const char* kPositions = "position_embedding";
constexpr const char* kSourcePositions = "source_position_embedding";
constexpr const char* kMaskedHead = "masked_head";
constexpr const char* kThreeWayHead = "three_way_head";

using Shapes = std::map<std::string, std::vector<int64_t>>;

Shapes shapes_of(const ModelOptions& options) {
  const DeclareOn meta(at::kMeta);
  Shapes shapes;
  for (const auto& [name, tensor] : model_tensors(*options.kind().make(options)))
    shapes.emplace(name, tensor.sizes().vec());
  return shapes;
}

// Lists the model's own options among those of a task.
Fields model_fields(TaskOptions& options) {
  Fields list = fields(options.model);
  append(&list, task_family(options.task).model_fields(options));
  return list;
}

ModelOptions model_of(const TaskOptions& options) { return task_family(options.task).likely_model(options); }

fs::path tokenizer_of(const fs::path& checkpoint) { return checkpoint / "tokenizer.json"; }

std::string as_text(const nlohmann::json& value) { return field_text(value, "an option"); }

// Returns what refuses an option of the model, one that would change the shape of a tensor; "" where nothing does.
std::string why_not(const TaskOptions& trained, const std::string& name, const std::string& wanted) {
  TaskOptions changed = trained;
  Fields list = model_fields(changed);
  set_field(list, name, wanted, "--" + name);
  try {
    const Shapes before = shapes_of(model_of(trained));
    const Shapes after = shapes_of(model_of(changed));
    if (before == after) return "";
    if (name == "context") {
      const int64_t learned = before.at(kPositions).front();
      return after.at(kPositions).front() <= learned
                 ? ""
                 : join_text("its positions are learned, and it has ", learned, " of them; choose --context ", learned,
                             " or less, or start from a model with rotary, ALiBi or sinusoidal positions");
    }
  } catch (const Error& error) {
    return join_text(error.what(), "; leave --", name, " out");
  }
  return join_text("the weights would have other shapes; leave --", name, " out, or train without --start-from");
}

void refuse_other_shapes(const StartModel& start, const TaskOptions& trained, TaskOptions options) {
  TaskOptions before = trained;
  const nlohmann::json values = to_json(model_fields(before));
  for (const Field& one : model_fields(options)) {
    const nlohmann::json wanted = one.value();
    const nlohmann::json& had = values.at(one.name);
    if (wanted == had) continue;
    const std::string reason = why_not(trained, one.name, as_text(wanted));
    HS_CHECK(reason.empty(), "--", one.name, " is ", as_text(wanted), " and that of ", start.directory.string(), " is ",
             as_text(had), ": ", reason);
  }
}

void note_idle_size(const std::function<bool(const std::string&)>& given, const TokenizerOptions& asked,
                    const std::string& model, const Tokenizer& own) {
  const std::optional<int64_t>& size = asked.vocabulary_size;
  if (!given("vocabulary-size") || !size || *size == own.vocabulary_size()) return;
  notice(join_text("--vocabulary-size ", *size, " is about new tokenizers and does nothing here: that of ", model,
                   " has ", own.vocabulary_size(), " tokens"));
}

std::string kind_name(TokenizerOptions options) { return as_text(to_json(fields(options)).at("tokenizer")); }

void refuse_other_tokenizer(const StartModel& start, const std::function<bool(const std::string&)>& given,
                            const TextOptions& options) {
  const std::string model = start.directory.string();
  const Tokenizer& own = *start.tokenizer;
  const std::string way_out = "; leave it out: each row of the embedding belongs to a token of the model's own";
  if (given("tokenizer-path") && !options.tokenizer_path.empty()) {
    const std::unique_ptr<Tokenizer> other = load_tokenizer(options.tokenizer_path);
    HS_CHECK(fingerprint(*other) == fingerprint(own), "--tokenizer-path ", options.tokenizer_path, " (", other->kind(),
             ", ", other->vocabulary_size(), " tokens) is not the tokenizer of ", model, " (", own.kind(), ", ",
             own.vocabulary_size(), " tokens)", way_out);
  }
  const std::string kind = kind_name(options.tokenizer);
  HS_CHECK(!given("tokenizer") || kind == own.kind(), "--tokenizer is ", kind, " and that of ", model, " is ",
           own.kind(), way_out);
  note_idle_size(given, options.tokenizer, model, own);
  const int64_t vocabulary = start.options.common().vocabulary;
  HS_CHECK(!given("model-vocabulary") || options.vocabulary.value_or(vocabulary) == vocabulary,
           "--model-vocabulary is ", options.vocabulary.value_or(0), " and that of ", model, " is ", vocabulary,
           way_out);
}

std::vector<std::string> differences(const ModelOptions& trained, const ModelOptions& wanted) {
  const nlohmann::json before = option_values(trained);
  const nlohmann::json after = option_values(wanted);
  std::vector<std::string> list;
  for (const auto& [name, value] : after.items()) {
    if (before.at(name) != value)
      list.push_back(join_text(name, " ", as_text(value), " instead of ", as_text(before.at(name))));
  }
  return list;
}

// Gives a notice of what the two models do not share; a decoder has all that another has.
void note_parts(const StartModel& start) {
  const auto* encoder = start.options.find<EncoderOptions>();
  if (encoder == nullptr) return;
  if (encoder->task_head.kind != TaskHeadKind::kNone) {
    notice(join_text(start.directory.string(), " was fine-tuned: the head of its task is left out"));
  }
  if (!encoder->masked_head && !encoder->three_way_head) {
    notice(join_text(start.directory.string(),
                     " has no layer that predicts masked tokens: that one starts from random values"));
  }
}

std::shared_ptr<Tokenizer> own_tokenizer(const StartModel& start) {
  const fs::path path = tokenizer_of(start.directory);
  HS_CHECK(path_exists(path), start.directory.string(),
           " has no tokenizer.json; a converted model gets one with `headshare convert --tokenizer PATH`");
  std::shared_ptr<Tokenizer> tokenizer = load_tokenizer(path);
  check_vocabulary(*tokenizer, start.options, path.string());
  return tokenizer;
}

// Keeps the vocabulary and the tokenizer of the start; refuses others.
void keep_tokenizer(const StartModel& start, const std::function<bool(const std::string&)>& given,
                    const TextOptions& trained, TextOptions* text) {
  if (start.tokenizer == nullptr) return;
  refuse_other_tokenizer(start, given, *text);
  text->vocabulary = trained.vocabulary;
  text->tokenizer_path = trained.tokenizer_path;
}

}  // namespace

StartModel open_start(const fs::path& path) {
  StartModel start;
  start.directory = find_checkpoint(path);
  start.options = read_options(start.directory);
  const std::string reason = scoring_family(start.options).why_not_start(start.options);
  HS_CHECK(reason.empty(), start.directory.string(), " ", reason);
  if (start.options.kind().reads_text()) start.tokenizer = own_tokenizer(start);
  check_weights(start.directory, start.options);
  return start;
}

std::string start_task(const StartModel& start) { return scoring_family(start.options).task_of(start.options); }

void check_start_task(const StartModel& start, const std::string& task) {
  const std::string trained = start_task(start);
  HS_CHECK(task == trained, "--task is ", task, " and ", start.directory.string(), " is a model of --task ", trained,
           "; leave --task out");
}

void take_options(const StartModel& start, TaskOptions* options) {
  options->task = start_task(start);
  const nlohmann::json values = option_values(start.options);
  Fields list = model_fields(*options);
  for (Field& one : list) {  // a kind may lack options that others have: images know no --context
    if (values.contains(one.name)) one.parse(as_text(values.at(one.name)));
  }
  if (start.options.kind().reads_text()) {
    options->own<TextOptions>().vocabulary = start.options.common().vocabulary;
    options->own<TextOptions>().tokenizer_path = tokenizer_of(start.directory).string();
  }
  task_family(options->task).take_more(start.directory, options);
}

std::vector<std::string> keep_to_start(const StartModel& start, const std::function<bool(const std::string&)>& given,
                                       TaskOptions* options) {
  TaskOptions trained;
  take_options(start, &trained);
  check_start_task(start, options->task);
  keep_tokenizer(start, given, trained.own<TextOptions>(), &options->own<TextOptions>());
  refuse_other_shapes(start, trained, *options);
  return differences(model_of(trained), model_of(*options));
}

void keep_to_teacher(const std::function<bool(const std::string&)>& given, const TextOptions& options) {
  const bool asked = given("tokenizer") || given("vocabulary-size");
  // A tokenizer that is there already is compared with the teacher's where the teacher is loaded.
  if (!options.distillation.given() || !asked || given("tokenizer-path")) return;
  const std::shared_ptr<Tokenizer> own = teacher_tokenizer(options.distillation);
  const std::string kind = kind_name(options.tokenizer);
  HS_CHECK(!given("tokenizer") || kind == own->kind(), "--tokenizer is ", kind, " and the teacher's is ", own->kind(),
           "; leave --tokenizer out");
  note_idle_size(given, options.tokenizer, options.distillation.teacher, *own);
}

void load_start(const StartModel& start, torch::nn::Module& model) {
  const fs::path weights = start.directory / "model.safetensors";
  NamedTensors tensors = read_weights(start.directory);
  const NamedTensors wanted = model_tensors(model);
  for (const char* name : {kPositions, kSourcePositions}) {
    const auto positions = wanted.find(name);
    if (positions == wanted.end()) continue;
    Tensor& learned = tensors.at(name);
    learned = learned.narrow(0, 0, positions->second.size(0));
  }
  note_parts(start);
  scoring_family(start.options).fit_start(start.options, model, &tensors);
  load_shared_tensors(model, tensors, {kMaskedHead, kThreeWayHead}, weights.string());
}

}  // namespace headshare
