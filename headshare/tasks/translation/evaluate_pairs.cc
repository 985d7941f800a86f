#include "headshare/tasks/translation/evaluate_pairs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/data/parallel/ordered_batches.h"
#include "headshare/metrics/statistics.h"
#include "headshare/models/position_limit.h"
#include "headshare/tasks/translation/corpus_scores.h"

namespace headshare {
namespace {

// An evaluation's batch has so many padded tokens on either side.
constexpr int64_t kEvaluationTokens = 4096;

// Puts all pairs into batches of similar length.
std::vector<PairBatch> batches_of(const PairData& pairs, const EncoderDecoderOptions& model) {
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

TranslationPart read_part(const TranslationTaskOptions& options, const LoadedTranslator& loaded) {
  HS_CHECK(options.pairs.train.given(),
           "which pairs are to be scored? Give --source FILE and --target FILE, or one file with both sides");
  const EncoderDecoderOptions& model = loaded.model->options();
  std::optional<int64_t> longest;
  if (has_position_limit(model.positions)) longest = model.context;
  TranslationPart part = judged_part("to score", options.pairs.train, options.pairs, loaded.tokenizers, longest);
  HS_CHECK(!part.pairs->empty(), options.pairs.train.source, " has no pair that can be scored");
  return part;
}

TextScores shown(const Evaluation& found, int64_t sentences, const BeamOptions& beam) {
  TextScores scores;
  scores.object = {{"loss", found.loss}, {"target_tokens", found.targets}, {"pairs", sentences}, {"beam", beam.beam}};
  scores.text = join_text("loss  ", format_fixed(found.loss, 4), " nats, mean of ", found.targets,
                          " tokens of the references, ends included\n");
  for (const Score& one : found.scores) {
    scores.object[one.name] = one.value;
    scores.object[one.name + "_interval"] = {one.interval->low, one.interval->high};
    scores.object[one.name + "_signature"] = one.signature;
    scores.text += join_text(one.name == "bleu" ? "BLEU  " : "chrF  ", format_fixed(one.value, 2), " ",
                             interval_text(*one.interval, 2), "  ", one.signature, "\n");
  }
  scores.text += join_text("Of ", sentences, " sentences, beam ", beam.beam,
                           "; intervals of 95 % by the bootstrap: how far other sentences would be off\n");
  return scores;
}

}  // namespace

PairTensors tensors_of(const PairBatch& batch, c10::Device device) {
  const auto matrix = [&](const std::vector<int64_t>& values) {
    return at::tensor(values, at::kLong).view({batch.rows, -1}).to(device);
  };
  PairTensors made{
      .source = {.ids = matrix(batch.source)}, .ids = matrix(batch.target_inputs), .targets = matrix(batch.targets)};
  const bool ragged = std::any_of(batch.source_lengths.begin(), batch.source_lengths.end(),
                                  [&](int64_t length) { return length < batch.source_length; });
  if (!ragged) return made;
  const Tensor lengths = matrix(batch.source_lengths);  // [B, 1]
  made.source.visible = at::arange(batch.source_length, lengths.options()).unsqueeze(0) < lengths;
  return made;
}

Evaluation evaluate_pairs(EncoderDecoder model, const PairData& pairs, const Task::Progress& progress) {
  const at::NoGradGuard no_grad;
  const std::vector<PairBatch> batches = batches_of(pairs, model->options());
  const auto total = static_cast<int64_t>(batches.size());
  Evaluation result;
  double nats = 0;
  for (int64_t i = 0; i < total; ++i) {
    const PairTensors batch = tensors_of(batches[static_cast<size_t>(i)], model->device());
    nats += model->token_losses(batch.source, batch.ids, batch.targets).sum(at::kDouble).item<double>();
    result.targets += batches[static_cast<size_t>(i)].scored;
    if (progress) progress(i + 1, total);
  }
  result.loss = nats / static_cast<double>(result.targets);
  return result;
}

void add_translations(const Translator& translator, const TranslationPart& part, const BeamOptions& beam,
                      const Task::Progress& progress, Evaluation* result) {
  std::vector<std::vector<int32_t>> sources;
  for (const std::string& source : part.sources) sources.push_back(translator.encode(source));
  const auto began = std::chrono::steady_clock::now();
  result->outputs = translate_all(translator, sources, beam, progress);
  result->output_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  CorpusScores scores = score_corpus(result->outputs, part.references);
  result->scores = {scores.bleu, scores.chrf};
  result->blocks = std::move(scores.pseudo_values);
}

TextScores score_pairs(const TextToScore& asked, const TranslationTaskOptions& options) {
  HS_CHECK(
      !asked.context && !asked.batch_size,
      "--context and --batch-size are about windows of a text, and this model translates sentences; leave them out");
  check_beam_options(options.beam);
  LoadedTranslator loaded = load_translator(asked.model);
  loaded.model->to(asked.device);
  const TranslationPart part = read_part(options, loaded);
  Evaluation found = evaluate_pairs(loaded.model, *part.pairs);
  add_translations(Translator(loaded.model, loaded.tokenizers), part, options.beam, asked.progress, &found);
  return shown(found, static_cast<int64_t>(part.sources.size()), options.beam);
}

}  // namespace headshare
