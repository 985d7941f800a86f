#include "headshare/base/files/input_paths.h"

#include <algorithm>

namespace headshare {
namespace {

// Returns a path that leads to the input; standard input may be a file, too.
fs::path path_of(const std::string& input) { return input == "-" ? "/dev/stdin" : input; }

bool are_same(const fs::path& one, const fs::path& other) {
  std::error_code code;
  return fs::equivalent(one, other, code) && !code;
}

bool has_entry(const fs::path& directory, const fs::path& file) {
  std::error_code code;
  const fs::directory_iterator entries(directory, code);
  return !code && std::any_of(begin(entries), end(entries),
                              [&](const fs::directory_entry& entry) { return are_same(entry.path(), file); });
}

}  // namespace

bool reads_file(const InputPaths& inputs, const fs::path& file) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const std::string& input) {
    std::error_code code;
    const fs::path path = path_of(input);
    return are_same(path, file) || (fs::is_directory(path, code) && has_entry(path, file));
  });
}

bool reads_within(const InputPaths& inputs, const fs::path& directory) {
  std::error_code code;
  const fs::path outer = fs::canonical(directory, code);
  if (code) return false;
  return std::any_of(inputs.begin(), inputs.end(), [&](const std::string& input) {
    const fs::path inner = fs::canonical(path_of(input), code);
    return !code && std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
  });
}

}  // namespace headshare
