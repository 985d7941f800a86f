// A TextToScore is a trained model that is scored on text; TextScores are its scores there, as `evaluate` reports them.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "headshare/data/text/token_data.h"

namespace headshare {

struct TextToScore {
  std::string model;  // a checkpoint or run directory
  c10::Device device = c10::Device(c10::kCPU);
  std::function<TokenData(const Tokenizer& tokenizer)> open;  // reads the text
  std::optional<int64_t> context = {};                        // default the model's
  std::optional<int64_t> batch_size = {};                     // windows at once; default what fits
  std::function<void(int64_t done, int64_t total)> progress = {};
};

struct TextScores {
  nlohmann::ordered_json object;  // for programs
  std::string text;               // for people
};

// Throws Error, naming `model`, for a score that is not finite: a table would show it beside others that look valid.
void check_scores(const TextScores& scores, const std::string& model);

}  // namespace headshare
