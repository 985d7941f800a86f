// What --help prints.
#include <string>

#include "headshare/cli/args.h"
#include "headshare/cli/terminal.h"

namespace headshare {
namespace {

constexpr int kNameColumns = 28;

std::string placeholder(const Field& field, const nlohmann::json& value) {
  if (field.is_switch) return "";
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

// A long list of choices with blanks, so that it can be wrapped.
std::string range_text(const Field& field) {
  constexpr size_t kLong = 50;
  if (field.range.size() < kLong) return field.range;
  std::string range;
  for (const char c : field.range) range += c == '|' ? std::string(" | ") : std::string(1, c);
  return range;
}

// "help (range; default 4; also --n-layer)"
std::string description(const Field& field, const nlohmann::json& value) {
  std::string facts = field.is_switch || value.is_array() ? "" : range_text(field);
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

}  // namespace

std::string help_text(const HelpPage& page, int width) {
  std::string text = wrap(usage_line(page), width, 0) + "\n\n" + wrap(page.summary, width, 0) + "\n";
  if (!page.positionals.empty()) text += "\n";
  for (const Positional& one : page.positionals) text += entry(one.name, one.help, width);
  for (const OptionGroup& group : page.groups) {
    text += "\n" + bold(group.heading, Stream::kOut) + "\n";
    for (size_t i = 0; i < group.fields.size(); ++i) {
      const Field& field = group.fields[i];
      const std::string name = field.is_switch && group.defaults[i] == true ? "[no-]" + field.name : field.name;
      text += entry("--" + name + placeholder(field, group.defaults[i]), description(field, group.defaults[i]), width);
    }
  }
  text += "\n" + bold("Always", Stream::kOut) + "\n";
  text += entry("--config FILE.yaml", "read options from YAML, `name: value`; flags override it", width);
  text += entry("--help", "this text", width);
  text += "\n";
  for (const std::string& paragraph : page.notes) text += wrap(paragraph, width, 0) + "\n\n";
  return text + wrap("Names may be written with - or _. Switches: --name, --no-name, --name=false.", width, 0) + "\n";
}

}  // namespace headshare
