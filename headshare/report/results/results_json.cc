#include "headshare/report/results/results_json.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_reader.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/strings/base64.h"
#include "headshare/report/results/check_results.h"

namespace headshare {
namespace {

constexpr const char* kFormat = "headshare comparison";
constexpr uint64_t kMostBytes = uint64_t{1} << 30;

constexpr const char* kHigher = "higher is better";
constexpr const char* kTokens = "tokens";  // the unit of files that name none
constexpr const char* kLower = "lower is better";

nlohmann::ordered_json to_json(const Subject& s) {
  nlohmann::ordered_json object = {{"name", s.name},
                                   {"sentence", s.sentence},
                                   {"data", s.data},
                                   {"measure", s.measure},
                                   {"direction", s.direction == Direction::kHigherIsBetter ? kHigher : kLower},
                                   {"block", s.block},
                                   {"has_test_part", s.has_test_part},
                                   {"chance", s.chance ? nlohmann::ordered_json(*s.chance) : nlohmann::ordered_json()},
                                   {"full_scale", s.full_scale}};
  if (!s.tasks.empty()) object["tasks"] = s.tasks;
  for (const std::optional<double>& chance : s.task_chances) {
    object["task_chances"].push_back(chance ? nlohmann::ordered_json(*chance) : nlohmann::ordered_json());
  }
  if (s.unknown_share > 0) object["unknown_share"] = s.unknown_share;
  if (!s.fingerprint.empty()) object["fingerprint"] = s.fingerprint;
  if (!s.encoders.empty()) object["encoders"] = s.encoders;
  if (s.unit != kTokens) object["unit"] = s.unit;
  for (const WrittenExample& one : s.examples) {
    object["examples"].push_back({{"item", one.item}, {"input", one.input}, {"reference", one.reference}});
    if (!one.image.empty()) object["examples"].back()["image"] = one.image;
  }
  return object;
}

std::vector<std::optional<double>> task_chances_from_json(const JsonReader& read) {
  if (!read.has("task_chances")) return {};
  return read.list("task_chances", [](const nlohmann::json& value, const std::string& where) -> std::optional<double> {
    if (value.is_null()) return std::nullopt;
    HS_CHECK(value.is_number(), where, " is neither a number nor null");
    return value.get<double>();
  });
}

// Returns the picture, which stands in pages as it is. Throws Error for what is no PNG file in base64.
std::string checked_png(std::string image, const std::string& where) {
  HS_CHECK(from_base64(image, where).starts_with("\x89PNG\r\n"), where, " is no PNG image");
  return image;
}

WrittenExample example_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  return {.item = read.integer("item", 0),
          .input = read.text("input"),
          .reference = read.text("reference"),
          .image = read.has("image") ? checked_png(read.text("image"), read.name("image")) : ""};
}

Subject subject_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  const std::string direction = read.text("direction");
  HS_CHECK(direction == kHigher || direction == kLower, read.name("direction"), " must be \"", kHigher, "\" or \"",
           kLower, "\", not \"", direction, "\"");
  return {.name = read.text("name"),
          .sentence = read.text("sentence"),
          .data = read.text("data"),
          .measure = read.text("measure"),
          .direction = direction == kHigher ? Direction::kHigherIsBetter : Direction::kLowerIsBetter,
          .block = read.text("block"),
          .has_test_part = read.flag("has_test_part"),
          .chance = read.optional_number("chance"),
          .full_scale = read.has("full_scale") ? read.number_from("full_scale", 1) : 1,
          .tasks = read.has("tasks") ? read.texts("tasks") : std::vector<std::string>(),
          .task_chances = task_chances_from_json(read),
          .unknown_share = read.has("unknown_share") ? read.number_from("unknown_share", 0) : 0,
          .fingerprint = read.has("fingerprint") ? read.text("fingerprint") : "",
          .examples = read.has("examples") ? read.list("examples", example_from_json) : std::vector<WrittenExample>(),
          .encoders = read.has("encoders") ? read.text("encoders") : "",
          .unit = read.has("unit") ? read.text("unit") : kTokens};
}

