#include "headshare/cli/train_task.h"

#include "headshare/cli/args.h"

namespace headshare {

Field task_field(TaskOptions& options) {
  static const EnumNames<TrainTask> names = {{TrainTask::kLanguageModel, "language-model"},
                                             {TrainTask::kMaskedLanguageModel, "mlm"}};
  return field("task", &options.task,
               "language-model: predict the next token, a decoder; mlm: predict masked tokens, an encoder", names);
}

void refuse_foreign_options(const TaskOptions& options) {
  if (options.task == TrainTask::kMaskedLanguageModel) {
    if (!options.language.stride) return;
    throw UsageError("--stride is about next tokens; the windows of --task mlm are disjoint");
  }
  MaskedOptions given = options.masked;
  MaskedOptions untouched;
  const nlohmann::json defaults = to_json(fields(untouched));
  for (const Field& one : fields(given)) {
    if (one.value() != defaults.at(one.name)) throw UsageError("--" + one.name + " belongs to --task mlm");
  }
}

TaskOptions task_defaults(TrainTask task) {
  TaskOptions options{.task = task, .language = {}, .masked = {}};
  if (task == TrainTask::kMaskedLanguageModel) set_masked_defaults(&options.language);
  return options;
}

ModelOptions likely_model(const TaskOptions& options) {
  LanguageModelOptions language = options.language;
  language.model.vocabulary = likely_vocabulary(language);
  if (options.task == TrainTask::kMaskedLanguageModel) return encoder_options(language, options.masked);
  return resolve(language.model);
}

double likely_training_bytes(const TaskOptions& options, TrainingShape shape) {
  shape.batch = options.language.batch.batch_size;
  shape.length = options.language.model.context;
  if (options.task == TrainTask::kMaskedLanguageModel) shape.scored = options.masked.masking.rate;
  return std::visit([&](const auto& model) { return training_bytes(model, shape); }, likely_model(options));
}

std::unique_ptr<Task> open_task(const TaskOptions& options, uint64_t seed, c10::Device device,
                                const TrainingShape& shape, const Progress& progress) {
  const LanguageData data = open_language_data(options.language, progress);
  if (options.task == TrainTask::kMaskedLanguageModel) {
    return std::make_unique<MaskedLanguageModelTask>(options.language, options.masked, data, seed, device, shape);
  }
  return std::make_unique<LanguageModelTask>(options.language, data, seed, device, shape);
}

}  // namespace headshare
