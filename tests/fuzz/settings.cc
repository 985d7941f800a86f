// These targets read YAML configurations, and the values of options.
#include <array>
#include <optional>

#include "headshare/base/options/field.h"
#include "headshare/host/settings_file.h"
#include "tests/fuzz/driver.h"

namespace headshare::fuzz {
namespace {

// This struct has one option of each type.
struct Options {
  int64_t whole = 0;
  double number = 0;
  std::optional<int64_t> maybe;
  bool flag = false;
  std::string text;
  std::vector<std::string> texts;
  std::vector<int64_t> wholes;
  size_t choice = 0;

  Fields fields() {
    const auto set = [this](size_t value) { choice = value; };
    return {field("whole", &whole, "", {.min = 1, .max = 1 << 20}),
            field("number", &number, "", {.min = 0}),
            field("maybe", &maybe, ""),
            field("flag", &flag, ""),
            field("text", &text, ""),
            field("texts", &texts, ""),
            field("wholes", &wholes, ""),
            enum_field("choice", "", {"one", "two"}, set, [this] { return choice; }, {})};
  }
};

// Checks that what is read from a file is written and read again as the same.
void read_config(const fs::path& folder) {
  Options options;
  OptionGroups groups = {option_group("All", options.fields())};
  may_refuse([&] { SettingsFile(folder / "config.yaml").set(groups); });
  const auto replace = nlohmann::json::error_handler_t::replace;
  const std::string before = to_json(groups).dump(-1, ' ', false, replace);
  write_settings(folder / "again.yaml", "try", groups);
  Options read;
  OptionGroups again = {option_group("All", read.fields())};
  SettingsFile(folder / "again.yaml").set(again);
  if (to_json(again).dump(-1, ' ', false, replace) != before) throw std::logic_error("read back as something else");
}

void read_json_options(const fs::path& folder) {
  Options options;
  Fields fields = options.fields();
  from_json(fields, nlohmann::json::parse(read_file(folder / "options.json"), nullptr, false), "options.json");
}

}  // namespace

std::vector<Target> targets() {
  return {{.name = "config", .read = read_config}, {.name = "options", .read = read_json_options}};
}

}  // namespace headshare::fuzz
