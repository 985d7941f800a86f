// For tests/oracles/test_config_defaults.py: reads config.json files, one path a line on standard input. Prints for
// each line what headshare makes of it: {"options", "parameters", "notes"} or {"error"}.
#include <iostream>
#include <nlohmann/json.hpp>

#include "headshare/base/error.h"
#include "headshare/convert/hf/shape.h"

namespace headshare {
namespace {

nlohmann::json reading(const std::string& path) {
  try {
    const HfShape shape = read_hf_shape(path);
    const int64_t surplus = surplus_parameters(shape.counts, shape.options.common());
    return {{"options", stored_option_values(shape.options)},
            {"parameters", measure(shape.options).total_parameters - surplus},
            {"notes", shape.notes}};
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace
}  // namespace headshare

int main() {
  for (std::string path; std::getline(std::cin, path);) std::cout << headshare::reading(path).dump() << "\n";
}
