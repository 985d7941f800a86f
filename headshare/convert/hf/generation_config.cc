#include "headshare/convert/hf/generation_config.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/strings/format.h"

namespace headshare {
namespace {

constexpr const char* kBadWords = "bad_words_ids";
constexpr const char* kSuppressed = "suppress_tokens";

std::optional<HfConfig> read_own(const HfConfig& config) {
  const fs::path file = config.file().parent_path() / "generation_config.json";
  return path_exists(file) ? std::optional<HfConfig>(file) : std::nullopt;
}

// "num_beams 4 and max_length 512" of those keys that say something.
std::string said_of(const HfGeneration& generation, const std::vector<const char*>& keys) {
  std::vector<std::string> parts;
  for (const char* key : keys) {
    const nlohmann::json& value = generation.value(key);
    const bool nothing = value.is_null() || value == false || (value.is_array() && value.empty());
    if (!nothing) parts.push_back(join_text(key, " ", brief_json(value)));
  }
  return parts.empty() ? "" : list_text(parts);
}

std::vector<int64_t> ids_of_list(const nlohmann::json& list, const std::string& where) {
  std::vector<int64_t> ids;
  for (const nlohmann::json& one : json_list(list, where)) ids.push_back(json_id(one, where));
  return ids;
}

}  // namespace

std::optional<int64_t> token_id(const HfConfig& config, const std::string& key) {
  const nlohmann::json& found = config.value(key);
  if (found.is_null()) return std::nullopt;
  const std::string where = config.config_key(key);
  HS_CHECK(!found.is_array() || found.size() == 1, where, " is ", brief_json(found), "; headshare has one such token");
  return json_id(found.is_array() ? found.front() : found, where);
}

HfGeneration::HfGeneration(const HfConfig& config) : config_(config), own_(read_own(config)) {}

std::optional<int64_t> HfGeneration::forced_first() const {
  const char* old = "force_bos_token_to_be_generated";
  const std::optional<int64_t> named = id("forced_bos_token_id");
  if (has_own_file() || value(old).is_null() || !json_bool(value(old), key(old))) return named;
  const std::optional<int64_t> first = id("bos_token_id");
  return first ? first : named;
}

std::vector<int64_t> HfGeneration::never_produced(int64_t end) const {
  std::vector<int64_t> tokens;
  if (const nlohmann::json& words = value(kBadWords); !words.is_null()) {
    const std::string where = key(kBadWords);
    for (const nlohmann::json& one : json_list(words, where)) {
      const std::vector<int64_t> word = ids_of_list(one, where);
      if (word.size() == 1 && word.front() != end) tokens.push_back(word.front());
    }
  }
  if (const nlohmann::json& suppressed = value(kSuppressed); !suppressed.is_null()) {
    const std::vector<int64_t> ids = ids_of_list(suppressed, key(kSuppressed));
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

std::vector<std::string> generation_notes(const HfGeneration& generation, const TargetMarks& marks) {
  std::vector<std::string> notes;
  const std::string search = said_of(
      generation, {"num_beams", "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
                   "repetition_penalty", "encoder_repetition_penalty", "min_length", "min_new_tokens", "max_length",
                   "max_new_tokens", "early_stopping", "do_sample", "temperature", "top_k", "top_p"});
  if (!search.empty()) {
    notes.push_back(
        join_text("how to search for a target is no part of a headshare model; the files suggest ", search));
  }
  const std::vector<int64_t> never = generation.never_produced(marks.end);
  const nlohmann::json& words = generation.value(kBadWords);
  const bool sequences = words.is_array() && std::any_of(words.begin(), words.end(),
                                                         [](const nlohmann::json& word) { return word.size() > 1; });
  if (never.size() > 1 || sequences) {
    notes.push_back(join_text(said_of(generation, {kBadWords, kSuppressed}),
                              never.size() == 1 ? ": sequences of tokens are not kept: " : ": none of these is kept: ",
                              "headshare can leave out one token, not several or sequences"));
  }
  const std::string others = said_of(
      generation, {"begin_suppress_tokens", "sequence_bias", "forced_decoder_ids", "exponential_decay_length_penalty"});
  if (!others.empty()) notes.push_back(join_text(others, ": headshare has no such rule, and translates without it"));
  return notes;
}

}  // namespace headshare
