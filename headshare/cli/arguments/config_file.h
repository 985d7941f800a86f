// Options as YAML: `name: value` lines, at will under one level of groups named like the headings of
// --help. Written by the program too, so that a run can be repeated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/base/file.h"
#include "headshare/cli/arguments/args.h"

namespace headshare {

// One `name: value` of a file.
struct Setting {
  std::string group;  // "" at the top level
  std::string name;
  std::string text;   // as Field::parse reads it; a list as comma-separated text
  std::string where;  // "config.yaml:3"
};

// The settings of a file in their order. Throws UsageError, naming file and line, for text that is
// not YAML of this form. Whether the names exist is the caller's to check.
std::vector<Setting> read_settings(const fs::path& path);

// Every option with its help and range as a comment and its present value, under its group. A comment at the top says
// how many there are.
std::string settings_text(const std::string& title, const std::vector<OptionGroup>& groups);

// Tells whether a verb wrote this file, with every option that it has.
bool is_written_by_us(const fs::path& path);

// What tells whether a file that settings_text() wrote is whole.
struct SettingsCount {
  std::optional<size_t> options;  // nothing: of a version that did not count them
  bool last_line_ends = false;
};
SettingsCount settings_count(const fs::path& path);

}  // namespace headshare
