#include "headshare/compare/measure.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>

#include "headshare/metrics/statistics.h"
#include "headshare/models/model_kind.h"
#include "headshare/ops/allocation_meter.h"
#include "headshare/tasks/evaluation_mode.h"
#include "headshare/train/step.h"

namespace headshare {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr int kRepetitions = 3;
constexpr int64_t kDecodedTokens = 64;
constexpr double kProbeSeconds = 0.5;

int64_t timed_tokens(int64_t context) { return std::max<int64_t>(1, std::min(kDecodedTokens, context / 2)); }

// Fills a cache token by token and returns the seconds of the last `timed` tokens.
double decoding_seconds(GreedyDecoding& decoding, int64_t timed) {
  decoding.begin(decoding.length() - timed);
  const double began = now();
  for (int64_t i = 0; i < timed; ++i) decoding.step();
  decoding.wait();
  return now() - began;
}

std::unique_ptr<GreedyDecoding> decoding_of(const Trial& trial) { return trial.options.kind().decoding(trial.model); }

}  // namespace

int64_t attention_memory_bytes(const ModelOptions& model, int64_t batch, c10::Device device) {
  const TransformerOptions& resolved = model.common();
  const AllocationMeter meter;
  Attention attention(model.kind().attentions(model).front());
  attach(*attention, std::make_shared<DropoutClock>());
  initialise(*attention, /*seed=*/0);
  attention->to(device);
  attention->train();
  const auto like = at::TensorOptions(at::kFloat).device(device);
  const Tensor x = at::ones({batch, resolved.context, resolved.attention.d_model}, like).requires_grad_();
  attention->self(x, {.causal = model.kind().is_causal()}).sum().backward();
  return meter.peak();
}

std::optional<DecodingSpeed> decoding_speed(const Trial& trial) {
  const at::NoGradGuard no_grad;
  const std::unique_ptr<GreedyDecoding> decoding = decoding_of(trial);
  if (decoding == nullptr) return std::nullopt;
  const EvaluationMode evaluating(trial.model);
  const int64_t timed = timed_tokens(decoding->length());
  std::vector<double> seconds;
  decoding_seconds(*decoding, timed);  // warms up
  for (int i = 0; i < kRepetitions; ++i) seconds.push_back(decoding_seconds(*decoding, timed));
  return DecodingSpeed{.tokens_per_second = static_cast<double>(timed) / median(seconds),
                       .context = decoding->length()};
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
  // The first step warms up, and it is slower than later ones because embeddings that hash words hash all of them.
  if (step() > kProbeSeconds) return step();
  std::vector<double> steps;
  for (const double begin = now(); now() - begin < kProbeSeconds;) steps.push_back(step());
  return median(steps);
}

double measuring_seconds(const Trial& trial) {
  const at::NoGradGuard no_grad;
  const std::unique_ptr<GreedyDecoding> decoding = decoding_of(trial);
  if (decoding == nullptr) return 0;
  return (1 + kRepetitions) * decoding_seconds(*decoding, timed_tokens(decoding->length()));
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
