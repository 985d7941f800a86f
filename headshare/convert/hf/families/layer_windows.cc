#include "headshare/convert/hf/families/layer_windows.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"

namespace headshare {
std::optional<std::vector<bool>> listed_global_layers(const HfConfig& config, int64_t layers) {
  const nlohmann::json& types = config.value("layer_types");
  if (types.is_null()) return std::nullopt;
  const std::string where = config.config_key("layer_types");
  std::vector<bool> global;
  for (const nlohmann::json& type : json_list(types, where)) {
    const std::string& name = json_string(type, where);
    HS_CHECK(name == kGlobalLayer || name == kLocalLayer, where, " has ", brief_text(name), "; headshare reads ",
             kGlobalLayer, " and ", kLocalLayer);
    global.push_back(name == kGlobalLayer);
  }
  HS_CHECK(static_cast<int64_t>(global.size()) == layers, where, " has ", global.size(), " entries for ", layers,
           " layers");
  return global;
}

bool set_local_windows(const std::vector<bool>& global, int64_t window, TransformerOptions* options) {
  if (window < 1) return false;
  std::optional<int64_t> every;
  int64_t at = 0;
  const auto layers = static_cast<int64_t>(global.size());
  const auto first = std::find(global.begin(), global.end(), true);
  if (first != global.end()) {
    at = first - global.begin();
    const auto second = std::find(first + 1, global.end(), true);
    // One global layer comes back after the last.
    every = second == global.end() ? std::max({layers - at, at + 1, int64_t{2}}) : second - first;
    if (*every < 2 || at >= *every) return false;
    for (int64_t layer = 0; layer < layers; ++layer) {
      if (global[static_cast<size_t>(layer)] != (layer % *every == at)) return false;
    }
  }
  options->attention.window = window;
  options->global_every = every;
  options->global_first = at;
  return true;
}

void write_windows(const TransformerOptions& options, bool asked, nlohmann::json* config) {
  const std::optional<int64_t>& window = options.attention.window;
  // A window of ours counts the positions before a token, theirs the token itself as well.
  (*config)["sliding_window"] = window ? nlohmann::json(*window + 1) : nlohmann::json();
  if (!asked) return;
  std::vector<std::string> types;
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    types.emplace_back(layer_attention(options, layer).window ? kLocalLayer : kGlobalLayer);
  }
  (*config)["use_sliding_window"] = window.has_value();
  // Versions of transformers without layer_types read the number of the first layer with a window.
  (*config)["max_window_layers"] = std::find(types.begin(), types.end(), kLocalLayer) - types.begin();
  (*config)["layer_types"] = types;
}

}  // namespace headshare
