// These functions compute the parameters and the memory of a model without allocating it.
#pragma once

#include "headshare/metrics/model_size.h"
#include "headshare/models/model_options.h"

namespace headshare {

// Counts exactly. Throws Error when the counts do not fit into 64 bits.
ModelSize measure(const ModelOptions& resolved);

// Returns the bytes of the model alone: its parameters, and its table of sinusoids where it has one.
double parameter_bytes(const ModelOptions& resolved);

// A TrainingShape says how a training run uses memory besides the parameters.
struct TrainingShape {
  int64_t batch = 8;            // sequences in one micro-batch
  int64_t length = 256;         // tokens in a sequence
  int64_t moving_averages = 0;  // extra copies of the parameters (EMA)
  bool recompute = false;       // activation checkpointing
  double scored = 1;            // share of the tokens that the output layer scores: masked ones only, in an encoder;
                                // 0: there is none, as in fine-tuning
  bool bf16 = false;            // products in bfloat16 (Precision::kBf16)
};

// Estimates the bytes that a training run needs at its peak: parameters, gradients, two Adam moments, all float32, and
// the activations of a step or of an evaluation, whichever are more; shape.length is that of source and target alike.
// The estimate comes from the shapes and is within about a third of what is measured.
double training_bytes(const ModelOptions& resolved, const TrainingShape& shape);

// Estimates the bytes that a forward pass without gradients needs besides the parameters, for shape.batch sequences:
// one block and the output layer. The estimate is within about half of what is measured.
double evaluation_bytes(const ModelOptions& resolved, const TrainingShape& shape);

// Returns how many sequences of shape.length a run evaluates at once, at least 1. Training batches are small in small
// recipes: this is about 4,096 tokens, or a whole training batch where that is more, as long as all logits stay below
// 256 MiB (a vocabulary of logits for each token, where `scored` is not 0), and evaluation_bytes below 256 MiB or the
// activations of a training step, whichever are more.
int64_t evaluation_batch(const ModelOptions& resolved, const TrainingShape& shape);

// Returns the bytes that decoding needs with a cache of batch x length tokens.
double decoding_bytes(const ModelOptions& resolved, int64_t batch, int64_t length);

}  // namespace headshare
