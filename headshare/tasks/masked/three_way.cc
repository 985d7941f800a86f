#include "headshare/tasks/masked/three_way.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/models/checkpoint.h"
#include "headshare/tasks/draw_batches.h"
#include "headshare/tasks/evaluation_mode.h"
#include "headshare/tasks/masked/unseen_words.h"
#include "headshare/tasks/prepare_model.h"

namespace headshare {
namespace {

// The replacements in evaluations are the same for every run.
uint64_t corruption_key_of_evaluations() { return stream_key(0, "corruption of evaluations"); }

// Returns the places that have a target among the flattened ones, int64 [N].
Tensor asked_places(const Tensor& targets) { return (targets.flatten() != kIgnoredTarget).nonzero().squeeze(1); }

Tensor losses_of(const Tensor& scores, const Tensor& targets) {
  return at::cross_entropy_loss(scores.to(at::kFloat), targets, /*weight=*/{}, at::Reduction::None);
}

}  // namespace

double ThreeWayScores::recall(ThreeWay label) const {
  const auto at = static_cast<size_t>(label);
  return asked[at] == 0 ? 0 : static_cast<double>(found[at]) / static_cast<double>(asked[at]);
}

ThreeWayScores evaluate_three_way(const Encoder& model, const TokenData& tokens, const Corrupter& corrupter,
                                  const MaskedSetup& setup, const WindowProgress& progress) {
  const EvaluationMode evaluating(model.ptr());
  const at::NoGradGuard no_grad;
  check_askable(tokens, corrupter, "text");
  const DisjointWindows windows(tokens, corrupter, setup.context);
  ThreeWayScores result;
  for (int64_t first = 0; first < windows.windows(); first += setup.batch_size) {
    const int64_t count = std::min(setup.batch_size, windows.windows() - first);
    WindowBatch batch = windows.rows(first, count);
    corrupter.pad(&batch);
    for (int64_t row = 0; row < count; ++row) {
      const uint64_t key = stream_key(corruption_key_of_evaluations(), static_cast<uint64_t>(first + row));
      Philox random(stream_key(key, "tokens"));
      corrupter.corrupt_row(row, corrupter.permutation(stream_key(key, "places")), random, &batch);
    }
    const Tensor targets = targets_of(batch, model->device());
    const Tensor places = asked_places(targets);
    const Tensor labels = targets.flatten().index_select(0, places);
    const Tensor scores = model->three_way_scores(to_input(batch, model->device()), places);
    const Tensor losses = at::zeros({targets.numel()}, scores.options().dtype(at::kFloat));
    result.losses.add(losses.index_copy(0, places, losses_of(scores, labels)).view(targets.sizes()), targets);
    const Tensor right = scores.argmax(1).eq(labels);
    for (int64_t label = 0; label < kThreeWayClasses; ++label) {
      const Tensor of_class = labels.eq(label);
      result.asked[static_cast<size_t>(label)] += of_class.sum().item<int64_t>();
      result.found[static_cast<size_t>(label)] += of_class.logical_and(right).sum().item<int64_t>();
    }
    result.correct += right.sum().item<int64_t>();
    if (progress) progress(first + count, windows.windows());
  }
  return result;
}

std::vector<Score> three_way_scores(const ThreeWayScores& scores, const std::string& tokenizer,
                                    const MaskedSetup& setup, const CorruptionOptions& options) {
  CorruptionOptions named = options;
  const nlohmann::json values = to_json(fields(named));
  const std::string how = join_text("|tokenizer:", tokenizer, "|context:", setup.context, "|rate:", options.rate,
                                    "|shuffle:", values.at("shuffle").get<std::string>(),
                                    "|random:", values.at("random-tokens").get<std::string>());
  const auto score = [&](const char* name, double value) {
    return Score{.name = name, .value = value, .signature = name + how};
  };
  return {score("three-way-loss", scores.loss()), score("three-way-accuracy", scores.accuracy()),
          score("shuffled-recall", scores.recall(ThreeWay::kShuffled)),
          score("random-recall", scores.recall(ThreeWay::kRandom))};
}

ThreeWayTask::ThreeWayTask(const LanguageModelOptions& language, const MaskedOptions& masked, const LanguageData& data,
                           uint64_t seed, c10::Device device, TrainingShape shape)
    : TextTask(data, window_batches(language, data.splits.train, seed)),
      language_(language),
      corruption_(masked.corruption),
      corrupter_(*data_.tokenizer, masked.corruption, masked.encoder.embedding.kind, data_.splits.train,
                 language.model.context, language.tokenizer_path),
      key_(stream_key(seed, "corruption")) {
  check_askable(data_.splits.train, corrupter_, "training text");
  language_.model.vocabulary = model_vocabulary(language, *data_.tokenizer);
  const EncoderOptions resolved = encoder_options(language_.model, masked, EncoderTask::kThreeWay);
  shape.batch = language.batch_size;
  shape.length = resolved.context;
  shape.scored = 0;
  evaluation_batch_ = evaluation_batch(resolved, shape);
  check_training_memory(training_bytes(resolved, shape), device, shape,
                        "use a smaller --batch-size, --context or --d-model");
  for (const Part part : {Part::kValidation, Part::kTest}) {
    if (has(part)) scored(part);  // throws now rather than after a tenth of the training
  }
  model_ = Encoder(resolved);
  model_->read_words(data_.tokenizer);
  prepare(model_, seed, device, shape);
}

WindowBatch ThreeWayTask::next_batch() {
  const uint64_t key = stream_key(key_, static_cast<uint64_t>(batcher_.state().batches));
  const std::vector<int64_t> places = corrupter_.permutation(stream_key(key, "places"));
  return changed_windows(batcher_.next(), corrupter_, key, [&](int64_t row, Philox& random, WindowBatch* batch) {
    corrupter_.corrupt_row(row, places, random, batch);
  });
}

int64_t ThreeWayTask::draw(int64_t micro_batches) {
  return draw_batches(micro_batches, &drawn_, [this] { return next_batch(); });
}

Tensor ThreeWayTask::loss_sum(int64_t index) {
  const WindowBatch& batch = drawn_.at(static_cast<size_t>(index));
  const Tensor targets = targets_of(batch, model_->device());
  const Tensor places = asked_places(targets);
  const Tensor scores = model_->three_way_scores(to_input(batch, model_->device()), places);
  return losses_of(scores, targets.flatten().index_select(0, places)).sum();
}

TokenData ThreeWayTask::scored(Part part) const {
  const TokenData tokens = part_to_score(data_, part, language_.evaluation_tokens);
  check_askable(tokens, corrupter_, part_name(part) + " text");
  return tokens;
}

Evaluation ThreeWayTask::evaluate(Part part, const Task::Progress& progress) {
  const MaskedSetup setup{.context = model_->options().context, .batch_size = evaluation_batch_};
  const TokenData tokens = scored(part);
  const ThreeWayScores found = evaluate_three_way(model_, tokens, corrupter_, setup, progress);
  std::vector<Score> scores = three_way_scores(found, data_.tokenizer->kind(), setup, corruption_);
  if (part == Part::kTest && is_hashed(model_->options().embedding)) {
    const std::string how = scores.front().signature.substr(scores.front().name.size());
    const std::vector<Score> unseen = unseen_word_scores(
        data_.splits.train, {.tokens = tokens, .rows = corrupter_, .context = setup.context, .losses = found.losses},
        how);
    scores.insert(scores.end(), unseen.begin(), unseen.end());
  }
  return {.loss = found.loss(),
          .targets = found.losses.sums.tokens,
          .scores = std::move(scores),
          .blocks = found.losses.window_means,
          .block_targets = found.losses.window_targets};
}

void ThreeWayTask::save(const std::string& directory) { save_model(directory, model_, data_.tokenizer.get()); }

}  // namespace headshare
