#include <algorithm>

#include "headshare/train/trainer.h"

namespace headshare {

Fields fields(TrainOptions& o) {
  Fields list = {
      field("steps", &o.steps, "optimizer steps", {.min = 1, .aliases = {"max-steps", "max-iters"}}),
      field("accumulation", &o.accumulation,
            "micro-batches of batch-size whose gradients one step sums, weighted by tokens",
            {.min = 1, .max = 1 << 20, .aliases = {"gradient-accumulation-steps"}}),
      field("max-gradient-norm", &o.max_gradient_norm, "longer gradients are scaled down to this; 0: never",
            {.min = 0, .aliases = {"max-grad-norm", "grad-clip", "clip-norm"}}),
      field("evaluate-every", &o.evaluate_every, "steps between evaluations; auto: a tenth of all",
            {.min = 1, .aliases = {"eval-steps", "eval-interval"}}),
      field("save-every", &o.save_every, "steps between checkpoints; auto: evaluate-every",
            {.min = 1, .aliases = {"save-steps"}}),
      field("log-every", &o.log_every, "steps between lines of metrics.jsonl",
            {.min = 1, .aliases = {"logging-steps", "log-interval"}}),
      field("keep-last", &o.keep_last, "checkpoints to keep, besides the best model",
            {.min = 1, .aliases = {"save-total-limit"}}),
      field("patience", &o.patience, "stop after this many evaluations without a better one; 0: never",
            {.min = 0, .aliases = {"early-stopping-patience", "early-stopping"}}),
      field("average-last", &o.average_last,
            "at the end, average the weights of the last so many checkpoints (sets keep-last); 0: no", {.min = 0}),
      field("ema-decay", &o.ema_decay, "evaluate a moving average of the weights; 0: no", {.min = 0, .max = 0.999999}),
      field("activation-checkpointing", &o.activation_checkpointing,
            "keep only each block's input and compute the rest twice: less memory, more time",
            {.aliases = {"gradient-checkpointing"}}),
      precision_field(&o.precision),
      field("tensorboard", &o.tensorboard, "write TensorBoard events beside metrics.jsonl"),
      field("seed", &o.seed, "of initial values, batches and dropout", {.min = 0}),
  };
  append(&list, fields(o.schedule));
  append(&list, fields(o.optimizer));
  return list;
}

TrainOptions resolve(TrainOptions options) {
  if (!options.evaluate_every) options.evaluate_every = std::max<int64_t>(1, options.steps / 10);
  if (!options.save_every) options.save_every = options.evaluate_every;
  return options;
}

nlohmann::json to_json(const TrainResult& r) {
  nlohmann::json object = {{"steps", r.steps},
                           {"tokens", r.tokens},
                           {"best_loss", r.best_loss},
                           {"best_step", r.best_step},
                           {"stopped_early", r.stopped_early},
                           {"seconds", r.seconds},
                           {"tokens_per_second", r.tokens_per_second},
                           {"precision", r.precision},
                           {"best_model", r.best_model}};
  if (r.gap.start) object["start_loss"] = *r.gap.start;
  if (r.gap.teacher) object["teacher_loss"] = *r.gap.teacher;
  if (const auto recovered = r.gap.recovered(r.best_loss)) object["recovered"] = *recovered;
  return object;
}

}  // namespace headshare
