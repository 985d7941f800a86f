#include "headshare/tasks/translation/translation_task.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/models/checkpoint.h"
#include "headshare/tasks/evaluation_mode.h"
#include "headshare/tasks/prepare_model.h"
#include "headshare/tasks/translation/corpus_scores.h"
#include "headshare/tasks/translation/translator.h"

namespace headshare {
namespace {

// Of an evaluation's batches, in padded tokens of either side.
constexpr int64_t kEvaluationTokens = 4096;

Tensor matrix(const std::vector<int64_t>& values, int64_t rows, c10::Device device) {
  return at::tensor(values, at::kLong).view({rows, -1}).to(device);
}

PaddedIds source_of(const PairBatch& batch, c10::Device device) {
  const Tensor lengths = at::tensor(batch.source_lengths, at::kLong).to(device).unsqueeze(1);
  const Tensor ids = matrix(batch.source_ids, batch.rows(), device);
  const bool ragged = std::any_of(batch.source_lengths.begin(), batch.source_lengths.end(),
                                  [&](int64_t length) { return length < ids.size(1); });
  if (!ragged) return {.ids = ids};
  return {.ids = ids, .visible = at::arange(ids.size(1), lengths.options()).unsqueeze(0) < lengths};
}

}  // namespace

TranslationTask::TranslationTask(const EncoderDecoderOptions& model, const TranslationTaskOptions& options,
                                 std::shared_ptr<const TranslationData> data, uint64_t seed, c10::Device device,
                                 TrainingShape shape)
    : options_(options),
      data_(std::move(data)),
      batcher_(data_->train.pairs, options.batch, static_cast<int64_t>(model.marks.start), seed) {
  shape.batch = 1;
  shape.length = options.batch.batch_tokens;
  check_training_memory(training_bytes(model, shape), device, shape, "use a smaller --batch-tokens or --d-model");
  model_ = EncoderDecoder(model);
  prepare(model_, seed, device, shape);
}

int64_t TranslationTask::draw(int64_t micro_batches) {
  drawn_.clear();
  int64_t targets = 0;
  for (int64_t i = 0; i < micro_batches; ++i) {
    drawn_.push_back(batcher_.next());
    targets += drawn_.back().targets;
  }
  return targets;
}

Tensor TranslationTask::loss_sum(int64_t index) {
  const PairBatch& batch = drawn_.at(static_cast<size_t>(index));
  const c10::Device device = model_->device();
  const SummedLoss loss =
      model_->loss(source_of(batch, device), matrix(batch.target_inputs, batch.rows(), device),
                   matrix(batch.target_outputs, batch.rows(), device), options_.label_smoothing);
  if (options_.label_smoothing > 0) plain_ = loss.plain.item<double>();
  return loss.sum;
}

bool TranslationTask::translates(Part part) const {
  return part == Part::kTest || options_.select_by == SelectBy::kBleu || !has(Part::kTest);
}

Evaluation TranslationTask::evaluate(Part part, const Task::Progress& progress) {
  const EvaluationMode evaluating(model());
  const at::NoGradGuard no_grad;
  const PairData& pairs = data_->part(part).pairs;
  const std::vector<PairBatch> batches = ordered_batches(pairs, kEvaluationTokens, model_->options().marks.start);
  // Translating takes most of the time, and reports it by itself.
  const auto total = static_cast<int64_t>(batches.size());
  Evaluation result;
  double nats = 0;
  for (int64_t i = 0; i < total; ++i) {
    const PairBatch& batch = batches[static_cast<size_t>(i)];
    const c10::Device device = model_->device();
    const Tensor losses = model_->token_losses(source_of(batch, device), matrix(batch.target_inputs, batch.rows(), device),
                                               matrix(batch.target_outputs, batch.rows(), device));
    nats += losses.sum(at::kDouble).item<double>();
    result.targets += batch.targets;
    if (progress && !translates(part)) progress(i + 1, total);
  }
  result.loss = nats / static_cast<double>(result.targets);
  if (translates(part)) add_translations(part, progress, &result);
  return result;
}

void TranslationTask::add_translations(Part part, const Task::Progress& progress, Evaluation* result) const {
  const TranslationPart& text = data_->part(part);
  const Translator translator(model_, data_->tokenizers);
  std::vector<std::vector<int32_t>> sources;
  for (const std::string& source : text.sources) sources.push_back(translator.encode(source));
  result->outputs = translate_all(translator, sources, options_.beam, progress);
  CorpusScores scores = score_corpus(result->outputs, text.references);
  if (options_.select_by == SelectBy::kBleu) result->goal = scores.bleu.value;
  result->scores = {scores.bleu, scores.chrf};
  result->blocks = std::move(scores.pseudo_values);
}

nlohmann::json TranslationTask::state() const { return {{"pairs", to_json(batcher_.state())}}; }

void TranslationTask::restore(const nlohmann::json& state, const std::string& where) {
  HS_CHECK(state.is_object() && state.contains("pairs"), where, ": the place in the pairs is missing");
  batcher_.restore(pair_state_from_json(state.at("pairs"), where));
}

void TranslationTask::save(const std::string& directory) { save_model(directory, model_, data_->tokenizers); }

}  // namespace headshare
