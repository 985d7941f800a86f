// OptionGroups hold all options of a call under headings, as help shows them and settings files write them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headshare/base/options/field.h"

namespace headshare {

struct OptionGroup {
  std::string heading;  // "Model": also the name of a group in YAML, "model:"
  Fields fields;
  std::vector<nlohmann::json> defaults;  // the default of each field
};

using OptionGroups = std::vector<OptionGroup>;

// Makes a group whose defaults are the present values of its fields.
OptionGroup option_group(std::string heading, Fields fields);

// Spells a heading, or a word that stands for one, as YAML names groups: "How to train" -> "how-to-train".
std::string group_name(std::string heading);

// Finds the option of that name or alias; returns null where there is none.
Field* find_option(OptionGroups& groups, const std::string& name);

// Lists all names, followed by all aliases.
std::vector<std::string> option_names(const OptionGroups& groups);

size_t count_options(const OptionGroups& groups);

// Returns every option with its present value.
nlohmann::json to_json(const OptionGroups& groups);

}  // namespace headshare
