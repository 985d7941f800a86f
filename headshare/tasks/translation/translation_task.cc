#include "headshare/tasks/translation/translation_task.h"

#include "headshare/base/error.h"
#include "headshare/models/checkpoint.h"
#include "headshare/tasks/draw_batches.h"
#include "headshare/tasks/evaluation_mode.h"
#include "headshare/tasks/prepare_model.h"
#include "headshare/tasks/translation/evaluate_pairs.h"

namespace headshare {

TranslationTask::TranslationTask(const EncoderDecoderOptions& model, const TranslationTaskOptions& options,
                                 std::shared_ptr<const TranslationData> data, uint64_t seed, c10::Device device,
                                 TrainingShape shape)
    : options_(options),
      data_(std::move(data)),
      batcher_(data_->train.pairs, {.batch_tokens = options.pairs.batch_tokens, .seed = seed, .ids = batch_ids(model)}),
      judged_{.validation = data_->validation.fingerprint(), .test = data_->test.fingerprint()} {
  shape.batch = 1;
  shape.length = options.pairs.batch_tokens;
  check_training_memory(training_bytes(model, shape), device, shape, "use a smaller --batch-tokens or --d-model");
  model_ = EncoderDecoder(model);
  prepare(model_, seed, device, shape);
}

int64_t TranslationTask::draw(int64_t micro_batches) {
  return draw_batches(micro_batches, &drawn_, [this] { return batcher_.next(); });
}

Tensor TranslationTask::loss_sum(int64_t index) {
  const PairTensors batch = tensors_of(drawn_.at(static_cast<size_t>(index)), model_->device());
  const SummedLoss loss = model_->loss(batch.source, batch.ids, batch.targets, options_.label_smoothing);
  if (options_.label_smoothing > 0) plain_ = loss.plain.item<double>();
  return loss.sum;
}

bool TranslationTask::translates(Part part) const {
  return part == Part::kTest || options_.select_by == SelectBy::kBleu || !has(Part::kTest);
}

Evaluation TranslationTask::evaluate(Part part, const Task::Progress& progress) {
  const EvaluationMode evaluating(model());
  const TranslationPart& text = data_->part(part);
  // Translating takes most of the time, and reports its own progress.
  const bool translating = translates(part);
  Evaluation result = evaluate_pairs(model_, *text.pairs, translating ? Task::Progress() : progress);
  if (!translating) return result;
  add_translations(Translator(model_, data_->tokenizers), text, options_.beam, progress, &result);
  if (options_.select_by == SelectBy::kBleu) result.goal = result.scores.front().value;
  return result;
}

nlohmann::json TranslationTask::state() const {
  nlohmann::json state = {{"pairs", to_json(batcher_.state())}};
  note_judged(judged_, &state);
  return state;
}

void TranslationTask::restore(const nlohmann::json& state, const std::string& where) {
  HS_CHECK(state.is_object() && state.contains("pairs"), where, ": the place in the pairs is missing");
  batcher_.restore(pair_batch_state_from_json(state.at("pairs"), where));
  check_judged(judged_, state, where);
}

void TranslationTask::save(const std::string& directory) { save_model(directory, model_, data_->tokenizers); }

}  // namespace headshare
