#include "headshare/cli/tables/cost_table.h"

#include <algorithm>

#include "headshare/attention/scheme_record.h"
#include "headshare/attention/schemes/gqa.h"
#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/tables/workers_table.h"
#include "headshare/cli/terminal/table.h"
#include "headshare/cli/terminal/terminal.h"

namespace headshare {
namespace {

void add_counts(const SchemeCost& cost, const CostOptions& options, nlohmann::ordered_json* to) {
  nlohmann::ordered_json& object = *to;
  const AttentionOptions& attention = cost.model.common().attention;
  object["head_width"] = *attention.head_width;
  object["groups"] = *attention.own.get<GqaOptions>().groups;
  object["key_width"] = *attention.key_width;
  object["attention_parameters"] = cost.size.attention_parameters;
  object["attention_parameters_effective"] = cost.size.attention_parameters_effective;
  object["embedding_parameters"] = cost.size.embedding_parameters;
  object["total_parameters"] = cost.size.total_parameters;
  if (options.model.kind().keeps_cache()) {
    object["kv_cache_elements_per_token"] = cost.size.cache_elements_per_token;
    object["kv_cache_bytes_per_token"] = cost.cache_bytes_per_token;
    if (cost.model.kind().reads_source()) object["source_cache_bytes_per_token"] = cost.source_cache_bytes_per_token;
    object["cache_type"] = element_name(options.cache_type);
  }
  object["weight_type"] = element_name(options.weight_type);
  object["weight_bytes"] = cost.size.total_parameters * element_bytes(options.weight_type);
  if (!options.memory_budget) return;
  object["memory_budget_bytes"] = *options.memory_budget;
  object["largest_batch"] = cost.largest_batch;
  object["longest_context"] = cost.longest_context;
  object["longest_context_batch"] = options.batch_size;
}

// "hash-proj"; "" of a model with a table of tokens.
std::string hashed_embedding(const ModelOptions& model) {
  const auto* encoder = model.find<EncoderOptions>();
  if (encoder == nullptr || !is_hashed(encoder->embedding)) return "";
  TokenEmbeddingOptions embedding = encoder->embedding;
  return to_json(fields(embedding)).at("token-embedding");
}

nlohmann::ordered_json to_object(const SchemeCost& cost, const CostOptions& options) {
  nlohmann::ordered_json object;
  const SchemeRecord& scheme = scheme_record(cost.scheme);
  object["scheme"] = scheme.name;
  if (!options.own_scheme.empty()) object["own"] = cost.scheme == options.own_scheme;
  object["shares"] = scheme.sentence;
  object["paper"] = scheme.paper;
  if (!scheme.weights_of.empty()) object["weights_of"] = scheme.weights_of;
  const TransformerOptions& model = cost.model.common();
  object["kind"] = cost.model.kind().name();
  object["layers"] = model.layers;
  const bool possible = cost.impossible.empty();  // else its model is not resolved
  if (const auto* translator = cost.model.find<EncoderDecoderOptions>(); translator != nullptr && possible) {
    object["decoder_layers"] = translator->decoder_layers.value_or(model.layers);
    object["encoder_scheme"] = translator->encoder_scheme;
    object["decoder_scheme"] = translator->decoder_scheme;
    object["cross_scheme"] = translator->cross_scheme;
    object["source_vocabulary"] = translator->source_vocabulary;
  }
  if (model.layer_groups) object["layer_groups"] = *model.layer_groups;
  if (model.share_kv_layers > 1) object["share_kv_layers"] = model.share_kv_layers;
  if (model.embedding_width) object["embedding_width"] = *model.embedding_width;
  object["d_model"] = model.attention.d_model;
  object["heads"] = model.attention.heads;
  const std::string hashed = possible ? hashed_embedding(cost.model) : "";
  if (!hashed.empty()) object["token_embedding"] = hashed;
  for (auto [name, value] : cost.model.kind().input_sizes(cost.model)) {
    std::replace(name.begin(), name.end(), '-', '_');
    if (name != "vocabulary" || hashed.empty()) object[name] = value;
  }
  if (cost.impossible.empty()) {
    add_counts(cost, options, &object);
    if (!options.workers.workers.empty()) add_workers(cost, options.workers, &object);
  } else {
    object["impossible"] = cost.impossible;
  }
  return object;
}

std::string exact(int64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// "decoder-layers 6, cross-scheme mha, " of an encoder-decoder.
std::string translator_text(const EncoderDecoderOptions& o, const Sweep& sweep) {
  std::string text;
  if (o.decoder_layers || sweep.name != "layers") {
    text += join_text("decoder-layers ", o.decoder_layers.value_or(o.layers), ", ");
  }
  const std::string automatic = EncoderDecoderParts().encoder_scheme;
  for (const auto& [name, scheme] : {std::pair("encoder-scheme", o.encoder_scheme),
                                     {"decoder-scheme", o.decoder_scheme},
                                     {"cross-scheme", o.cross_scheme}}) {
    if (scheme != automatic) text += join_text(name, " ", scheme, ", ");
  }
  return text + (o.share_embeddings ? "" : "two embeddings, ");
}

// Names the kind of model that the counts belong to, "masked-LM encoder: ".
std::string kind_text(const CostOptions& options, const Sweep& sweep) {
  if (sweep.name == "token-embedding")
    return "encoder (a table with the masked-LM head, hashes with the three-way one): ";
  const ModelKind& kind = options.model.kind();
  return kind.title(kind.trainable(options.model)) + ": ";  // as the counts have it
}

// Tells whether layers share keys and values, and so their cache.
bool shares_layers(const CostOptions& options, const Sweep& sweep) {
  return options.model.common().share_kv_layers > 1 || sweep.name == "share-kv-layers";
}

// Tells whether the lines differ in their token embeddings.
bool varies_embedding(const Sweep& sweep) {
  TokenEmbeddingOptions usual;
  Fields known = fields(usual);
  return sweep.name == "vocabulary" || find_field(known, sweep.name) != nullptr;
}

// Lists the options that the numbers stand on, defaults included.
std::string assumptions(const std::vector<SchemeCost>& costs, const CostOptions& options, const Sweep& sweep) {
  const TransformerOptions& model = options.model.common();
  const auto size = [&](const char* name, int64_t value) {
    return sweep.name == name ? join_text(name, " varying, ") : join_text(name, " ", value, ", ");
  };
  const auto possible =
      std::find_if(costs.begin(), costs.end(), [](const SchemeCost& one) { return one.impossible.empty(); });
  const std::string hashed = hashed_embedding(possible->model);
  std::string text = kind_text(options, sweep) + size("layers", model.layers);
  if (const auto* translator = options.model.find<EncoderDecoderOptions>()) text += translator_text(*translator, sweep);
  if (model.layer_groups) text += size("layer-groups", *model.layer_groups);
  if (shares_layers(options, sweep)) text += size("share-kv-layers", model.share_kv_layers);
  if (model.embedding_width) text += size("embedding-width", *model.embedding_width);
  text += size("d-model", model.attention.d_model) + size("heads", model.attention.heads);
  for (const auto& [name, value] : options.model.kind().input_sizes(options.model)) {
    const bool of_embedding = name == "vocabulary" && (varies_embedding(sweep) || !hashed.empty());
    text += !of_embedding             ? size(name.c_str(), value)
            : varies_embedding(sweep) ? sweep.name + " varying, "
                                      : join_text(hashed, " (", exact(possible->size.embedding_parameters), "), ");
  }
  for (const SchemeCost& one : costs) {
    if (!one.impossible.empty() || !one.sweep_value.empty()) continue;
    const AttentionOptions& attention = one.model.common().attention;
    const auto sizes = scheme_record(one.scheme).sizes;
    const std::string own = sizes == nullptr ? "" : sizes(attention);
    if (!own.empty()) text += join_text(one.scheme, ": ", own, ", ");
  }
  if (options.weight_type == ElementType::kFp32 && options.cache_type == ElementType::kFp32) return text + "float32.";
  text += "weights " + element_name(options.weight_type);
  if (options.model.kind().keeps_cache()) text += ", cache " + element_name(options.cache_type);
  const bool scaled = options.weight_type == ElementType::kInt8 || options.cache_type == ElementType::kInt8;
  return text + (scaled ? " (int8 without its scales)." : ".");
}

TextTable make_table(const CostOptions& options, const Sweep& sweep) {
  std::vector<Column> columns = {{"scheme", Align::kLeft}};
  if (!sweep.name.empty()) columns.push_back({sweep.name});
  columns.insert(columns.end(),
                 {{"attention parameters"}, {"effective"}, {"all parameters"}, {"% of mha's attention"}});
  if (varies_embedding(sweep)) columns.push_back({"token embedding"});
  if (options.model.kind().keeps_cache()) {
    const char* const one = shares_layers(options, sweep) ? "cache per token, one cache" : "cache per token, one layer";
    columns.insert(columns.end(), {{one}, {"cache per token, model"}});
  }
  if (options.model.kind().reads_source()) columns.push_back({"cache per source token, model"});
  if (options.memory_budget) columns.insert(columns.end(), {{"largest batch"}, {"longest context"}});
  return TextTable(columns);
}

std::string percent_of_mha(const SchemeCost& cost) {
  const auto whole = static_cast<double>(mha_parameters(cost.model));
  return format_fixed(100 * static_cast<double>(cost.size.attention_parameters) / whole, 1);
}

std::vector<std::string> cells_of(const SchemeCost& one, const CostOptions& options, const Sweep& sweep) {
  std::vector<std::string> cells = {one.scheme};
  if (!one.sweep_value.empty()) cells.push_back(one.sweep_value);
  cells.insert(cells.end(), {exact(one.size.attention_parameters), exact(one.size.attention_parameters_effective),
                             exact(one.size.total_parameters), percent_of_mha(one)});
  if (varies_embedding(sweep)) cells.push_back(exact(one.size.embedding_parameters));
  if (options.model.kind().keeps_cache()) {
    cells.insert(cells.end(), {exact(one.size.cache_elements_per_token),
                               format_bytes(static_cast<double>(one.cache_bytes_per_token))});
  }
  if (options.model.kind().reads_source()) {
    cells.push_back(format_bytes(static_cast<double>(one.source_cache_bytes_per_token)));
  }
  if (options.memory_budget) cells.insert(cells.end(), {exact(one.largest_batch), exact(one.longest_context)});
  return cells;
}

// Returns the sentences above the table.
std::string explanations(const std::vector<SchemeCost>& costs, const CostOptions& options, const Sweep& sweep,
                         const std::string& source, int width) {
  const std::string from = source.empty() ? "" : source + ", ";
  std::string text = wrap(from + assumptions(costs, options, sweep), width, 0) + "\n";
  const bool translator = options.model.kind().reads_source();
  const std::string elements = shares_layers(options, sweep)
                                   ? "; layers that share keys and values have one cache, which is in elements"
                                   : "; the cache of one layer is in elements";
  const std::string cache =
      translator ? elements + "; the source's cache is filled once for each sentence, whatever the beams"
      : options.model.kind().keeps_cache() ? elements
                                           : "; " + with_article(options.model.kind()) + " keeps no cache";
  text += wrap(join_text("Attention parameters count no biases", cache, "."), width, 0) + "\n";
  if (!options.own_scheme.empty()) text += "The model's own scheme is " + options.own_scheme + ".\n";
  if (!options.memory_budget) return text;
  const std::string budget =
      join_text("Weights and cache within ", format_bytes(*options.memory_budget), ": largest batch at context ",
                options.model.common().context, ", longest context at batch ", options.batch_size,
                translator ? "; source and target are equally long." : ".");
  text += wrap(budget, width, 0) + "\n";
  const bool none = std::none_of(costs.begin(), costs.end(), [](const SchemeCost& one) { return one.weights_fit; });
  if (none) {
    text += wrap(join_text("No scheme's weights fit into the budget",
                           options.weight_type == ElementType::kFp32
                               ? "; they are counted as fp32, --weight-type bf16 halves them."
                               : "."),
                 width, 0) +
            "\n";
  }
  return text;
}

}  // namespace

std::string costs_json(const std::vector<SchemeCost>& costs, const CostOptions& options) {
  std::string text = "[";
  for (const SchemeCost& one : costs) text += (text.size() > 1 ? ",\n " : "") + to_object(one, options).dump();
  return text + "]\n";
}

std::string costs_text(const std::vector<SchemeCost>& costs, const CostOptions& options, const Sweep& sweep,
                       const std::string& source, int width) {
  TextTable table = make_table(options, sweep);
  for (const SchemeCost& one : costs) {
    const std::string value = sweep.name.empty() ? "" : " " + sweep.name + "=" + one.sweep_value;
    if (one.impossible.empty()) {
      table.add(cells_of(one, options, sweep));
    } else {
      table.add_spanning(one.scheme, "impossible" + value + ": " + one.impossible);
    }
  }
  const std::string workers = options.workers.workers.empty() ? "" : "\n" + workers_text(costs, options.workers, width);
  return explanations(costs, options, sweep, source, width) + "\n" + table.text(width) + workers;
}

}  // namespace headshare
