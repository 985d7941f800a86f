#include "headshare/report/statistics/option_names.h"

#include <array>
#include <sstream>

namespace headshare {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array kNames = {Pair{"d-model", "model width"},
                               Pair{"match", "held equal"},
                               Pair{"init-deviation", "initial deviation"},
                               Pair{"shared-qk", "shared queries and keys"},
                               Pair{"feed-forward", "feed-forward"},
                               Pair{"feed-forward-width", "feed-forward width"},
                               Pair{"feed-forward-bias", "feed-forward bias"}};

constexpr std::array kWords = {Pair{"finetune", "fine-tuning"},
                               Pair{"tensorboard", "TensorBoard"},
                               Pair{"mhe", "MHE"},
                               Pair{"ema", "EMA"},
                               Pair{"utf8", "UTF-8"},
                               Pair{"jsonl", "JSONL"},
                               Pair{"beta1", "beta 1"},
                               Pair{"beta2", "beta 2"},
                               Pair{"adam", "Adam"},
                               Pair{"qk", "QK"},
                               Pair{"peop", "PEoP"},
                               Pair{"cuda", "CUDA"},
                               Pair{"bert", "BERT"},
                               Pair{"dir", "directory"},
                               Pair{"warmup", "warm-up"},
                               Pair{"sdpa", "SDPA"}};

std::string_view in_words(std::string_view part) {
  for (const auto& [from, to] : kWords) {
    if (from == part) return to;
  }
  return part;
}

}  // namespace

std::string option_name(const std::string& option) {
  for (const auto& [from, to] : kNames) {
    if (from == option) return std::string(to);
  }
  std::string text;
  for (size_t at = 0; at <= option.size();) {
    const size_t end = std::min(option.find_first_of("-_", at), option.size());
    text += (text.empty() ? "" : " ") + std::string(in_words(std::string_view(option).substr(at, end - at)));
    at = end + 1;
  }
  return text;
}

std::string option_value(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_null() || (value.is_string() && value.get<std::string>().empty())) return "not set";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_structured()) return value.dump();
  std::string text;
  for (const auto& [name, inner] : value.items()) {
    text += (text.empty() ? "" : ", ") + (value.is_object() ? option_name(name) + " " : "") + option_value(inner);
  }
  return text.empty() ? "none" : text;
}

std::vector<std::pair<std::string, std::string>> setting_options(const std::string& setting) {
  std::vector<std::pair<std::string, std::string>> options;
  std::istringstream words(setting);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos) return {{"setting", setting}};
    options.emplace_back(option_name(word.substr(0, equals)), word.substr(equals + 1));
  }
  return options;
}

std::string setting_text(const std::string& setting) {
  std::string text;
  for (const auto& [name, value] : setting_options(setting)) text += (text.empty() ? "" : ", ") + name + " " + value;
  return text;
}

}  // namespace headshare
