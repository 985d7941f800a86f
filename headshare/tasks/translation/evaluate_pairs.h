// An encoder-decoder is scored on sentence pairs: the loss of their references, and scores of its translations.
#pragma once

#include "headshare/data/parallel/pair_batcher.h"
#include "headshare/models/encoder_decoder.h"
#include "headshare/tasks/language/score_text.h"
#include "headshare/tasks/translation/translation_data.h"
#include "headshare/tasks/translation/translator.h"
#include "headshare/train/task.h"

namespace headshare {

// PairTensors are a batch of pairs as the model reads it.
struct PairTensors {
  PaddedIds source;
  Tensor ids, targets;  // int64 [B, T]
};

PairTensors tensors_of(const PairBatch& batch, c10::Device device);

// Returns the ids of batches; padding has any id, because the model does not look at it.
inline PairBatchIds batch_ids(const EncoderDecoderOptions& model) { return {.start = model.marks.start}; }

// Returns loss and number of the references' tokens, ends included, without smoothing; `progress` counts batches. The
// model is in evaluation mode.
Evaluation evaluate_pairs(EncoderDecoder model, const PairData& pairs, const Task::Progress& progress = {});

// Adds to `result` the scores "bleu" and "chrf" of the translations by beam search, and the translations (outputs);
// blocks are BLEU's pseudo-values (corpus_scores.h). `progress` counts sentences.
void add_translations(const Translator& translator, const TranslationPart& part, const BeamOptions& beam,
                      const Task::Progress& progress, Evaluation* result);

// Scores a trained model on the pairs that options.pairs.train names. Throws Error where there are none, for options of
// windows of text, and as the readers do.
TextScores score_pairs(const TextToScore& asked, const TranslationTaskOptions& options);

}  // namespace headshare
