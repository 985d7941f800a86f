// The files of a model say how it generates text. transformers 5 reads generation_config.json alone where that
// is there, and config.json only without it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/convert/hf/config.h"

namespace headshare {

// The id of a token; a list of one id is that. Throws Error for several.
std::optional<int64_t> token_id(const HfConfig& config, const std::string& key);

class HfGeneration {
 public:
  // `config` is a model's config.json, which outlives this; generation_config.json is looked for beside it.
  explicit HfGeneration(const HfConfig& config);

  // The value of a key in the file that counts; null where that has none.
  const nlohmann::json& value(const std::string& key) const { return source().value(key); }
  // The file that counts and the key, to lead messages.
  std::string key(const std::string& name) const { return source().config_key(name); }
  // Tells whether the file that counts is generation_config.json.
  bool has_own_file() const { return own_.has_value(); }

  // token_id() in the file that counts.
  std::optional<int64_t> id(const std::string& name) const { return token_id(source(), name); }

  // The token that every target begins with. force_bos_token_to_be_generated of an old config.json names bos_token_id.
  std::optional<int64_t> forced_first() const;

  // The tokens that are never produced whatever stands before them, without repeats: words of one token in
  // bad_words_ids but for the `end` of a text, as transformers has it, and suppress_tokens.
  std::vector<int64_t> never_produced(int64_t end) const;

 private:
  const HfConfig& source() const { return own_ ? *own_ : config_; }

  const HfConfig& config_;
  std::optional<HfConfig> own_;
};

// Sentences about what the file says of searching and sampling, which is no part of a headshare model, and of tokens
// that are not produced and that `marks` has no place for.
std::vector<std::string> generation_notes(const HfGeneration& generation, const TargetMarks& marks);

}  // namespace headshare
