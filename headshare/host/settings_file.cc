#include "headshare/host/settings_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "headshare/base/files/output_mark.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/options/canonical_name.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/number.h"
#include "headshare/base/strings/wrap.h"

namespace headshare {
namespace {

constexpr uint64_t kMostConfigBytes = 1 << 20;
constexpr int kCommentWidth = 100;
constexpr const char* kCountLead = "# options: ";  // the second line of a file that a verb wrote: "# options: 12"

// The first line of such a file.
std::string title(const std::string& verb) { return join_text(kTitleLead, verb, " --config ", kResolvedFile); }

// A Setting is one `name: value` of a file.
struct Setting {
  std::string group;  // "" at the top level
  std::string name;
  std::string text;   // as Field::parse reads it
  std::string where;  // "config.yaml:3"
};

std::string place(const fs::path& path, const YAML::Mark& mark) {
  return mark.is_null() ? path.string() : join_text(path.string(), ":", mark.line + 1);
}

// Tells whether YAML 1.1 and YAML 1.2 read a number differently: 010 is eight in one and ten in the other.
bool is_ambiguous(const YAML::Node& node) {
  if (node.Tag() != "?") return false;  // it is in quotes
  std::string_view digits = node.Scalar();
  if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
  return digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of("0123456789_") == std::string_view::npos;
}

std::string scalar(const YAML::Node& node, const std::string& where, const std::string& name) {
  if (!node.IsScalar()) {
    throw UsageError(
        join_text(where, ": ", brief_text(name), " ", node.IsNull() ? "has no value" : "takes plain values only"));
  }
  if (is_ambiguous(node)) {
    throw UsageError(join_text(where, ": '", name, "' is ", node.Scalar(),
                               ", which some programs read as octal; write a number without leading zeros, or text in "
                               "quotes"));
  }
  return node.Scalar();
}

std::string value_text(const YAML::Node& node, const std::string& where, const std::string& name) {
  if (!node.IsSequence()) return scalar(node, where, name);
  nlohmann::json items = nlohmann::json::array();
  for (const YAML::Node& item : node) items.push_back(scalar(item, where, name));
  return field_text(items, where);
}

void read_map(const YAML::Node& map, const std::string& group, const fs::path& path, std::vector<Setting>* settings) {
  for (const auto& entry : map) {
    const std::string where = place(path, entry.first.Mark());
    const std::string name = scalar(entry.first, where, "a name");
    if (group.empty() && entry.second.IsMap()) {
      read_map(entry.second, name, path, settings);
    } else {
      settings->push_back({group, name, value_text(entry.second, where, name), where});
    }
  }
}

// Tells whether text needs no quotes because YAML reads it back as itself.
bool is_plain(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
  };
  if (text == "null" || text == "Null" || text == "NULL") return false;  // YAML's words for no value
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0 &&
         std::all_of(text.begin(), text.end(), plain);
}

std::string yaml_value(const nlohmann::json& value) {
  if (value.is_string() && is_plain(value.get<std::string>())) return value.get<std::string>();
  // Every JSON value is YAML as well.
  return json_text(value);
}

std::string comment(const Field& field) {
  const std::string text = field.range.empty() ? field.help : join_text(field.help, " (", field.range, ")");
  std::istringstream lines(wrap(text, kCommentWidth - 4, 0));
  std::string out;
  for (std::string line; std::getline(lines, line);) out += "  # " + line + "\n";
  return out;
}

void check_group(const Setting& setting, const OptionGroups& groups) {
  if (setting.group.empty()) return;
  std::vector<std::string> known;
  for (const OptionGroup& group : groups) known.push_back(group_name(group.heading));
  if (std::find(known.begin(), known.end(), group_name(setting.group)) != known.end()) return;
  throw UsageError(join_text(setting.where, ": unknown group ", brief_text(setting.group), " around ",
                             brief_text(setting.name), did_you_mean(setting.group, known)));
}

// The settings of a file in their order, whether or not there are such options.
std::vector<Setting> settings_of(const fs::path& path, const std::string& text) {
  std::vector<Setting> settings;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) {
      throw UsageError(join_text(place(path, documents[1].Mark()),
                                 ": a second document begins (---); a configuration is one: take out the others"));
    }
    const YAML::Node root = documents.empty() ? YAML::Node() : documents.front();
    if (!root.IsMap() && !root.IsNull()) {
      throw UsageError(join_text(path.string(), ": a configuration is a list of `name: value` lines"));
    }
    read_map(root, "", path, &settings);
  } catch (const YAML::Exception& error) {
    throw UsageError(join_text(place(path, error.mark), ": not YAML: ", error.msg));
  }
  return settings;
}

}  // namespace

SettingsFile::SettingsFile(fs::path path)
    : path_(std::move(path)), text_(as_usage([&] { return read_file(path_, kMostConfigBytes); })) {}

std::string SettingsFile::titled_verb() const { return verb_of_title(text_); }

std::string SettingsFile::writer() const {
  std::istringstream lines(text_);
  std::string first, second;
  std::getline(lines, first);
  std::getline(lines, second);
  // Before they were counted, an empty line stood in place of the number of options.
  if (!second.empty() && !second.starts_with(kCountLead)) return "";
  const std::string verb = titled_verb();
  return first == title(verb) ? verb : "";
}

std::optional<size_t> SettingsFile::promised_options() const {
  const size_t lead = text_.find(join_text("\n", kCountLead));
  if (lead == std::string::npos) return std::nullopt;
  const size_t begin = lead + 1 + std::string_view(kCountLead).size();
  return number_in<size_t>(text_.substr(begin, text_.find('\n', begin) - begin));
}

std::vector<GivenOption> SettingsFile::set(OptionGroups& groups) const {
  std::vector<GivenOption> given;
  std::set<std::string> seen;
  const bool ours = !writer().empty();
  for (const Setting& setting : settings_of(path_, text_)) {
    check_group(setting, groups);
    Field* field = find_option(groups, setting.name);
    if (field == nullptr) {
      throw UsageError(join_text(setting.where, ": unknown option ", brief_text(setting.name),
                                 did_you_mean(canonical_name(setting.name), option_names(groups))));
    }
    if (!seen.insert(field->name).second) {
      throw UsageError(
          join_text(setting.where, ": ", brief_text(setting.name), " sets ", field->name, " a second time"));
    }
    try {
      if (!ours) refuse_empty(*field, setting.text);
      field->parse(setting.text);
    } catch (const Error& error) {
      throw UsageError(join_text(setting.where, ": ", error.what()));
    }
    given.push_back({field->name, setting.text});
  }
  return given;
}

void write_settings(const fs::path& path, const std::string& verb, const OptionGroups& groups) {
  std::string text = join_text(title(verb), "\n", kCountLead, count_options(groups), "\n");
  for (const OptionGroup& group : groups) {
    text += "\n" + group_name(group.heading) + ":\n";
    for (const Field& one : group.fields) {
      text += comment(one) + "  " + one.name + ": " + yaml_value(one.value()) + "\n";
    }
  }
  write_file(path, text);
}

}  // namespace headshare
