// Programs that look into a trained model's layers read two things: the model, and a text like what it reads.
#pragma once

#include <string>
#include <vector>

#include "headshare/data/text/token_cache.h"
#include "headshare/models/checkpoint.h"

namespace headshare {

// A SampleText stands for what a model reads.
struct SampleText {
  std::string option;  // the option that named the files, for messages: "--sample-text"
  std::vector<std::string> files;
  int64_t tokens = 0;      // the most tokens to read
  Progress progress = {};  // hears how far the reading is
};

// Reads the first windows of the text, each as long as the model's context: int64 [N, T]; undefined without files.
// Windows of an encoder stand between [CLS] and [SEP], as in training, where its tokenizer has both. Throws Error where
// the tokenizer is null or the text shorter than one window.
Tensor read_sample(const SampleText& text, const DecoderOptions& model, const Tokenizer* tokenizer);
Tensor read_sample(const SampleText& text, const EncoderOptions& model, const Tokenizer* tokenizer);

// Loads the model of a checkpoint directory whose options are `stored`. A scheme that computes with another scheme's
// weights becomes that other scheme.
Decoder load_as_trained(const fs::path& directory, const DecoderOptions& stored);
Encoder load_as_trained(const fs::path& directory, const EncoderOptions& stored);

}  // namespace headshare
