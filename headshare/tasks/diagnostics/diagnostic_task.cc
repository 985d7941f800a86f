#include "headshare/tasks/diagnostics/diagnostic_task.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_text.h"
#include "headshare/models/checkpoint.h"
#include "headshare/tasks/evaluation_mode.h"
#include "headshare/tasks/prepare_model.h"

namespace headshare {
namespace {

constexpr int64_t kDiagnosticFormatVersion = 1;  // of config.json

// Held-out sequences are the same for every seed.
constexpr uint64_t kHeldOutSeed = 0;

uint64_t task_key(uint64_t seed, DiagnosticKind kind, const std::string& part) {
  return stream_key(seed, "diagnostic " + diagnostic_name(kind) + " " + part);
}

int64_t held_out(const DiagnosticOptions& options, Part part) {
  return part == Part::kValidation ? options.validation_sequences : options.test_sequences;
}

// Counts the output heads as one vocabulary as large as all of them together, which is what they take of the memory.
DecoderOptions with_heads(DecoderOptions resolved, int64_t outputs) {
  resolved.vocabulary *= outputs;
  return resolved;
}

// Returns the bytes that training needs. Unlike a language model's, all logits are held at once: the logits, their
// log-softmax and its gradient; an evaluation holds the first two, and what they are converted to.
double needed_bytes(const DecoderOptions& with_heads, const TrainingShape& shape) {
  const int64_t batch = std::max(shape.batch, evaluation_batch(with_heads, shape));
  const double scores =
      static_cast<double>(batch) * static_cast<double>(shape.length) * static_cast<double>(with_heads.vocabulary);
  return training_bytes(with_heads, shape) + 3 * sizeof(float) * scores;
}

}  // namespace

// The decoder attached its layers to its clock itself; the heads have no dropout and need none.
DiagnosticModelImpl::DiagnosticModelImpl(const DecoderOptions& resolved, int64_t outputs)
    : decoder(register_module("decoder", Decoder(resolved))),
      outputs_(outputs),
      heads_(register_module("heads", Linear(resolved.attention.d_model, outputs * resolved.vocabulary, Bias::kYes,
                                             Init::normal(resolved.init_deviation)))) {}

Tensor DiagnosticModelImpl::logits(const Tensor& ids) const {
  const Tensor all = heads_->forward(decoder->hidden(ids));                     // [B, T, O V]
  return all.unflatten(2, {outputs_, all.size(2) / outputs_}).transpose(1, 2);  // [B, O, T, V]
}

DiagnosticTask::DiagnosticTask(const DiagnosticOptions& options, uint64_t seed, c10::Device device, TrainingShape shape)
    : options_(options), generator_(make_generator(options)), training_key_(task_key(seed, options.kind, "training")) {
  options_.model = decoder_options(options);
  const int64_t outputs = generator_->outputs();
  shape.batch = options.batch_size;
  shape.length = generator_->length();
  evaluation_batch_ = evaluation_batch(with_heads(options_.model, outputs), shape);
  check_training_memory(needed_bytes(with_heads(options_.model, outputs), shape), device, shape,
                        "use a smaller --batch-size or --d-model, or shorter sequences");
  model_ = DiagnosticModel(options_.model, outputs);
  prepare(model_, seed, device, shape);
}

DiagnosticTask::Sequences DiagnosticTask::sequences(uint64_t key, int64_t first, int64_t count) const {
  const int64_t T = generator_->length();
  const int64_t O = generator_->outputs();
  const Tensor inputs = at::empty({count, T}, at::kLong);
  const Tensor targets = at::full({count, O, T}, kIgnoredTarget, at::kLong);
  for (int64_t row = 0; row < count; ++row) {
    Philox random(stream_key(key, static_cast<uint64_t>(first + row)));
    generator_->fill(random, {inputs.mutable_data_ptr<int64_t>() + row * T, static_cast<size_t>(T)},
                     {targets.mutable_data_ptr<int64_t>() + row * O * T, static_cast<size_t>(O * T)});
  }
  const c10::Device device = model_->decoder->device();
  return {inputs.to(device), targets.to(device)};
}

Tensor DiagnosticTask::losses(const Tensor& logits, const Tensor& targets, at::Reduction::Reduction reduction) const {
  return at::cross_entropy_loss(logits.reshape({-1, logits.size(3)}), targets.flatten(), {}, reduction, kIgnoredTarget);
}

int64_t DiagnosticTask::draw(int64_t micro_batches) {
  drawn_.clear();
  for (int64_t i = 0; i < micro_batches; ++i) {
    drawn_.push_back(sequences(training_key_, sequences_drawn_, options_.batch_size));
    sequences_drawn_ += options_.batch_size;
  }
  return micro_batches * options_.batch_size * generator_->targets_per_sequence();
}

Tensor DiagnosticTask::loss_sum(int64_t index) {
  const Sequences& batch = drawn_.at(static_cast<size_t>(index));
  return losses(model_->logits(batch.inputs), batch.targets, at::Reduction::Sum);
}

Evaluation DiagnosticTask::evaluate(Part part, const Task::Progress& progress) {
  const EvaluationMode evaluating(model());
  const at::NoGradGuard no_grad;
  const int64_t total = held_out(options_, part);
  const uint64_t key = task_key(kHeldOutSeed, options_.kind, part_name(part));
  const auto per_sequence = static_cast<double>(generator_->targets_per_sequence());
  double nats = 0;
  double right = 0;
  Evaluation result{.targets = total * generator_->targets_per_sequence()};
  for (int64_t first = 0; first < total;) {
    const int64_t count = std::min(evaluation_batch_, total - first);
    const Sequences batch = sequences(key, first, count);
    const Tensor logits = model_->logits(batch.inputs);
    // An ignored target is no token, so that no answer equals it.
    const Tensor hits = (logits.argmax(3) == batch.targets).sum({1, 2}).cpu();  // [B]
    nats += losses(logits, batch.targets, at::Reduction::None).sum(at::kDouble).item<double>();
    for (int64_t row = 0; row < count; ++row) {
      const auto hit = static_cast<double>(hits[row].item<int64_t>());
      right += hit;
      result.blocks.push_back(hit / per_sequence);
    }
    first += count;
    if (progress) progress(first, total);
  }
  result.loss = nats / static_cast<double>(result.targets);
  result.scores.push_back(
      {.name = "accuracy", .value = right / static_cast<double>(result.targets), .signature = signature(total)});
  return result;
}

std::string DiagnosticTask::signature(int64_t sequences) const {
  std::string text = "accuracy|task:" + diagnostic_name(options_.kind);
  const nlohmann::json values = difficulty(options_);
  for (const auto& [name, value] : values.items()) text += "|" + name + ":" + field_text(value, name);
  return text + "|sequences:" + std::to_string(sequences);
}

nlohmann::json DiagnosticTask::state() const { return {{"sequences", sequences_drawn_}}; }

void DiagnosticTask::restore(const nlohmann::json& state, const std::string& where) {
  const std::optional<int64_t> drawn = json_count(state, "sequences");
  HS_CHECK(drawn, where, ": the number of sequences drawn is missing or damaged");
  sequences_drawn_ = *drawn;
  drawn_.clear();
}

void DiagnosticTask::save(const std::string& directory) {
  const fs::path home(directory);
  make_directories(home);
  const nlohmann::json config = {{"format", kDiagnosticFormat},
                                 {"format_version", kDiagnosticFormatVersion},
                                 {"task", diagnostic_name(options_.kind)},
                                 {"difficulty", difficulty(options_)},
                                 {"model", to_json(stored_fields(options_.model))}};
  write_tensors(home / "model.safetensors", model_tensors(*model_), {{"format", "pt"}});
  write_file(home / "config.json", json_text(config, 2) + "\n");
}

}  // namespace headshare
