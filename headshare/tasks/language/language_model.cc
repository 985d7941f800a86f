#include "headshare/tasks/language/language_model.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/data/text/train_on_text.h"
#include "headshare/models/checkpoint.h"
#include "headshare/tasks/draw_batches.h"
#include "headshare/tasks/prepare_model.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

DecoderOptions model_options(const LanguageModelOptions& options, const Tokenizer& tokenizer) {
  HS_CHECK(tokenizer.words() == nullptr, "a language model scores every token of a vocabulary, and the tokenizer '",
           tokenizer.kind(), "' has none; choose another --tokenizer, or an encoder: --task three-way");
  DecoderOptions model = options.model;
  model.vocabulary = model_vocabulary(options, tokenizer);
  return resolve(model);
}

BatchOptions batch_options(const LanguageModelOptions& options, uint64_t seed) {
  return {
      .batch_size = options.batch_size, .context = options.model.context, .order = options.batch_order, .seed = seed};
}

}  // namespace

LanguageModelOptions language_options(const TaskOptions& options) {
  return {options.own<TextOptions>(), options.model, options.batch_size};
}

LanguageData open_language_data(const TextOptions& options, const Progress& progress) {
  LanguageData data;
  if (!options.tokenizer_path.empty()) {
    data.tokenizer = load_tokenizer(options.tokenizer_path);
  } else if (options.distillation.given()) {
    data.tokenizer = teacher_tokenizer(options.distillation);
  } else {
    data.tokenizer = train_on_text(options.tokenizer, options.data, progress);
  }
  data.splits = open_splits(options.data, *data.tokenizer, progress);
  return data;
}

TokenData part_to_score(const LanguageData& data, Part part, std::optional<int64_t> most) {
  const TokenData& all = data.part(part);
  const std::string name = part_name(part);
  HS_CHECK(!all.empty(), "there is no ", name, " text; set --", name, "-fraction or name a file with --", name,
           "-text");
  return all.view(0, std::min(all.size(), most.value_or(all.size())), *data.tokenizer);
}

TextTask::TextTask(const LanguageData& data, const BatchOptions& batches)
    : data_(data), batcher_(data_.splits.train, batches) {}

JudgedParts TextTask::judged() const {
  return {.validation = data_.splits.validation.fingerprint(), .test = data_.splits.test.fingerprint()};
}

nlohmann::json TextTask::state() const {
  nlohmann::json state = {{"batches", to_json(batcher_.state())}};
  note_judged(judged(), &state);
  return state;
}

void TextTask::restore(const nlohmann::json& state, const std::string& where) {
  HS_CHECK(state.is_object() && state.contains("batches"), where, ": the place in the data is missing");
  batcher_.restore(batch_state_from_json(state.at("batches"), where));
  check_judged(judged(), state, where);
}

LanguageModelTask::LanguageModelTask(const LanguageModelOptions& options, const LanguageData& data, uint64_t seed,
                                     c10::Device device, TrainingShape shape)
    : TextTask(data, batch_options(options, seed)), options_(options) {
  const DecoderOptions resolved = model_options(options, *data_.tokenizer);
  shape.batch = options.batch_size;
  shape.length = resolved.context;
  evaluation_batch_ = evaluation_batch(resolved, shape);
  check_training_memory(training_bytes(resolved, shape) + teacher_bytes(options.distillation, shape), device, shape,
                        "use a smaller --batch-size, --context or --d-model");
  options_.model = resolved;
  for (const Part part : {Part::kValidation, Part::kTest}) {
    // A part that cannot be scored is refused now rather than after a tenth of the training.
    if (has(part)) EvaluationWindows(scored(part), windows());
  }
  if (options.distillation.given()) {
    teacher_ = load_teacher(options.distillation, resolved, *data_.tokenizer, device);
  }
  model_ = Decoder(resolved);
  prepare(model_, seed, device, shape);
}

WindowOptions LanguageModelTask::windows() const {
  const int64_t context = options_.model.context;
  return {.batch_size = evaluation_batch_, .context = context, .stride = options_.stride.value_or(context)};
}

TokenData LanguageModelTask::scored(Part part) const {
  const TokenData tokens = part_to_score(data_, part, options_.evaluation_tokens);
  const std::string name = part_name(part);
  HS_CHECK(tokens.size() >= 2, "the ", name,
           " text is a single token, and the first is predicted from nothing; give more ", "text or a larger --", name,
           "-fraction");
  return tokens;
}

int64_t LanguageModelTask::draw(int64_t micro_batches) {
  return draw_batches(micro_batches, &drawn_, [this] { return batcher_.next(); });
}

Tensor LanguageModelTask::loss_sum(int64_t index) {
  const Batch& batch = drawn_.at(static_cast<size_t>(index));
  const c10::Device device = model_->device();
  const Tensor ids = to_tensor(batch.inputs, batch, device);
  const Tensor targets = to_tensor(batch.targets, batch, device);
  if (!options_.distillation.teaches()) return model_->loss(ids, targets).sum;
  const SummedLoss loss =
      model_->loss(ids, targets, teacher_->teacher_output(ids, targets), options_.distillation.learning);
  plain_ = loss.plain.item<double>();
  return loss.sum;
}

std::optional<Evaluation> LanguageModelTask::evaluate_teacher(const Task::Progress& progress) {
  if (teacher_.is_empty()) return std::nullopt;
  return evaluate(teacher_, Part::kValidation, progress);
}

Evaluation LanguageModelTask::evaluate(const Decoder& model, Part part, const Task::Progress& progress) const {
  WindowOptions own = windows();
  if (!teacher_.is_empty() && model.ptr() == teacher_.ptr()) {  // the teacher reads as many windows at once as fit it
    own.batch_size = evaluation_batch(model->options(), {.batch = options_.batch_size, .length = own.context});
  }
  const WindowLosses losses = evaluate_windows(model, scored(part), *data_.tokenizer, own, progress);
  const LanguageSetup setup{
      .tokenizer = data_.tokenizer->kind(), .context = windows().context, .stride = windows().stride};
  Evaluation result{.loss = losses.sums.nats / static_cast<double>(losses.sums.tokens), .targets = losses.sums.tokens};
  result.scores.push_back(perplexity(losses.sums, setup));
  if (data_.tokenizer->lossless()) result.scores.push_back(bits_per_byte(losses.sums, setup));
  result.blocks = losses.window_means;
  result.block_targets = losses.window_targets;
  return result;
}

void LanguageModelTask::save(const std::string& directory) { save_model(directory, model_, data_.tokenizer.get()); }

}  // namespace headshare
