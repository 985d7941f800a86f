// Settings files hold options as YAML: `name: value` lines, which may stand under one level of groups named like the
// headings of --help. Programs write them too, so that a run can be repeated.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/host/option_groups.h"
#include "headshare/host/usage_error.h"

namespace headshare {

// A GivenOption is one that somebody set.
struct GivenOption {
  std::string name;  // the field's own
  std::string text;  // as Field::parse reads it; a list as comma-separated text
};

// A file of settings, read once.
class SettingsFile {
 public:
  // Throws UsageError for a file that cannot be read.
  explicit SettingsFile(fs::path path);
  // Takes the text that another process has read from the file.
  SettingsFile(fs::path path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  const fs::path& path() const { return path_; }
  const std::string& text() const { return text_; }

  // The verb that the first line names, whoever wrote the rest; "" where it names none.
  std::string titled_verb() const;

  // The verb that wrote this file, with every option that it has; "" for a file of a person.
  std::string writer() const;

  // These tell whether a file that write_settings() wrote is whole: how many options it says that it has (nothing: it
  // is of a version that did not count them), and whether its last line ends.
  std::optional<size_t> promised_options() const;
  bool last_line_ends() const { return text_.ends_with('\n'); }

  // Sets the options that the file sets, and returns them in the order of the file. Throws UsageError, naming file and
  // line, for text that is not YAML of this form, unknown names and groups, names that are set twice, values that an
  // option does not take and, in a person's file, empty names of files and models.
  std::vector<GivenOption> set(OptionGroups& groups) const;

 private:
  fs::path path_;
  std::string text_;
};

// Writes every option of `verb` with its help and range as a comment and its present value, under its group. Comments
// at the top say how to call the verb with the file, and how many options there are.
void write_settings(const fs::path& path, const std::string& verb, const OptionGroups& groups);

}  // namespace headshare