std::vector<int64_t> looks_from_json(const nlohmann::json& list, const std::string& where) {
  constexpr size_t kMostLooks = 1000;
  HS_CHECK(list.is_array() && list.size() <= kMostLooks, where, ": \"looks\" is not a list of numbers of seeds");
  std::vector<int64_t> looks;
  for (const nlohmann::json& seeds : list) {
    HS_CHECK(seeds.is_number_integer() && seeds.get<int64_t>() > (looks.empty() ? 0 : looks.back()), where,
             ": \"looks\" is not a list of growing numbers of seeds: ", list.dump());
    looks.push_back(seeds.get<int64_t>());
  }
  return looks;
}

FailedCell failed_from_json(const nlohmann::json& object, const std::string& where) {
  return {.key = key_from_json(object, where), .reason = JsonReader(object, where).text("reason")};
}

void check_version(const JsonReader& read, const std::string& where) {
  HS_CHECK(read.text("format") == kFormat, where, ": \"format\" is not \"", kFormat, "\": not a file of headshare");
  const int64_t version = read.integer("format_version");
  HS_CHECK(version >= kOldestResultsFormat, where, " was written by an earlier headshare (format version ", version,
           ", not ", kResultsFormatVersion, "): run the comparison again");
  HS_CHECK(version <= kResultsFormatVersion, where, " was written by a newer headshare (format version ", version,
           ", not ", kResultsFormatVersion, "): use that one");
}

Variant variant_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  return {.name = read.text("name"), .scheme = read.text("scheme"), .options = read.object("options")};
}

nlohmann::ordered_json to_json(const Variant& v) {
  return {{"name", v.name}, {"scheme", v.scheme}, {"options", v.options}};
}

}  // namespace

nlohmann::ordered_json to_json(const Results& results) {
  nlohmann::ordered_json object = {{"format", kFormat},
                                   {"format_version", kResultsFormatVersion},
                                   {"subject", to_json(results.subject)},
                                   {"match", results.match},
                                   {"command", results.command},
                                   {"complete", is_complete(results)}};
  object["reference"] = results.references.quality;
  object["peop_reference"] = results.references.peop;
  if (!results.looks.empty()) object["looks"] = results.looks;
  for (const char* list : {"variants", "planned", "failed", "cells"}) object[list] = nlohmann::ordered_json::array();
  object["environment"] = results.environment;
  object["options"] = results.options;
  for (const std::string& name : variant_names(results)) {
    object["variants"].push_back(to_json(variant_of(results, name)));
  }
  for (const CellKey& key : results.planned) object["planned"].push_back(to_json(key));
  for (const FailedCell& cell : results.failed) {
    object["failed"].push_back(to_json(cell.key));
    object["failed"].back()["reason"] = cell.reason;
  }
  for (const Cell& cell : results.cells) object["cells"].push_back(to_json(cell));
  return object;
}

std::string to_text(const nlohmann::ordered_json& object) {
  // Command lines and messages of the system need not be UTF-8.
  return json_text(object, 1) + "\n";
}

Results results_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  check_version(read, where);
  Results results{.subject = subject_from_json(read.object("subject"), where + ": subject"),
                  .match = read.text("match"),
                  .command = read.text("command"),
                  .environment = read.object("environment"),
                  .options = read.object("options"),
                  .planned = read.list("planned", key_from_json),
                  .cells = read.list("cells", cell_from_json),
                  .failed = read.list("failed", failed_from_json)};
  if (read.has("variants")) {  // else format 2
    results.variants = read.list("variants", variant_from_json);
    results.references = {.quality = read.text("reference"), .peop = read.text("peop_reference")};
  }
  if (read.has("looks")) results.looks = looks_from_json(object["looks"], where);
  check_results(results, where);
  return results;
}

Results read_results(const fs::path& file, const std::string& advice) {
  return results_from_json(read_json_file(file, kMostBytes, advice), file.string());
}

}  // namespace headshare
