#include "headshare/models/data_parallel.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr double kFloatBytes = 4;
constexpr double kMoments = 2;
constexpr double kBucketBytes = 25 << 20;   // as in headshare/train/gradient_buckets.h
constexpr double kBackwardShare = 2.0 / 3;  // of a pass: the backward pass has two products for each one of the forward
constexpr double kLeastEfficiency = 0.5;

double transfer_seconds(double bytes, const DataParallelOptions& o) { return bytes / (*o.bandwidth * 1e9 / 8); }

double tree_depth(int64_t workers) { return std::ceil(std::log2(static_cast<double>(workers))); }

// Every worker gets the sum of its share of the bytes first, and then the other shares.
double sum_seconds(double bytes, int64_t workers, const DataParallelOptions& o) {
  const auto n = static_cast<double>(workers);
  const double messages = o.all_reduce == AllReduce::kRing ? n - 1 : tree_depth(workers);
  return 2 * (transfer_seconds((n - 1) / n * bytes, o) + messages * o.latency * 1e-6);
}

// Each worker broadcasts its share of the bytes down a tree, one worker after another.
double broadcast_seconds(double bytes, int64_t workers, const DataParallelOptions& o) {
  return tree_depth(workers) * (transfer_seconds(bytes, o) + static_cast<double>(workers) * o.latency * 1e-6);
}

// Returns the seconds of the backward pass that can hide sums: that of the last of the shares a worker computes.
double hiding_seconds(double compute, int64_t workers, const DataParallelOptions& o) {
  const double share = static_cast<double>(*o.step_tokens) / static_cast<double>(workers);
  const double at_once = std::min(share, static_cast<double>(o.worker_tokens.value_or(*o.step_tokens)));
  return kBackwardShare * compute * at_once / share;
}

// Returns what is left to wait for after the backward pass. Its gradients fill equal buckets, one after another, and
// the sums follow one another as well: bucket k of K is complete after k / K of the pass, and then K - k + 1 sums
// remain. The latest end over k is that of the first or of the last bucket. The token embedding's sum comes after all
// others.
double waiting_seconds(const SharedModel& model, double backward, int64_t workers, const DataParallelOptions& o) {
  const double embedding = kFloatBytes * static_cast<double>(model.embedding);
  const double rest = kFloatBytes * static_cast<double>(model.parameters) - embedding;
  if (embedding + rest <= kBucketBytes) return sum_seconds(embedding + rest, workers, o);
  const double buckets = std::ceil(rest / kBucketBytes);
  double end = backward;
  if (buckets > 0) {
    const double one_sum = sum_seconds(rest / buckets, workers, o);
    end = std::max(backward / buckets + buckets * one_sum, backward + one_sum);
  }
  return end - backward + (embedding > 0 ? sum_seconds(embedding, workers, o) : 0);
}

}  // namespace

Fields fields(DataParallelOptions& o) {
  static const EnumNames<AllReduce> names = {{AllReduce::kRing, "ring"}, {AllReduce::kTree, "tree"}};
  return {
      field("workers", &o.workers, "also print what a training step of so many workers takes: 1,8,64",
            {.min = 1, .max = 1 << 20}),
      field("bandwidth", &o.bandwidth, "Gbit/s that a worker sends, and receives at the same time; for --workers",
            {.min = 1e-6}),
      field("latency", &o.latency, "microseconds of one message between workers", {.min = 0}),
      field("all-reduce", &o.all_reduce,
            "how a sum waits for messages: 2 (N - 1) one after another in a ring, 2 log2(N) in a tree", names),
      field("speed", &o.speed,
            "tokens/s that one worker trains alone, as headshare train prints them; for --workers, of every scheme",
            {.min = 1e-6}),
      field("update-time", &o.update_time,
            "milliseconds in which one worker moves all parameters, where --speed leaves them out", {.min = 0}),
      field("step-tokens", &o.step_tokens, "tokens of one step of all workers together; for --workers", {.min = 1}),
      field("worker-tokens", &o.worker_tokens,
            "tokens that a worker computes at once, the rest of its share after them; auto: all", {.min = 1}),
  };
}

void check_data_parallel(const DataParallelOptions& o) {
  const auto need = [](bool there, const char* option, const char* what) {
    HS_CHECK(there, "--workers needs --", option, " too: ", what);
  };
  need(o.bandwidth.has_value(), "bandwidth", "the Gbit/s of the network, such as 25");
  need(o.speed.has_value(), "speed", "the tokens/s of one worker, which headshare train prints");
  need(o.step_tokens.has_value(), "step-tokens", "the tokens of one step of all workers, such as 524288");
}

WorkerCost worker_cost(const SharedModel& model, int64_t workers, const DataParallelOptions& o) {
  check_data_parallel(o);
  constexpr double kSmallSums = 3;  // in each step: of losses, of the gradient norm, of whether to stop
  const auto n = static_cast<double>(workers);
  const double weights = kFloatBytes * static_cast<double>(model.parameters);
  const double whole = static_cast<double>(*o.step_tokens) / *o.speed;
  const double update = o.update_time * 1e-3;
  // Whole tensors are dealt to workers: no share of them is smaller than the largest.
  const double largest = static_cast<double>(model.embedding) / static_cast<double>(model.parameters);
  const double share = std::max(1 / n, largest);
  WorkerCost cost{.seconds = whole / n + update};
  cost.bytes = (2 + kMoments) * weights;
  cost.sharded_bytes = (2 + kMoments * share) * weights;
  cost.sharded_seconds = cost.seconds;
  if (workers == 1) return cost;
  const double backward = hiding_seconds(whole / n, workers, o);
  cost.waiting = waiting_seconds(model, backward, workers, o) + kSmallSums * sum_seconds(0, workers, o);
  cost.seconds += cost.waiting;
  cost.efficiency = (whole + update) / (n * cost.seconds);
  cost.sharded_seconds = whole / n + cost.waiting + update * share + broadcast_seconds(weights, workers, o);
  cost.bytes += weights;  // the buckets
  cost.sharded_bytes += weights;
  return cost;
}

int64_t most_workers_that_pay(const SharedModel& model, int64_t context, const DataParallelOptions& o) {
  check_data_parallel(o);
  int64_t pays = 1;  // and efficiency falls with every worker
  int64_t beyond = *o.step_tokens / context + 1;
  while (beyond - pays > 1) {
    const int64_t middle = pays + (beyond - pays) / 2;
    (worker_cost(model, middle, o).efficiency >= kLeastEfficiency ? pays : beyond) = middle;
  }
  return pays;
}

}  // namespace headshare
