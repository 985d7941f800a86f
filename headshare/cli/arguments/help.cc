// This file prints --help and --help-all.
#include <algorithm>
#include <string>

#include "headshare/base/files/placeholder.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/arguments/args.h"
#include "headshare/cli/terminal/terminal.h"

namespace headshare {
namespace {

constexpr int kNameColumns = 26;

std::string placeholder(const Field& field, const nlohmann::json& value) {
  if (field.is_switch) return "";
  const std::string named = placeholder_of(field);
  if (!named.empty()) return " " + named + (value.is_array() ? ",..." : "");
  if (value.is_array()) return " A,B";
  if (value.is_number_integer()) return " N";
  if (value.is_number()) return " X";
  if (field.range.find('|') != std::string::npos) return " NAME";
  return field.range.starts_with("auto") ? " N" : " TEXT";
}

std::string default_text(const nlohmann::json& value) {
  if (value.is_array()) {
    std::string joined;
    for (const nlohmann::json& item : value) {
      joined += (joined.empty() ? "" : ",") + (item.is_string() ? item.get<std::string>() : item.dump());
    }
    return joined;
  }
  if (value == false) return "";  // what a switch is without being given
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (value.is_number_float() && text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

// Writes a long list of choices with blanks, so that it can be wrapped.
std::string range_text(const Field& field) {
  constexpr size_t kLong = 50;
  if (field.range.size() < kLong) return field.range;
  std::string range;
  for (const char c : field.range) range += c == '|' ? std::string(" | ") : std::string(1, c);
  return range;
}

// Returns "help (range; default 4; also --n-layer)".
std::string description(const Field& field, const nlohmann::json& value) {
  const bool told = field.is_switch || value.is_array() || !placeholder_of(field).empty();
  std::string facts = told ? "" : range_text(field);
  const auto add = [&facts](const std::string& fact) { facts += (facts.empty() ? "" : "; ") + fact; };
  if (const std::string preset = default_text(value); !preset.empty()) add("default " + preset);
  std::string also;
  for (const std::string& alias : field.aliases) also += (also.empty() ? "also --" : ", --") + alias;
  if (!also.empty()) add(also);
  return facts.empty() ? field.help : field.help + " (" + facts + ")";
}

std::string entry(const std::string& name, const std::string& text, int width) {
  const int used = display_width(name) + 2;
  std::string out = "  " + name;
  if (used + 2 > kNameColumns) {
    out += "\n" + std::string(kNameColumns, ' ');
  } else {
    out += std::string(static_cast<size_t>(kNameColumns - used), ' ');
  }
  return out + wrap(text, width, kNameColumns) + "\n";
}

std::string usage_line(const HelpPage& page) {
  std::string usage = "Usage: headshare " + page.verb;
  for (const Positional& one : page.positionals) {
    usage += (one.required ? " " + one.name : " [" + one.name + "]") + (one.all != nullptr ? "..." : "");
  }
  return usage + " [options]";
}

std::string option_name(const OptionGroup& group, size_t i) {
  const Field& field = group.fields[i];
  const std::string name = field.is_switch && group.defaults[i] == true ? "[no-]" + field.name : field.name;
  return "--" + name + placeholder(field, group.defaults[i]);
}

std::string heading(const std::string& text) { return "\n" + bold(text, Stream::kOut) + "\n"; }

std::string opening(const HelpPage& page, int width) {
  std::string text = wrap(usage_line(page), width, 0) + "\n\n" + wrap(page.summary, width, 0) + "\n";
  if (!page.positionals.empty()) text += "\n";
  for (const Positional& one : page.positionals) text += entry(one.name, one.help, width);
  return text;
}

// Returns a command that can be copied: a long one goes on behind a backslash.
std::string command_lines(const std::string& command, int width) {
  const auto room = static_cast<size_t>(std::max(width - 4, 1));
  std::string text = "  ";
  std::string rest = command;
  while (rest.size() > room) {
    const size_t end = rest.rfind(" --", room);
    if (end == std::string::npos || end == 0) break;
    text += rest.substr(0, end) + " \\\n    ";
    rest.erase(0, end + 1);
  }
  return text + rest + "\n";
}

std::string examples_text(const HelpPage& page, int width) {
  std::string text = page.examples.empty() ? "" : heading("Examples");
  for (const Example& one : page.examples) {
    text += "  " + wrap("# " + one.purpose, width, 2) + "\n" + command_lines("headshare " + one.command, width);
  }
  return text;
}

// Says what an option does, without the details: those, ranges and other names are --help-all's.
std::string gist(const std::string& help) {
  const size_t end = std::min(help.find(". "), help.find("; "));
  return help.substr(0, end);
}

std::string common_options(const HelpPage& page, int width) {
  std::string text;
  for (const std::string& name : page.common) {
    for (const OptionGroup& group : page.groups) {
      for (size_t i = 0; i < group.fields.size(); ++i) {
        if (group.fields[i].name != name) continue;
        const std::string preset = default_text(group.defaults[i]);
        const std::string help = gist(group.fields[i].help);
        text += entry(option_name(group, i), preset.empty() ? help : help + " (default " + preset + ")", width);
      }
    }
  }
  return text;
}

std::string group_options(const OptionGroup& group, int width) {
  std::string text = heading(group.heading);
  for (size_t i = 0; i < group.fields.size(); ++i) {
    text += entry(option_name(group, i), description(group.fields[i], group.defaults[i]), width);
  }
  return text;
}

std::string all_options(const HelpPage& page, int width) {
  std::string text;
  for (const OptionGroup& group : page.groups) text += group_options(group, width);
  text += heading("Always");
  text += entry("--config FILE.yaml", "read options from YAML, `name: value`; flags override it", width);
  if (!page.common.empty()) text += entry("--help", "the common options", width);
  text += entry(page.common.empty() ? "--help" : "--help-all", "this text", width);
  return text + (page.groups.size() > 1 ? entry("--help-all GROUP", "one group of options: Computing", width) : "");
}

std::vector<std::string> group_names(const HelpPage& page) {
  std::vector<std::string> names;
  for (const OptionGroup& group : page.groups) names.push_back(group_name(group.heading));
  return names;
}

}  // namespace

std::string full_help_text(const HelpPage& page, int width) {
  std::string text = opening(page, width) + all_options(page, width) + examples_text(page, width) + "\n";
  for (const std::string& paragraph : page.notes) text += wrap(paragraph, width, 0) + "\n\n";
  return text + wrap("Names may be written with - or _. Switches: --name, --no-name, --name=false.", width, 0) + "\n";
}

std::string group_help_text(const HelpPage& page, const std::string& group, int width) {
  const std::string wanted = group_name(group);
  std::string text;
  for (const OptionGroup& one : page.groups) {
    if (group_name(one.heading) == wanted) return group_options(one, width).substr(1);
    if (group_name(one.heading).starts_with(wanted)) text += group_options(one, width);
  }
  const std::vector<std::string> names = group_names(page);
  if (text.empty()) {
    throw UsageError(join_text(page.verb, " has no group of options '", group, "'", did_you_mean(wanted, names),
                               "; its groups are ", list_text(names)));
  }
  return text.substr(1);
}

std::string help_text(const HelpPage& page, int width) {
  if (page.common.empty()) return full_help_text(page, width);
  size_t options = 0;
  for (const OptionGroup& group : page.groups) options += group.fields.size();
  return opening(page, width) + heading("Common options") + common_options(page, width) + examples_text(page, width) +
         "\n" +
         wrap(join_text("`headshare ", page.verb, " --help-all` shows all ", options,
                        " options, `--help-all GROUP` a group."),
              width, 0) +
         "\n";
}

}  // namespace headshare
