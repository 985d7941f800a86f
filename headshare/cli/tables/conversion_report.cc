#include "headshare/cli/tables/conversion_report.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/terminal/table.h"
#include "headshare/cli/terminal/terminal.h"

namespace headshare {
namespace {

std::string share(double value) { return percent_text(value, 2); }

std::string table_of(const CollaborativeHeadsReport& report) {
  std::vector<Column> columns = {{"layer", Align::kLeft}, {"key width"}, {"of"},
                                 {"error at start"},      {"error"},     {"iterations"}};
  const bool sampled = report.layers.front().output_change >= 0;
  if (sampled) columns.push_back({"change of output"});
  columns.push_back({"seconds"});
  TextTable table(columns);
  for (const LayerReport& layer : report.layers) {
    std::vector<std::string> cells = {layer.layer,
                                      std::to_string(layer.key_width),
                                      std::to_string(layer.full_width),
                                      share(layer.errors.front()),
                                      share(layer.error),
                                      std::to_string(layer.errors.size() - 1)};
    if (sampled) cells.push_back(share(layer.output_change));
    cells.push_back(format_fixed(layer.seconds, 1));
    table.add(cells);
  }
  return table.text(terminal_width(Stream::kOut));
}

std::string change_text(const AnswerChange& change) {
  std::string text;
  if (change.hidden >= 0) text += "last hidden states on the sample: changed by " + share(change.hidden) + "\n";
  if (change.divergence >= 0) {
    text += "answers on the sample: " + format_fixed(change.divergence, 4) +
            " nats from the original's (Kullback-Leibler divergence)\n";
  }
  if (change.loss_before >= 0) {
    text += join_text("loss on the sample: ", format_fixed(change.loss_before, 4), " nats per token before, ",
                      format_fixed(change.loss_after, 4), " after\n");
  }
  return text;
}

std::string sizes_text(const ModelSize& before, const ModelSize& after) {
  const auto line = [](const std::string& what, int64_t from, int64_t to) {
    return join_text(what, ": ", from, " before, ", to, " after (",
                     share(static_cast<double>(to) / static_cast<double>(from)), ")\n");
  };
  std::string text = line("parameters", before.total_parameters, after.total_parameters) +
                     line("of them in attention", before.attention_parameters, after.attention_parameters);
  if (before.cache_bytes_per_token > 0) {
    text += line("cache bytes per token", before.cache_bytes_per_token, after.cache_bytes_per_token);
  }
  return text;
}

nlohmann::ordered_json optional_number(double value) {
  return value < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
}

nlohmann::ordered_json layers_of(const CollaborativeHeadsReport& report) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerReport& layer : report.layers) {
    layers.push_back({{"layer", layer.layer},
                      {"key_width", layer.key_width},
                      {"full_width", layer.full_width},
                      {"error", layer.error},
                      {"errors", layer.errors},
                      {"output_change", optional_number(layer.output_change)},
                      {"seconds", layer.seconds}});
  }
  return layers;
}

// Adds "12.30%" of scores and "4.50%" of values, in two cells.
void add_error(const SharedError& error, std::vector<std::string>* cells) {
  cells->push_back(share(error.scores));
  cells->push_back(share(error.values));
}

// Writes heads as people count them: "1 5, 2 3 4".
std::string groups_text(const std::vector<std::vector<int64_t>>& groups) {
  std::string text;
  for (const std::vector<int64_t>& group : groups) {
    if (!text.empty()) text += ", ";
    for (size_t i = 0; i < group.size(); ++i) text += join_text(i == 0 ? "" : " ", group[i] + 1);
  }
  return text;
}

