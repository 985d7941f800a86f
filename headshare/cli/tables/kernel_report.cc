#include "headshare/cli/tables/kernel_report.h"

#include "headshare/base/error.h"
#include "headshare/base/memory.h"
#include "headshare/cli/terminal/terminal.h"

namespace headshare {
namespace {

struct Situation {
  std::string name;
  int64_t queries;
  int64_t keys;
  bool training;
};

// This is a place where a model attends.
struct Place {
  std::string name;  // the beginning of a situation's name; "" where there is one place alone
  AttentionOptions attention;
  bool causal;
  bool decodes;  // one query after the other
};

std::vector<Place> places_of(const ModelOptions& model) {
  if (const auto* translator = model.find<EncoderDecoderOptions>()) {
    const AttentionSites& sites = *translator->sites;
    return {{"encoder: ", sites.encoder, false, false},
            {"decoder: ", sites.decoder, true, true},
            {"cross-attention: ", sites.cross, false, true}};
  }
  const bool causal = model.kind().is_causal();
  const AttentionOptions& attention = model.common().attention;
  if (!model.common().global_every) return {{"", attention, causal, causal}};
  AttentionOptions global = attention;
  global.window.reset();
  return {{"local layers: ", attention, causal, causal}, {"global layers: ", global, causal, causal}};
}

std::vector<Situation> situations(const KernelOptions& options, int64_t context, bool decodes) {
  const int64_t keys = options.keys.value_or(context);
  if (options.queries) return {{"as asked", *options.queries, keys, options.training}};
  std::vector<Situation> usual = {{"training", keys, keys, true}, {"scoring", keys, keys, false}};
  if (decodes) usual.push_back({"decoding", 1, keys, false});
  return usual;
}

}  // namespace

Fields fields(KernelOptions& o) {
  return {
      field("batch-size", &o.batch_size, "sequences", {.min = 1, .max = 1 << 20}),
      field("queries", &o.queries, "queries per sequence; auto: training, scoring and decoding one by one",
            {.min = 1, .max = 1 << 24}),
      field("keys", &o.keys, "keys per sequence; auto: the model's context", {.min = 1, .max = 1 << 24}),
      field("causal", &o.causal, "a query sees no later key"),
      field("padding", &o.padding, "some keys are hidden by a padding mask"),
      field("training", &o.training, "with --queries: gradients are wanted, and attention dropout counts"),
      field("precision", &o.precision, "what matrix products and attention compute in", attention_precision_names()),
  };
}

std::vector<KernelRow> kernel_rows(const KernelOptions& options, const ModelOptions& model, c10::Device device) {
  std::vector<KernelRow> rows;
  for (const Place& place : places_of(model)) {
    for (const Situation& one : situations(options, model.common().context, place.decodes)) {
      const AttentionSituation asked = {.batch = options.batch_size,
                                        .queries = one.queries,
                                        .keys = one.keys,
                                        .causal = options.causal && place.causal,
                                        .padding = options.padding,
                                        .training = one.training,
                                        .precision = options.precision};
      const double tokens = static_cast<double>(asked.batch) * static_cast<double>(asked.queries + asked.keys);
      const double widths = 4.0 * static_cast<double>(place.attention.d_model + 2 * *place.attention.key_width);
      check_memory(4 * tokens * widths, "posing the problem", "use a smaller --batch-size or --keys");
      rows.push_back({.name = place.name + one.name,
                      .situation = asked,
                      .dropout = one.training ? place.attention.attention_dropout : 0,
                      .choice = kernel_choice(place.attention, asked, device)});
    }
  }
  return rows;
}

nlohmann::ordered_json kernel_report(const std::vector<KernelRow>& rows) {
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  for (const KernelRow& row : rows) {
    const AttentionSituation& of = row.situation;
    nlohmann::ordered_json object = {{"situation", row.name},
                                     {"batch_size", of.batch},
                                     {"queries", of.queries},
                                     {"keys", of.keys},
                                     {"causal", of.causal},
                                     {"padding", of.padding},
                                     {"precision", precision_name(of.precision)},
                                     {"dropout", row.dropout},
                                     {"backend", row.choice.backend}};
    if (row.choice.fused) object["fused"] = *row.choice.fused;
    object["products"] = precision_name(row.choice.products);
    object["refused"] = nlohmann::ordered_json::array();
    for (const BackendChoice::Refused& refused : row.choice.refused) {
      object["refused"].push_back({{"backend", refused.backend}, {"reasons", refused.reasons}});
    }
    report.push_back(std::move(object));
  }
  return report;
}

namespace {

// Returns "training (batch 8, 256 queries, 256 keys, causal, dropout 0.1, fp32)".
std::string problem_text(const KernelRow& row) {
  const AttentionSituation& of = row.situation;
  std::string text = join_text(row.name, " (batch ", of.batch, ", ", of.queries, " queries, ", of.keys, " keys");
  if (of.causal) text += ", causal";
  if (of.padding) text += ", padded";
  if (row.dropout != 0) text += ", dropout " + nlohmann::json(row.dropout).dump();
  return text + ", " + precision_name(of.precision) + ")";
}

}  // namespace

std::string kernel_text(const std::vector<KernelRow>& rows, int width) {
  std::string text;
  for (const KernelRow& row : rows) {
    const BackendChoice& choice = row.choice;
    std::string line = join_text(problem_text(row), ": ", choice.backend);
    if (choice.fused) line += *choice.fused ? ", fused" : ", in its plain form";
    if (choice.products != row.situation.precision) line += ", products in " + precision_name(choice.products);
    text += wrap(line, width, 2) + "\n";
    for (const BackendChoice::Refused& refused : choice.refused) {
      std::string reasons;
      for (const std::string& reason : refused.reasons) reasons += (reasons.empty() ? "" : "; ") + reason;
      if (reasons.empty()) reasons = "HEADSHARE_BACKEND asks for another";
      text += "    not " + wrap(join_text(refused.backend, ": ", reasons), width, 8) + "\n";
    }
  }
  return text;
}

}  // namespace headshare
