// This cost model says how long a training step of several workers takes, and what each of them keeps. The workers hold
// the same model, compute shares of the same batch and add up their gradients (data parallelism), as headshare/train
// does with a Reducer. docs/scaling.md derives the formulas and compares them with a measurement.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headshare/base/options/field.h"

namespace headshare {

// An AllReduce says how many messages one sum over N workers waits for: a ring sends 2 (N - 1) one after another
// (Gloo), a tree 2 log2(N) (NCCL, where it has many machines).
enum class AllReduce { kRing, kTree };

struct DataParallelOptions {
  std::vector<int64_t> workers = {};     // numbers of workers to ask about; empty: the question is not asked
  std::optional<double> bandwidth = {};  // Gbit/s that a worker sends while it receives as much
  double latency = 20;                   // microseconds of one message
  AllReduce all_reduce = AllReduce::kRing;
  std::optional<double> speed = {};           // tokens/s that one worker trains alone, without moving the parameters
  double update_time = 0;                     // milliseconds in which one worker moves all parameters
  std::optional<int64_t> step_tokens = {};    // tokens of one step, of all workers together
  std::optional<int64_t> worker_tokens = {};  // tokens that a worker computes at once; auto: its whole share
};

Fields fields(DataParallelOptions& options);

// Throws Error where a number that the question needs is missing.
void check_data_parallel(const DataParallelOptions& options);

// These are the sizes of a model of float32 numbers, all of which have gradients and two moments.
struct SharedModel {
  int64_t parameters = 0;
  // The token embedding has so many numbers. The backward pass finishes it last, it is summed on its own, and one
  // worker holds its moments.
  int64_t embedding = 0;
};

// A WorkerCost is what a step takes with a number of workers.
struct WorkerCost {
  double seconds = 0;          // of a step
  double waiting = 0;          // of these, what a worker waits for others: sums that the backward pass does not hide
  double efficiency = 1;       // seconds of one worker / (workers x seconds)
  double sharded_seconds = 0;  // of a step with a sharded optimizer (ZeRO-1)
  // Weights, gradients, moments and, beside others, the buckets that gradients are added up in; activations come on
  // top.
  double bytes = 0;
  double sharded_bytes = 0;  // of the worker that keeps most
};

// Throws Error as check_data_parallel() does.
WorkerCost worker_cost(const SharedModel& model, int64_t workers, const DataParallelOptions& options);

// Returns the largest number of workers with which every one of them still gives at least half of what it gives alone;
// no worker has less than one sequence of `context` tokens.
int64_t most_workers_that_pay(const SharedModel& model, int64_t context, const DataParallelOptions& options);

}  // namespace headshare
