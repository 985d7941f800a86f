// What a model costs, measured on this machine.
#pragma once

#include "headshare/base/proc.h"
#include "headshare/compare/open_experiment.h"

namespace headshare {

// Bytes that one attention sub-layer takes in a training step at its highest point: its parameters,
// their gradients, and everything allocated by a forward and backward pass over [batch, length, E],
// counted by libtorch's allocators. The length is the model's context; a decoder's attention is causal.
int64_t attention_memory_bytes(const ModelOptions& resolved, int64_t batch, c10::Device device);

// How fast one sequence is decoded greedily with a cache, token by token; a translation has a source as long as its
// target.
struct DecodingSpeed {
  double tokens_per_second = 0;  // median of a few repetitions
  int64_t context = 0;           // tokens in the cache at the end
};
// Returns nothing for a model that does not decode.
std::optional<DecodingSpeed> decoding_speed(const Trial& trial);

// Begins to watch whether other programs take cores from libtorch's threads.
WaitMeter watch_machine();

// The time of one training step of this cell: the median of half a second's, or the first where that
// took longer.
double seconds_per_step(const Experiment& experiment, const ComparisonOptions& cell, c10::Device device);
double seconds_per_step(Task& task, const TrainOptions& train, c10::Device device);

// The time that memory and decoding of a trained model take to be measured.
double measuring_seconds(const Trial& trial);

// The time of judging a part of the data, from half a second's; 0 without that part.
double evaluation_seconds(Task& task, Part part);

}  // namespace headshare
