#include "headshare/train/step.h"

#include <array>
#include <cmath>
#include <vector>

#include "headshare/base/error.h"

namespace headshare {
namespace {

Tensor loss_sum(Task& task, int64_t index, Precision precision) {
  const ComputeIn guard(precision, task.model()->parameters().front().device().type());
  return task.loss_sum(index);
}

// Adds the loss of this process's micro-batches to `sums`, with a teacher's part and without. Leaves the gradients with
// the parameters; those of the last backward pass are on their way to the other processes meanwhile. Losses are read
// once all passes are under way: a card whose host waits for a number has nothing to do next.
void add_micro_batches(Task& task, Optimizer& optimizer, const StepOptions& options, int64_t step, StepSums* sums) {
  const Reducer& reducer = optimizer.reducer();
  GradientBuckets* const buckets = optimizer.buckets();
  if (buckets != nullptr && reducer.rank() >= options.accumulation) buckets->expect_last();  // it has no micro-batch
  std::vector<Tensor> parts;
  for (int64_t i = reducer.rank(); i < options.accumulation; i += reducer.size()) {
    task.clock().tick = static_cast<uint64_t>(step * options.accumulation + i);
    const Tensor part = loss_sum(task, i, options.precision);
    parts.push_back(part.detach());
    if (const auto plain = task.plain_loss_sum()) {
      sums->plain_loss = sums->plain_loss.value_or(0) + *plain / static_cast<double>(sums->targets);
    }
    if (buckets != nullptr && i + reducer.size() >= options.accumulation) buckets->expect_last();
    part.backward();
  }
  for (const Tensor& part : parts) sums->loss += part.item<double>() / static_cast<double>(sums->targets);
}

// Sums losses and gradients over the processes. A process without a micro-batch has no plain loss even where a teacher
// has a say.
void sum_over_processes(Optimizer& optimizer, StepSums* sums) {
  GradientBuckets* const buckets = optimizer.buckets();
  if (buckets == nullptr) return;
  const bool changed = buckets->send_rest();
  std::array<double, 4> numbers = {sums->loss, sums->plain_loss.value_or(0), sums->plain_loss ? 1.0 : 0.0,
                                   changed ? 1.0 : 0.0};
  optimizer.reducer().sum(numbers);
  sums->loss = numbers[0];
  if (numbers[2] > 0) sums->plain_loss = numbers[1];
  buckets->finish(/*again=*/numbers[3] > 0);
}

}  // namespace

std::optional<std::pair<const char*, double>> StepSums::not_finite() const {
  if (!std::isfinite(loss)) return {{"loss", loss}};
  if (!std::isfinite(gradient_norm)) return {{"gradient norm", gradient_norm}};
  return std::nullopt;
}

StepSums take_step(Task& task, Optimizer& optimizer, const StepOptions& options, int64_t step, double learning_rate) {
  task.model()->train();
  StepSums sums{.targets = task.draw(options.accumulation)};
  HS_CHECK(sums.targets > 0, "the batch of step ", step + 1, " has no targets");
  optimizer.zero_gradients();
  add_micro_batches(task, optimizer, options, step, &sums);
  sum_over_processes(optimizer, &sums);
  // Micro-batches are weighted by tokens: the sum over all of them, divided here, is the mean over their targets
  // together.
  sums.gradient_norm = optimizer.measure_gradients(static_cast<double>(sums.targets), options.max_gradient_norm);
  if (!sums.not_finite()) optimizer.step(learning_rate);
  return sums;
}

}  // namespace headshare
