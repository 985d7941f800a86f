// Settings files hold options as YAML: `name: value` lines, which may stand under one level of groups named like the
// headings of --help. Programs write them too, so that a run can be repeated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/base/file.h"
#include "headshare/host/option_groups.h"
#include "headshare/host/usage_error.h"

namespace headshare {

// A GivenOption is one that somebody set.
struct GivenOption {
  std::string name;  // the field's own
  std::string text;  // as Field::parse reads it; a list as comma-separated text
};

// Sets the options that a file sets, and returns them in the order of the file. Throws UsageError, naming file and
// line, for text that is not YAML of this form, unknown names and groups, names that are set twice, values that an
// option does not take and, in a person's file, empty names of files and models.
std::vector<GivenOption> read_settings(OptionGroups& groups, const fs::path& path);

// Writes every option of `verb` with its help and range as a comment and its present value, under its group. Comments
// at the top say how to call the verb with the file, and how many options there are.
void write_settings(const fs::path& path, const std::string& verb, const OptionGroups& groups);

// Returns the verb that wrote this file, with every option that it has; "" for a file of a person.
std::string writer_of(const fs::path& path);

// The count tells whether a file that write_settings() wrote is whole.
struct SettingsCount {
  std::optional<size_t> options;  // nothing: the version that wrote the file did not count them
  bool last_line_ends = false;
};
SettingsCount settings_count(const fs::path& path);

}  // namespace headshare
