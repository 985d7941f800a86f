// The config.json of a model that we write begins here, with what all families ask of such a model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "headshare/convert/hf/config.h"

namespace headshare {

// The key by which our own directories are known; transformers ignores it.
inline constexpr const char* kExportMark = "headshare_format_version";

// The type, the class, and our options under their `keys`.
nlohmann::json begin_config(const std::string& type, const std::string& architecture, const std::vector<HfKey>& keys,
                            const ModelOptions& options);

// The name of transformers that read_activation() takes for it.
std::string activation_name(ActivationKind kind);

// Tells whether scores are scaled as they are by default.
bool has_usual_scale(const AttentionOptions& resolved);

// "" where queries and keys are as wide as the model's width gives for so many heads, and scores are scaled as usual,
// or not at all where that is allowed. Else a sentence about `model` ("the encoder") that goes on with `no_place`.
std::string why_not_usual_heads(const AttentionOptions& resolved, const std::string& model, const std::string& no_place,
                                bool may_be_unscaled = false);

// Each says whether it keeps a model out of a format, and why.
using Objections = std::vector<std::pair<bool, std::string>>;

// The texts of those that do, and `last` behind them unless it is "".
std::vector<std::string> raised(const Objections& objections, const std::string& last);

}  // namespace headshare
