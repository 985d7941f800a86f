#include "headshare/host/option_groups.h"

#include <algorithm>

#include "headshare/base/options/canonical_name.h"

namespace headshare {

OptionGroup option_group(std::string heading, Fields fields) {
  OptionGroup group{.heading = std::move(heading), .fields = std::move(fields), .defaults = {}};
  for (const Field& one : group.fields) group.defaults.push_back(one.value());
  return group;
}

std::string group_name(std::string heading) {
  std::replace(heading.begin(), heading.end(), ' ', '-');
  return canonical_name(std::move(heading));
}

Field* find_option(OptionGroups& groups, const std::string& name) {
  for (OptionGroup& group : groups) {
    if (Field* found = find_field(group.fields, name); found != nullptr) return found;
  }
  return nullptr;
}

std::vector<std::string> option_names(const OptionGroups& groups) {
  std::vector<std::string> names;
  for (const OptionGroup& group : groups) {
    for (const Field& one : group.fields) names.push_back(one.name);
  }
  for (const OptionGroup& group : groups) {
    for (const Field& one : group.fields) names.insert(names.end(), one.aliases.begin(), one.aliases.end());
  }
  return names;
}

size_t count_options(const OptionGroups& groups) {
  size_t count = 0;
  for (const OptionGroup& group : groups) count += group.fields.size();
  return count;
}

nlohmann::json to_json(const OptionGroups& groups) {
  nlohmann::json object = nlohmann::json::object();
  for (const OptionGroup& group : groups) object.update(to_json(group.fields));
  return object;
}

}  // namespace headshare
