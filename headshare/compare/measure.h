// These functions measure what a model costs on this machine.
#pragma once

#include "headshare/base/proc.h"
#include "headshare/compare/open_experiment.h"

namespace headshare {

// Returns the bytes that one attention sub-layer takes in a training step at its highest point: its parameters, their
// gradients, and everything allocated by a forward and backward pass over [batch, length, E], counted by libtorch's
// allocators. The length is the model's context; a decoder's attention is causal.
int64_t attention_memory_bytes(const ModelOptions& resolved, int64_t batch, c10::Device device);

// A DecodingSpeed says how fast one sequence is decoded greedily with a cache, token by token; a translation has a
// source as long as its target.
struct DecodingSpeed {
  double tokens_per_second = 0;  // median of a few repetitions
  int64_t context = 0;           // tokens in the cache at the end
};
// Returns nothing for a model that does not decode.
std::optional<DecodingSpeed> decoding_speed(const Trial& trial);

// Begins to watch whether other programs take cores from libtorch's threads.
WaitMeter watch_machine();

// Returns the seconds of one training step of this cell: the median over half a second, or the second step where one
// step took longer.
double seconds_per_step(const Experiment& experiment, const ComparisonOptions& cell, c10::Device device);
double seconds_per_step(Task& task, const TrainOptions& train, c10::Device device);

// Returns the seconds that measuring the decoding speed of a model takes.
double measuring_seconds(const Trial& trial);

// Estimates the seconds of evaluating a part of the data from half a second of it; 0 without that part.
double evaluation_seconds(Task& task, Part part);

}  // namespace headshare
