// What a trained model is worth on a text, as `evaluate` reports it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "headshare/data/text/token_data.h"
#include "headshare/data/text/windows.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/model_options.h"
#include "headshare/tasks/language/evaluate_language.h"

namespace headshare {

struct TextToScore {
  std::string model;  // a checkpoint or run directory
  c10::Device device = c10::Device(c10::kCPU);
  std::function<TokenData(const Tokenizer& tokenizer)> open;  // reads the text
  std::optional<int64_t> context = {};                        // default the model's
  std::optional<int64_t> batch_size = {};                     // windows at once; default what fits
  WindowProgress progress = {};
};

struct TextScores {
  nlohmann::ordered_json object;  // for programs
  std::string text;               // for people
};

// Throws Error, naming `model`, for a score that is not finite: a table would show it beside others that look like
// some.
void check_scores(const TextScores& scores, const std::string& model);

// The windows of a text of which the longest allows windows of `longest` tokens: as many at once as keep the scores
// below 256 MiB and fit into memory. Throws Error when a batch does not fit.
WindowOptions scoring_windows(const TextToScore& asked, std::optional<int64_t> stride, const ModelOptions& model,
                              int64_t longest);

// `heading` and "4.1% of the tokens are unknown to the tokenizer and easy to predict"; "" where the tokenizer knows
// every token.
std::string unknown_line(const std::string& heading, double share);

// Perplexity, and bits per byte where the tokenizer is lossless.
TextScores score_text(const TextToScore& asked, std::optional<int64_t> stride);

}  // namespace headshare
