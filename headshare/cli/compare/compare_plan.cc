#include "headshare/cli/compare/compare_plan.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/compare/command_line_host.h"
#include "headshare/cli/terminal/table.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/compare/comparison_home.h"
#include "headshare/compare/method.h"
#include "headshare/host/runtime_options.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

std::string outline_text(const Outline& outline) {
  const int width = terminal_width(Stream::kOut);
  std::vector<Column> columns = {{.heading = outline.heading, .align = Align::kLeft},
                                 {.heading = "attention parameters"},
                                 {.heading = "total parameters"}};
  if (outline.caches) columns.push_back({.heading = "cache B/token"});
  TextTable table(columns);
  for (const Outline::Model& one : outline.models) {
    if (!one.left_out.empty()) {
      table.add_spanning(one.name, "left out: " + one.left_out);
      continue;
    }
    const ModelSize size = measure(one.options);
    std::vector<std::string> cells = {one.name, format_count(static_cast<double>(size.attention_parameters)),
                                      format_count(static_cast<double>(size.total_parameters))};
    if (outline.caches) cells.push_back(format_count(static_cast<double>(size.cache_bytes_per_token)));
    table.add(cells);
  }
  return (outline.models.empty() ? "" : table.text(width) + "\n") + wrap(outline.sentence, width, 0) + "\n";
}

std::string all_models_text(const ComparisonOptions& options) {
  std::string text;
  for (const Outline& one : comparison_method(options).outlines(options)) text += outline_text(one);
  const std::string caveat = seeds_caveat(options);
  if (!caveat.empty()) text += wrap(caveat + ".", terminal_width(Stream::kOut), 0) + "\n";
  return text;
}

// Standard input is left to the comparison: it can be read only once.
bool has_data(const ComparisonOptions& options) {
  const std::vector<std::string>& texts = options.own<TextOptions>().data.text;
  const bool piped = std::find(texts.begin(), texts.end(), "-") != texts.end();
  return !piped && comparison_method(options).has_data(options);
}

Forecast forecast(const CompareCommand& command) {
  CommandLineHost host(command);
  const ComparisonCall call = command.call("");
  return with_several_at_once(comparison_method(command.comparison).forecast(call, host), call);
}

}  // namespace

std::string plan_text(const CompareCommand& command) {
  const ComparisonOptions& options = command.comparison;
  const std::string models = all_models_text(options);
  const int width = terminal_width(Stream::kOut);
  if (!has_data(options))
    return models + wrap("With --text FILE the plan says how long it will take.", width, 0) + "\n";
  const Forecast found = forecast(command);
  return models + wrap("Data: " + found.data, width, 6) + "\n" +
         wrap(join_text("Time: ", options.until_decided > 0 ? "up to " : "", time_text(found), " for ",
                        options.until_decided > 0 ? "up to " : "", plural(found.models, "model")),
              width, 6) +
         "\n";
}

nlohmann::json plan_json(const CompareCommand& command) {
  if (!has_data(command.comparison)) {
    throw UsageError("--dry-run --json says how long the comparison takes, which needs its --text");
  }
  const Forecast found = forecast(command);
  return {{"data", found.data}, {"models", found.models}, {"seconds", found.seconds}, {"threads", threads_in_use()}};
}

}  // namespace headshare
