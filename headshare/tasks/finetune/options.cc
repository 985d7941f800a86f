#include "headshare/tasks/finetune/options.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/models/position_limit.h"

namespace headshare {

int64_t FineTuneOptions::row_length(const EncoderOptions& encoder, int64_t usual) const {
  HS_CHECK(!max_length || *max_length <= encoder.context || !has_position_limit(encoder.positions), "--max-length ",
           max_length.value_or(0), " is more than the encoder's context of ", encoder.context,
           ", and its positions end there; encoders with rotary positions or ALiBi take longer rows");
  return max_length.value_or(std::min(encoder.context, usual));
}

Fields fields(FineTuneOptions& o) {
  return {
      field("epochs", &o.epochs, "passes over the training examples, each followed by an evaluation",
            {.min = 1, .max = 10000, .aliases = {"num-train-epochs"}}),
      field("batch-size", &o.batch_size, "examples of an optimizer step",
            {.min = 1, .max = 1 << 16, .aliases = {"per-device-train-batch-size"}}),
      field(
          "max-length", &o.max_length,
          "tokens of a row; longer texts are cut; rotary and ALiBi positions go beyond the context; auto: the context, "
          "at most 128, SQuAD 384",
          {.min = 5, .max = 1 << 20, .aliases = {"max-seq-length"}}),
      field("dropout", &o.dropout, "on embeddings, residual branches and the head; auto: the encoder's own",
            {.min = 0, .max = 0.99, .aliases = {"hidden-dropout-prob"}}),
      field("attention-dropout", &o.attention_dropout, "on attention weights; auto: the encoder's own",
            {.min = 0, .max = 0.99, .aliases = {"attention-probs-dropout-prob"}}),
      field("train-examples", &o.train_examples, "train on so many, the same for every seed; auto: all",
            {.min = 1, .aliases = {"max-train-samples"}}),
      field("validation-examples", &o.validation_examples, "validate on so many, the same for every seed; auto: all",
            {.min = 1, .aliases = {"max-eval-samples"}}),
      field("group-by-length", &o.group_by_length,
            "batches of rows of about the same length: less padding where lengths differ"),
      field("validation-fraction", &o.validation_fraction,
            "of the training file, held back where there is no validation file", {.min = 0, .max = 0.9}),
  };
}

namespace {

// Tells whether a head of one kind goes on as the other.
bool alike(const TaskHeadOptions& a, const TaskHeadOptions& b) {
  return a.kind == b.kind && a.outputs == b.outputs && a.labels == b.labels;
}

}  // namespace

EncoderOptions starting_options(EncoderOptions trained, const TaskHeadOptions& head, const FineTuneOptions& options) {
  HS_CHECK(trained.task_head.kind == TaskHeadKind::kNone || alike(trained.task_head, head),
           "the encoder was fine-tuned on another task already; begin with a pre-trained one, or go on with that task");
  trained.masked_head = trained.three_way_head = false;
  trained.pooler = head.kind != TaskHeadKind::kToken;
  trained.task_head = head;
  if (options.max_length && !has_position_limit(trained.positions)) {
    trained.context = std::max(trained.context, *options.max_length);
  }
  if (options.dropout) trained.dropout = *options.dropout;
  if (options.attention_dropout) trained.attention.attention_dropout = *options.attention_dropout;
  return resolve(trained);
}

Encoder starting_model(const EncoderOptions& resolved, const NamedTensors& trained, const TaskHeadOptions& head,
                       const FineTuneOptions& options, uint64_t seed) {
  Encoder model(starting_options(resolved, head, options));
  initialise(*model, seed);
  load_shared_tensors(*model, trained, {"pooler", "task_head"}, "the pre-trained encoder");
  model->clock().seed = seed;
  return model;
}

}  // namespace headshare
