// A model's config.json as Hugging Face transformers writes it. It is untrusted.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/models/encoder_decoder_options.h"
#include "headshare/models/model_kind.h"
#include "headshare/models/vision_options.h"

namespace headshare {

class HfConfig {
 public:
  // Throws Error when the file is missing or holds no JSON object.
  explicit HfConfig(fs::path file);

  // The file and a key of it, to lead messages.
  std::string config_key(const std::string& key) const;

  // The value of `key`, or null where it is absent.
  const nlohmann::json& value(const std::string& key) const;
  // Tells whether the file has the key, perhaps with null: where a family has a default, null can mean something else.
  bool has(const std::string& key) const { return config_.contains(key); }
  // The class of transformers that wrote the model, where the file names one.
  std::optional<std::string> architecture() const;
  // A truth value, `otherwise` where it is absent.
  bool flag(const std::string& key, bool otherwise) const;

  const fs::path& file() const { return file_; }

 private:
  fs::path file_;
  nlohmann::json config_;
};

// A key of theirs and the option of ours that it sets.
struct HfKey {
  const char* theirs;
  const char* ours;
  const char* general = nullptr;  // the general name that transformers also accepts for it
};

// The value of a key under either of its names; null where both are absent. Throws Error where they disagree.
const nlohmann::json& either_value(const HfConfig& config, const std::string& theirs, const char* general);

// Sets our options from the keys that the configuration has; the others keep what they have, which is to be the default
// of the family's class in transformers. Throws Error, naming file and key, for a value that is not the option's.
void read_keys(const HfConfig& config, const std::vector<HfKey>& keys, Fields options);

// resolve(), with errors led by the file.
DecoderOptions resolve_read(const HfConfig& config, const DecoderOptions& options);
EncoderOptions resolve_read(const HfConfig& config, const EncoderOptions& options);
EncoderDecoderOptions resolve_read(const HfConfig& config, const EncoderDecoderOptions& options);
VisionOptions resolve_read(const HfConfig& config, const VisionOptions& options);

// The value of a configuration's activation key, by the names transformers gives them; null is `otherwise`.
ActivationKind read_activation(const HfConfig& config, const std::string& key, ActivationKind otherwise);

// Throws Error when config.json names a class that is not among `known`: it may compute something else.
void refuse_other_classes(const HfConfig& config, const std::vector<std::string>& known);

// Says why no decoder of ours attends as the configuration asks for ("is_causal is false; ..."); "" where one does.
std::string why_not_causal(const HfConfig& config);

// Throws Error for what no model of ours has: cross-attention, quantised weights, pruned heads.
void refuse_what_we_lack(const HfConfig& config);

}  // namespace headshare
