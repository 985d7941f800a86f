#include "headshare/tasks/translation/translation_task.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/data/parallel/ordered_batches.h"
#include "headshare/models/checkpoint.h"
#include "headshare/tasks/evaluation_mode.h"
#include "headshare/tasks/prepare_model.h"
#include "headshare/tasks/translation/corpus_scores.h"
#include "headshare/tasks/translation/translator.h"

namespace headshare {
namespace {

// Of an evaluation's batches, in padded tokens of either side.
constexpr int64_t kEvaluationTokens = 4096;

// A batch as the model reads it.
struct Tensors {
  PaddedIds source;
  Tensor ids, targets;  // int64 [B, T]
};

Tensors tensors_of(const PairBatch& batch, c10::Device device) {
  const auto matrix = [&](const std::vector<int64_t>& values) {
    return at::tensor(values, at::kLong).view({batch.rows, -1}).to(device);
  };
  Tensors made{
      .source = {.ids = matrix(batch.source)}, .ids = matrix(batch.target_inputs), .targets = matrix(batch.targets)};
  const bool ragged = std::any_of(batch.source_lengths.begin(), batch.source_lengths.end(),
                                  [&](int64_t length) { return length < batch.source_length; });
  if (!ragged) return made;
  const Tensor lengths = matrix(batch.source_lengths);  // [B, 1]
  made.source.visible = at::arange(batch.source_length, lengths.options()).unsqueeze(0) < lengths;
  return made;
}

// What stands in padding is not looked at.
PairBatchIds batch_ids(const EncoderDecoderOptions& model) { return {.start = model.marks.start}; }

// All pairs of a part, in batches of like length.
std::vector<PairBatch> evaluation_batches(const PairData& pairs, const EncoderDecoderOptions& model) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < pairs.size(); ++i) {
    lengths.push_back(static_cast<int64_t>(std::max(pairs.source(i).size(), pairs.target(i).size())));
  }
  std::vector<PairBatch> batches;
  for (const auto& places : ordered_batches(lengths, kEvaluationTokens)) {
    batches.push_back(make_pair_batch(pairs, places, batch_ids(model)));
  }
  return batches;
}

}  // namespace

TranslationTask::TranslationTask(const EncoderDecoderOptions& model, const TranslationTaskOptions& options,
                                 std::shared_ptr<const TranslationData> data, uint64_t seed, c10::Device device,
                                 TrainingShape shape)
    : options_(options),
      data_(std::move(data)),
      batcher_(data_->train.pairs,
               {.batch_tokens = options.pairs.batch_tokens, .seed = seed, .ids = batch_ids(model)}) {
  shape.batch = 1;
  shape.length = options.pairs.batch_tokens;
  check_training_memory(training_bytes(model, shape), device, shape, "use a smaller --batch-tokens or --d-model");
  model_ = EncoderDecoder(model);
  prepare(model_, seed, device, shape);
}

int64_t TranslationTask::draw(int64_t micro_batches) {
  drawn_.clear();
  int64_t targets = 0;
  for (int64_t i = 0; i < micro_batches; ++i) {
    drawn_.push_back(batcher_.next());
    targets += drawn_.back().scored;
  }
  return targets;
}

Tensor TranslationTask::loss_sum(int64_t index) {
  const Tensors batch = tensors_of(drawn_.at(static_cast<size_t>(index)), model_->device());
  const SummedLoss loss = model_->loss(batch.source, batch.ids, batch.targets, options_.label_smoothing);
  if (options_.label_smoothing > 0) plain_ = loss.plain.item<double>();
  return loss.sum;
}

bool TranslationTask::translates(Part part) const {
  return part == Part::kTest || options_.select_by == SelectBy::kBleu || !has(Part::kTest);
}

Evaluation TranslationTask::evaluate(Part part, const Task::Progress& progress) {
  const EvaluationMode evaluating(model());
  const at::NoGradGuard no_grad;
  const std::vector<PairBatch> batches = evaluation_batches(*data_->part(part).pairs, model_->options());
  // Translating takes most of the time, and reports it by itself.
  const auto total = static_cast<int64_t>(batches.size());
  Evaluation result;
  double nats = 0;
  for (int64_t i = 0; i < total; ++i) {
    const Tensors batch = tensors_of(batches[static_cast<size_t>(i)], model_->device());
    nats += model_->token_losses(batch.source, batch.ids, batch.targets).sum(at::kDouble).item<double>();
    result.targets += batches[static_cast<size_t>(i)].scored;
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
  batcher_.restore(pair_batch_state_from_json(state.at("pairs"), where));
}

void TranslationTask::save(const std::string& directory) { save_model(directory, model_, data_->tokenizers); }

}  // namespace headshare
