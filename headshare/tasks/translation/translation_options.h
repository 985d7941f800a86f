// TranslationTaskOptions are the options that training a translation model has besides those of the model and of its
// tokenizers.
#pragma once

#include <string>

#include "headshare/data/parallel/pair_options.h"
#include "headshare/decode/beam/beam_options.h"
#include "headshare/models/encoder_decoder_options.h"
#include "headshare/tasks/task_options.h"
#include "headshare/tasks/text_options.h"

namespace headshare {

// SelectBy is what chooses the best checkpoint, and stops early.
enum class SelectBy { kLoss, kBleu };

struct TranslationTaskOptions {
  PairOptions pairs = {};
  EncoderDecoderParts model = {};
  bool separate_tokenizers = false;        // each side has a tokenizer of its own
  std::string source_tokenizer_path = {};  // "": train one, or the one of both sides
  double label_smoothing = 0.1;
  SelectBy select_by = SelectBy::kLoss;
  BeamOptions beam = {};  // of the translations that are scored
};

Fields fields(TranslationTaskOptions& options);

// Sets the first Transformer's training where a language model's is another, and norms before each sub-layer: they
// learn at higher rates (docs/design/039-translation.md).
void set_translation_defaults(TaskOptions* options);

// Makes the options of the model, for vocabularies of that many tokens; they are not resolved.
EncoderDecoderOptions translation_model(const TaskOptions& task, int64_t source_vocabulary, int64_t target_vocabulary);

}  // namespace headshare
