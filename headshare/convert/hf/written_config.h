// The config.json of a model that we write begins here, with what all families ask of such a model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "headshare/convert/foreign/model_to_write.h"
#include "headshare/convert/hf/config.h"

namespace headshare {

// The key by which our own directories are known; transformers ignores it.
inline constexpr const char* kExportMark = "headshare_format_version";

// Throws Error unless config.json of the directory has the mark.
void check_has_mark(const fs::path& directory);

// The type, the class, and our options under their `keys`.
nlohmann::json begin_config(const std::string& type, const std::string& architecture, const std::vector<HfKey>& keys,
                            const ModelOptions& options);

// Sets eos_token_id to the tokenizer's end of text, and bos_token_id to the token that begins its texts, or else to
// that end; to null where it has none: a class's defaults are ids of its own vocabulary.
void add_ends_of_text(const ModelToWrite& model, nlohmann::json* config);

// The name of transformers that read_activation() takes for it.
std::string activation_name(ActivationKind kind);

// Tells whether scores are scaled as they are by default.
bool has_usual_scale(const AttentionOptions& resolved);

// "" where heads have no gate and no sinks, queries and keys are as wide as the model's width gives for so many heads,
// and scores are scaled as usual, or not at all where that is allowed. Else a sentence about `model` ("the encoder")
// that goes on with `no_place`.
std::string why_not_usual_heads(const AttentionOptions& resolved, const std::string& model, const std::string& no_place,
                                bool may_be_unscaled = false);

// The same where heads may have any width: keys must be as wide as values, and scores scaled as usual.
std::string why_not_head_width(const AttentionOptions& resolved, const std::string& model, const std::string& no_place);

// Tells whether gqa has numbers of query, key and value heads that no other program has (--key-heads).
bool has_uneven_groups(const AttentionOptions& resolved);

// The tensors, with biases of 0 for those projections of attention and feed-forward parts that have none.
NamedTensors with_zero_biases(NamedTensors tensors);

// Each says whether it keeps a model out of a format, and why.
using Objections = std::vector<std::pair<bool, std::string>>;

// The texts of those that do, and `last` behind them unless it is "".
std::vector<std::string> raised(const Objections& objections, const std::string& last);

}  // namespace headshare
