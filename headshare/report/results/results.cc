#include "headshare/report/results/results.h"

#include <algorithm>

#include "headshare/base/error.h"

namespace headshare {

std::string name_of(const CellKey& key) {
  return join_text(key.variant, key.setting.empty() ? "" : " with ", key.setting, " seed ", key.seed);
}

Variant scheme_variant(const std::string& scheme) {
  return {.name = scheme, .scheme = scheme, .options = {{"scheme", scheme}}};
}

Variant variant_of(const Results& results, const std::string& name) {
  for (const Variant& one : results.variants) {
    if (one.name == name) return one;
  }
  return scheme_variant(name);
}

std::vector<std::string> variant_names(const Results& results) {
  std::vector<std::string> names;
  for (const CellKey& key : results.planned) {
    if (std::find(names.begin(), names.end(), key.variant) == names.end()) names.push_back(key.variant);
  }
  return names;
}

bool is_complete(const Results& results) {
  return results.cells.size() + results.failed.size() >= results.planned.size();
}

}  // namespace headshare
