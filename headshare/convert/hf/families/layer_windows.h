// Local windows of layers as Hugging Face's configurations list them, and as our options have them.
#pragma once

#include <optional>
#include <vector>

#include "headshare/convert/hf/config.h"
#include "headshare/models/blocks/options.h"

namespace headshare {

// transformers calls layers without and with a window by these names.
inline constexpr const char* kGlobalLayer = "full_attention";
inline constexpr const char* kLocalLayer = "sliding_attention";

// Reads layer_types, which says of each layer whether it attends to all tokens; nothing where it is absent. Throws
// Error for a list of another length, and for types that are neither.
std::optional<std::vector<bool>> listed_global_layers(const HfConfig& config, int64_t layers);

// Gives the layers that are not global a window of `window` positions to either side. Returns false, and changes
// nothing, where our options have no such model: global layers in no regular order, or a window below 1.
bool set_local_windows(const std::vector<bool>& global, int64_t window, TransformerOptions* options);

// Writes sliding_window, the newest tokens that a layer with a window attends to, or null. `asked`: the family has keys
// that switch windows on, and say in which layers.
void write_windows(const TransformerOptions& options, bool asked, nlohmann::json* config);

}  // namespace headshare
