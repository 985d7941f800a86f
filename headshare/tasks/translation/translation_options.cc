#include "headshare/tasks/translation/translation_options.h"

#include "headshare/base/files/placeholder.h"

namespace headshare {
namespace {

const EnumNames<SelectBy>& select_names() {
  static const EnumNames<SelectBy> names = {{SelectBy::kLoss, "loss"}, {SelectBy::kBleu, "bleu"}};
  return names;
}

}  // namespace

Fields fields(TranslationTaskOptions& o) {
  Fields list = fields(o.pairs);
  append(&list, fields(o.model));
  append(
      &list,
      {
          field("separate-tokenizers", &o.separate_tokenizers,
                "train a tokenizer for each side; --tokenizer-path is then the target's"),
          or_empty(naming_path(field("source-tokenizer-path", &o.source_tokenizer_path,
                                     "use this tokenizer for the source; empty: that of both sides"))),
          field("label-smoothing", &o.label_smoothing, "share of a target's probability that goes to all tokens alike",
                {.min = 0, .max = 0.99, .aliases = {"label-smoothing-factor"}}),
          field("select-by", &o.select_by,
                "what chooses the best checkpoint, and stops early: loss on the validation part, or BLEU on it",
                select_names(), {.aliases = {"best-checkpoint-metric"}}),
          field("beam", &o.beam.beam, "hypotheses of a sentence in scored translations; 1 is greedy",
                {.min = 1, .max = kMostBeams, .aliases = {"beam-size", "num-beams"}}),
          field("length-penalty", &o.beam.length_penalty,
                "power of the length that a translation's score is divided by",
                {.min = -kMostPenalty, .max = kMostPenalty, .aliases = {"lenpen"}}),
      });
  return list;
}

void set_translation_defaults(TaskOptions* options) {
  TransformerOptions& model = options->model;
  model.norms = NormPlacement::kBefore;
  model.positions = PositionKind::kSinusoidal;
  model.activation = ActivationKind::kRelu;
  model.dropout = 0.1;
  model.attention.projection_bias = true;
  options->own<TextOptions>().tokenizer.kind = TokenizerKind::kSentencePiece;
  options->own<TranslationTaskOptions>().model = EncoderDecoderParts();
}

EncoderDecoderOptions translation_model(const TaskOptions& task, int64_t source_vocabulary, int64_t target_vocabulary) {
  EncoderDecoderOptions options;
  static_cast<TransformerOptions&>(options) = task.model;
  static_cast<EncoderDecoderParts&>(options) = task.own<TranslationTaskOptions>().model;
  options.source_vocabulary = source_vocabulary;
  options.vocabulary = target_vocabulary;
  return options;
}

}  // namespace headshare
