// Every fine-tuning has these options, whatever the task.
#pragma once

#include <cstdint>
#include <optional>

#include "headshare/base/options/field.h"
#include "headshare/models/checkpoint.h"

namespace headshare {

struct FineTuneOptions {
  int64_t epochs = 3;
  int64_t batch_size = 32;                 // examples
  std::optional<int64_t> max_length = {};  // tokens of a row; default the context, at most 128 (SQuAD: 384)
  std::optional<double> dropout = {};      // default the encoder's own
  std::optional<double> attention_dropout = {};
  std::optional<int64_t> train_examples = {};  // default all
  std::optional<int64_t> validation_examples = {};
  bool group_by_length = false;
  double validation_fraction = 0;  // of the training data, where the task has no validation part

  // Throws Error for a max_length beyond the encoder's context where its positions end there.
  int64_t row_length(const EncoderOptions& encoder, int64_t usual) const;
};

Fields fields(FineTuneOptions& options);

// Makes the encoder that a fine-tuning begins with: the weights of `trained` without its masked-LM head, and where the
// task head needs them a pooler and the task head itself, new and drawn from `seed`. It is on the CPU, in training
// mode. Throws Error where the trained model has a task head already.
Encoder starting_model(const EncoderOptions& resolved, const NamedTensors& trained, const TaskHeadOptions& head,
                       const FineTuneOptions& options, uint64_t seed);

// Returns the options of that encoder; its context grows to max_length.
EncoderOptions starting_options(EncoderOptions trained, const TaskHeadOptions& head, const FineTuneOptions& options);

}  // namespace headshare
