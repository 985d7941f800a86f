// Options as YAML: `name: value` lines, at will under one level of groups named like the headings of
// --help. Written by the program too, so that a run can be repeated.
#pragma once

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

// Every option with its help and range as a comment and its present value, under its group.
std::string settings_text(const std::string& title, const std::vector<OptionGroup>& groups);

}  // namespace headshare
