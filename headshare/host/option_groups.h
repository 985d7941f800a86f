// All options of a call under headings: what help shows, and what a settings file holds.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headshare/base/field.h"

namespace headshare {

struct OptionGroup {
  std::string heading;  // "Model": also the name of a group in YAML, "model:"
  Fields fields;
  std::vector<nlohmann::json> defaults;  // of each field
};

using OptionGroups = std::vector<OptionGroup>;

// Makes a group; its defaults are the present values.
OptionGroup option_group(std::string heading, Fields fields);

// Spells a heading, or what stands for one, as YAML names groups: "How to train" -> "how-to-train".
std::string group_name(std::string heading);

// Finds the option of that name or alias; null where there is none.
Field* find_option(OptionGroups& groups, const std::string& name);

// Lists all names, and behind them all aliases.
std::vector<std::string> option_names(const OptionGroups& groups);

size_t count_options(const OptionGroups& groups);

// Returns every option with its present value.
nlohmann::json to_json(const OptionGroups& groups);

}  // namespace headshare
