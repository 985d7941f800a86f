#include "headshare/compare/measure.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>

#include "headshare/metrics/statistics.h"
#include "headshare/ops/allocation_meter.h"
#include "headshare/train/step.h"

namespace headshare {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr int kRepetitions = 3;
constexpr int64_t kDecodedTokens = 64;
constexpr double kProbeSeconds = 0.5;

int64_t timed_tokens(int64_t context) { return std::max<int64_t>(1, std::min(kDecodedTokens, context / 2)); }

// Sources of a translation that is timed are no longer than a long sentence.
constexpr int64_t kSourceTokens = 64;

// Fills a cache up to `context` token by token, the last `timed` of them against the clock.
double decoding_seconds(const Decoder& model, int64_t context, int64_t timed) {
  DecodingState state = model->new_state(context);
  const Tensor prompt = at::zeros({1, context - timed}, at::TensorOptions(at::kLong).device(model->device()));
  Tensor hidden = model->hidden(prompt, &state);
  const double began = now();
  for (int64_t i = 0; i < timed; ++i) {
    const Tensor next = model->logits(hidden.narrow(1, hidden.size(1) - 1, 1)).argmax(-1);
    hidden = model->hidden(next, &state);
  }
  hidden.sum().item();  // a GPU answers only now
  return now() - began;
}

// Reads a source and writes as many tokens greedily; the first call of a state projects the source.
double decoding_seconds(const EncoderDecoder& model, int64_t length, int64_t timed) {
  const auto like = at::TensorOptions(at::kLong).device(model->device());
  const EncodedSource source = model->encode({.ids = at::zeros({1, length}, like)});
  TranslationState state = model->new_state(length);
  Tensor hidden = model->hidden(at::zeros({1, length - timed}, like), source, &state);
  const double began = now();
  for (int64_t i = 0; i < timed; ++i) {
    hidden = model->hidden(model->logits(hidden.narrow(1, hidden.size(1) - 1, 1)).argmax(-1), source, &state);
  }
  hidden.sum().item();
  return now() - began;
}

template <class Model>
DecodingSpeed measured_speed(Model& model, int64_t context) {
  const at::NoGradGuard no_grad;
  const bool training = model->is_training();
  model->eval();
  const int64_t timed = timed_tokens(context);
  std::vector<double> seconds;
  decoding_seconds(model, context, timed);  // warms up
  for (int i = 0; i < kRepetitions; ++i) seconds.push_back(decoding_seconds(model, context, timed));
  model->train(training);
  return {.tokens_per_second = static_cast<double>(timed) / median(seconds), .context = context};
}

int64_t timed_source(const EncoderDecoder& model) { return std::min(kSourceTokens, model->options().context); }

// The attention that is measured: of an encoder-decoder the encoder's.
const AttentionOptions& measured_attention(const ModelOptions& model) {
  const auto* both = std::get_if<EncoderDecoderOptions>(&model);
  return both == nullptr ? shared_options(model).attention : both->sites->encoder;
}

}  // namespace

int64_t attention_memory_bytes(const ModelOptions& model, int64_t batch, c10::Device device) {
  const TransformerOptions& resolved = shared_options(model);
  const AllocationMeter meter;
  Attention attention(measured_attention(model));
  attach(*attention, std::make_shared<DropoutClock>());
  initialise(*attention, /*seed=*/0);
  attention->to(device);
  attention->train();
  const auto like = at::TensorOptions(at::kFloat).device(device);
  const Tensor x = at::ones({batch, resolved.context, resolved.attention.d_model}, like).requires_grad_();
  attention->self(x, {.causal = is_causal(model)}).sum().backward();
  return meter.peak();
}

DecodingSpeed decoding_speed(Decoder model) { return measured_speed(model, model->options().context); }

DecodingSpeed decoding_speed(EncoderDecoder model) { return measured_speed(model, timed_source(model)); }

std::optional<DecodingSpeed> decoding_speed(const Trial& trial) {
  if (!trial.decoder.is_empty()) return decoding_speed(trial.decoder);
  if (!trial.translator.is_empty()) return decoding_speed(trial.translator);
  return std::nullopt;
}

WaitMeter watch_machine() { return WaitMeter(at::get_num_threads()); }

double seconds_per_step(const Experiment& experiment, const ComparisonOptions& cell, c10::Device device) {
  return seconds_per_step(*open_trial(experiment, cell, device).task, cell.train, device);
}

double seconds_per_step(Task& task, const TrainOptions& train, c10::Device device) {
  Optimizer optimizer(*task.model(), train.optimizer);
  const StepOptions options{.accumulation = train.accumulation,
                            .precision = resolve_precision(train.precision, device),
                            .max_gradient_norm = train.max_gradient_norm};
  const auto step = [&] {
    const double began = now();
    take_step(task, optimizer, options, /*step=*/0, /*learning_rate=*/0);
    return now() - began;
  };
  // It warms up, and embeddings that hash words hash all of them: slower than those after it.
  if (step() > kProbeSeconds) return step();
  std::vector<double> steps;
  for (const double begin = now(); now() - begin < kProbeSeconds;) steps.push_back(step());
  return median(steps);
}

double measuring_seconds(const Trial& trial) {
  const at::NoGradGuard no_grad;
  const auto all = [](const auto& model, int64_t context) {
    return (1 + kRepetitions) * decoding_seconds(model, context, timed_tokens(context));
  };
  if (!trial.decoder.is_empty()) return all(trial.decoder, trial.decoder->options().context);
  if (!trial.translator.is_empty()) return all(trial.translator, timed_source(trial.translator));
  return 0;
}

namespace {
struct SeenEnough {};
}  // namespace

double evaluation_seconds(Task& task, Part part) {
  if (!task.has(part)) return 0;
  const double began = now();
  double estimate = 0;
  try {
    task.evaluate(part, [&](int64_t done, int64_t total) {
      const double passed = now() - began;
      if (done <= 0 || done >= total || passed < kProbeSeconds) return;
      estimate = passed * static_cast<double>(total) / static_cast<double>(done);
      throw SeenEnough();
    });
  } catch (const SeenEnough&) {
    return estimate;
  }
  return now() - began;
}

}  // namespace headshare