std::string table_of(const SharedHeadsReport& report) {
  const SharedResult& first = report.layers.front().result;
  const bool sized = std::any_of(report.layers.begin(), report.layers.end(),
                                 [&](const SharedLayerReport& one) { return one.size != report.layers.front().size; });
  std::vector<Column> columns = {{"layer", Align::kLeft}};
  if (sized) columns.push_back({"size"});
  columns.insert(columns.end(), {{"error of scores"}, {"of values"}});
  if (first.aligned_mean) columns.insert(columns.end(), {{"aligned means"}, {"of values"}});
  if (first.plain_mean) columns.insert(columns.end(), {{"plain means"}, {"of values"}});
  const bool sampled = report.layers.front().output_change >= 0;
  if (sampled) columns.push_back({"change of output"});
  TextTable table(columns);
  std::string groups;
  for (const SharedLayerReport& layer : report.layers) {
    std::vector<std::string> cells = {layer.layer};
    if (sized) cells.push_back(std::to_string(*layer.size));
    add_error(layer.result.error, &cells);
    if (layer.result.aligned_mean) add_error(*layer.result.aligned_mean, &cells);
    if (layer.result.plain_mean) add_error(*layer.result.plain_mean, &cells);
    if (sampled) cells.push_back(share(layer.output_change));
    table.add(cells);
    if (!layer.result.groups.empty()) {
      groups += layer.layer + ", heads that share: " + groups_text(layer.result.groups) + "\n";
    }
  }
  return table.text(terminal_width(Stream::kOut)) + groups;
}

nlohmann::ordered_json error_json(const std::optional<SharedError>& error) {
  if (!error) return {};
  return {{"scores", error->scores}, {"values", error->values}};
}

nlohmann::ordered_json layers_of(const SharedHeadsReport& report) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const SharedLayerReport& layer : report.layers) {
    layers.push_back({{"layer", layer.layer},
                      {"error", error_json(layer.result.error)},
                      {"plain_mean", error_json(layer.result.plain_mean)},
                      {"aligned_mean", error_json(layer.result.aligned_mean)},
                      {"groups", layer.result.groups},
                      {"size", layer.size ? nlohmann::ordered_json(*layer.size) : nlohmann::ordered_json()},
                      {"output_change", optional_number(layer.output_change)},
                      {"seconds", layer.seconds}});
  }
  return layers;
}

template <class Report>
ConversionReport present_any(const Report& report) {
  return {table_of(report), layers_of(report), report.change, report.stopped};
}

// Returns "perplexity on the scored text: 24.7 before, 31.2 after", a line for each score that `evaluate` gives. Models
// that read images have an accuracy.
std::string scores_text(const ScoredConversion& scored) {
  static const std::vector<std::pair<std::string, std::string>> kScores = {{"loss", "loss"},
                                                                           {"masked_lm_loss", "masked-LM loss"},
                                                                           {"perplexity", "perplexity"},
                                                                           {"masked_perplexity", "masked perplexity"},
                                                                           {"accuracy", "accuracy"}};
  const std::string where = scored.before.contains("accuracy") ? " on the scored images: " : " on the scored text: ";
  std::string text;
  for (const auto& [name, words] : kScores) {
    if (!scored.before.contains(name)) continue;
    const auto number = [&name = name](const nlohmann::ordered_json& object) {
      return object.contains(name) ? format_fixed(object[name].get<double>(), 4) : std::string("not scored");
    };
    text += join_text(words, where, number(scored.before), " before, ", number(scored.after), " after\n");
  }
  return text;
}

nlohmann::ordered_json report_json(const ConversionReport& report, const ScoredConversion& scored,
                                   const ModelSize& before, const ModelSize& after) {
  const auto sizes = [](const ModelSize& size) {
    return nlohmann::ordered_json{{"parameters", size.total_parameters},
                                  {"attention_parameters", size.attention_parameters},
                                  {"cache_bytes_per_token", size.cache_bytes_per_token}};
  };
  return {{"layers", report.layers},
          {"stopped", report.stopped},
          {"before", sizes(before)},
          {"after", sizes(after)},
          {"hidden_change", optional_number(report.change.hidden)},
          {"divergence", optional_number(report.change.divergence)},
          {"loss_before", optional_number(report.change.loss_before)},
          {"loss_after", optional_number(report.change.loss_after)},
          {"scores_before", scored.before},
          {"scores_after", scored.after}};
}

}  // namespace

ConversionReport present(const CollaborativeHeadsReport& report) { return present_any(report); }
ConversionReport present(const SharedHeadsReport& report) { return present_any(report); }

void print_conversion(const ConversionReport& report, const ScoredConversion& scored, const ModelSize& before,
                      const ModelSize& after, const std::string& out, bool json) {
  print_result(
      json, [&] { return json_text(report_json(report, scored, before, after), 2) + "\n"; },
      [&] {
        print(report.table + "\n" + sizes_text(before, after) + change_text(report.change) + scores_text(scored) +
              "written to " + out + "\n");
      });
}

}  // namespace headshare
