// Writes options, as results hold them, in words. All is plain text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace headshare {

// Returns "learning rate" for "learning-rate", "model width" for "d-model", "memory bytes" for "memory_bytes".
std::string option_name(const std::string& option);

// Returns "yes", "0.002", "mha, mqa", "not set".
std::string option_value(const nlohmann::json& value);

// Returns the options of a sweep's setting, "heads=4 norm=rms", by their names in words. A setting that is no such list
// is the value of "setting".
std::vector<std::pair<std::string, std::string>> setting_options(const std::string& setting);

// Returns "learning rate 0.001, heads 4"; "" for none.
std::string setting_text(const std::string& setting);

}  // namespace headshare
