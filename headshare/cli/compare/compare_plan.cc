#include "headshare/cli/compare/compare_plan.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/cli/compare/command_line_host.h"
#include "headshare/cli/terminal/table.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/compare/compare_trained.h"
#include "headshare/compare/compare_tuned.h"
#include "headshare/compare/comparison_home.h"
#include "headshare/compare/variants.h"
#include "headshare/host/runtime_options.h"
#include "headshare/report/statistics/wording.h"
#include "headshare/tasks/finetune/fine_tuning_options.h"

namespace headshare {
namespace {

std::string models_text(const ComparisonOptions& options) {
  const std::vector<Variant> variants = chosen_variants(options);
  TextTable table({{.heading = options.variants.empty() ? "scheme" : "variant", .align = Align::kLeft},
                   {.heading = "attention parameters"},
                   {.heading = "total parameters"},
                   {.heading = "cache B/token"}});
  for (const Variant& variant : variants) {
    const std::string reason = why_not(options, variant);
    if (!reason.empty()) {
      table.add_spanning(variant.name, "left out: " + reason);
      continue;
    }
    const ModelSize size = size_of(task_family(options.task).likely_model(with_variant(options, variant)));
    table.add({variant.name, format_count(static_cast<double>(size.attention_parameters)),
               format_count(static_cast<double>(size.total_parameters)),
               format_count(static_cast<double>(size.cache_bytes_per_token))});
  }
  std::string text =
      table.text(terminal_width(Stream::kOut)) +
      join_text("\n", options.train.steps, " steps each, ", plural(static_cast<size_t>(options.seeds), "seed"));
  const size_t settings = sweep_settings(options).size();
  if (settings > 1) text += join_text(", ", settings, " settings");
  return text + "\n";
}

// Describes what would be fine-tuned: below the sizes of the encoders, which are shown where these are there already.
std::string tuned_models_text(const ComparisonOptions& options) {
  std::string text;
  if (has_encoders(options)) {
    TextTable table({{.heading = "encoder", .align = Align::kLeft},
                     {.heading = "attention parameters"},
                     {.heading = "total parameters"}});
    for (const auto& [variant, model] : encoders_to_tune(options)) {
      const ModelSize size = size_of(model);
      table.add({variant, format_count(static_cast<double>(size.attention_parameters)),
                 format_count(static_cast<double>(size.total_parameters))});
    }
    text = table.text(terminal_width(Stream::kOut)) + "\n";
  }
  const FineTuningOptions& tuning = options.own<FineTuningOptions>();
  const std::string tuned =
      join_text("each fine-tuned on ", list_text(fine_tuning_jobs(options)), "; ", tuning.job.tuning.epochs,
                " epochs, ", plural(static_cast<size_t>(options.seeds), "seed"), ", ",
                plural(tuning.tuning.learning_rates.size(), "learning rate"));
  return text + wrap(tuned, terminal_width(Stream::kOut), 0) + "\n";
}

std::string all_models_text(const ComparisonOptions& options) {
  std::string text = fine_tunes(options) ? (has_encoders(options) ? "" : models_text(pre_training(options))) +
                                               tuned_models_text(options)
                                         : models_text(options);
  const std::string caveat = seeds_caveat(options);
  if (!caveat.empty()) text += wrap(caveat + ".", terminal_width(Stream::kOut), 0) + "\n";
  return text;
}

// Tells whether there is data to read. Sizes can be planned before there is a text. Standard input is left to the
// comparison: it can be read only once.
bool has_data(const ComparisonOptions& options) {
  const std::vector<std::string>& texts = options.language.data.text;
  if (std::find(texts.begin(), texts.end(), "-") != texts.end()) return false;
  if (fine_tunes(options) && has_encoders(options)) return true;
  return !task_family(options.task).learns_from_text() || !texts.empty();
}

Forecast forecast(const CompareCommand& command) {
  CommandLineHost host(command);
  const ComparisonCall call = command.call("");
  return fine_tunes(command.comparison) ? forecast_tuned(call, host) : forecast_trained(call, host);
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
