// headshare cost: what every scheme takes, without training or allocating anything.
#include <algorithm>
#include <cmath>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/format.h"
#include "headshare/base/nearest.h"
#include "headshare/cli/table.h"
#include "headshare/cli/terminal.h"
#include "headshare/cli/units.h"
#include "headshare/cli/verbs.h"
#include "headshare/compare/options.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/size.h"

namespace headshare {
namespace {

enum class ModelKind { kDecoder, kEncoder };

struct CostOptions {
  TransformerOptions model;
  EncoderParts encoder;  // what an encoder has besides
  ModelKind kind = ModelKind::kDecoder;
  std::vector<std::string> schemes = {"all"};
  std::string sweep;
  std::optional<double> memory_budget;
  int64_t batch_size = 1;
  bool json = false;
};

Fields own_fields(CostOptions& o) {
  static const EnumNames<ModelKind> kKinds = {{ModelKind::kDecoder, "decoder"}, {ModelKind::kEncoder, "encoder"}};
  return {
      field("schemes", &o.schemes, "attention schemes, or all", {.aliases = {"scheme", "attention"}}),
      field("kind", &o.kind, "kind of model: a decoder language model, or a masked-LM encoder, which keeps no cache",
            kKinds),
      field("sweep", &o.sweep, "repeat for several values of one model option: heads=4,8,16,32 or layers=6,12,24"),
      bytes_field("memory-budget", &o.memory_budget,
                  "also print the largest batch (at --context tokens) and the longest context (at --batch-size) whose "
                  "weights and cache fit"),
      field("batch-size", &o.batch_size, "sequences, for the longest context within the budget", {.min = 1}),
      field("json", &o.json, "print a JSON list with one object per scheme"),
  };
}

// The model's options; `schemes` stands for its scheme.
Fields model_fields(TransformerOptions& model) {
  Fields list = stored_fields(model);
  std::erase_if(list, [](const Field& one) { return one.name == "scheme"; });
  return list;
}

struct Sweep {
  std::string name;
  std::vector<std::string> values;
};

Sweep parse_sweep(const std::string& text, Fields& model) {
  const size_t equals = text.find('=');
  HS_CHECK(equals != std::string::npos, "--sweep is written NAME=VALUE,VALUE,..., such as heads=4,8,16; not '", text,
           "'");
  std::vector<std::string> values;
  field("sweep", &values, "").parse(text.substr(equals + 1));
  HS_CHECK(!values.empty(), "--sweep ", text, " has no values");
  std::vector<std::string> known;
  for (const Field& one : model) known.push_back(one.name);
  const Field* found = find_field(model, text.substr(0, equals));
  HS_CHECK(found != nullptr, "--sweep: unknown option '", text.substr(0, equals), "'",
           did_you_mean(text.substr(0, equals), known));
  return {found->name, values};
}

// One line of the table, or why there is none.
struct Cost {
  std::string scheme;
  std::string sweep_value;  // "" without a sweep
  std::string impossible;   // the reason; the rest is then empty
  ModelOptions model;       // resolved
  ModelSize size;
  int64_t largest_batch = 0;
  int64_t longest_context = 0;
};

// Weights and cache take  4 P + cache x batch x context  bytes. Learned positions make P grow with
// the context: P(context) = P0 + slope x context.
void fit_into(double budget, int64_t batch, const DecoderOptions& model, Cost* cost) {
  const double weights = decoding_bytes(model, 0, 0);
  DecoderOptions longer = model;
  ++longer.context;
  const double slope = decoding_bytes(longer, 0, 0) - weights;
  const auto cache = static_cast<double>(cost->size.cache_bytes_per_token);
  const auto context = static_cast<double>(model.context);
  const auto whole = [](double x) { return static_cast<int64_t>(std::floor(std::max(0.0, x))); };
  cost->largest_batch = whole((budget - weights) / (cache * context));
  cost->longest_context = whole((budget - (weights - slope * context)) / (cache * static_cast<double>(batch) + slope));
}

// `common`, with what an encoder has besides where that is asked for.
ModelOptions model_of(const TransformerOptions& common, const CostOptions& options) {
  if (options.kind == ModelKind::kDecoder) return resolve(common);
  return masked_encoder(common, options.encoder);
}

Cost cost_of(const std::string& scheme, const CostOptions& options, const Sweep& sweep, const std::string& value) {
  Cost cost{.scheme = scheme, .sweep_value = value, .impossible = {}, .model = options.model, .size = {}};
  TransformerOptions model = options.model;
  model.attention.scheme = scheme;
  Fields list = model_fields(model);
  if (!sweep.name.empty()) set_field(list, sweep.name, value, "--sweep");
  cost.model = model;
  try {
    cost.model = model_of(model, options);
    cost.size = size_of(cost.model);
    if (options.memory_budget) {
      fit_into(*options.memory_budget, options.batch_size, std::get<DecoderOptions>(cost.model), &cost);
    }
  } catch (const Error& error) {
    cost.impossible = error.what();
  }
  return cost;
}

std::vector<Cost> all_costs(const CostOptions& options, const Sweep& sweep) {
  std::vector<Cost> costs;
  const std::vector<std::string> once = {""};
  for (const std::string& scheme : chosen_schemes(options.schemes)) {
    for (const std::string& value : sweep.name.empty() ? once : sweep.values) {
      costs.push_back(cost_of(scheme, options, sweep, value));
    }
  }
  const bool none = std::all_of(costs.begin(), costs.end(), [](const Cost& one) { return !one.impossible.empty(); });
  HS_CHECK(!none, costs.front().impossible);
  return costs;
}

nlohmann::ordered_json to_object(const Cost& cost, const CostOptions& options) {
  nlohmann::ordered_json object;
  const SchemeRecord& scheme = scheme_record(cost.scheme);
  object["scheme"] = scheme.name;
  object["shares"] = scheme.sentence;
  object["paper"] = scheme.paper;
  if (!scheme.weights_of.empty()) object["weights_of"] = scheme.weights_of;
  const TransformerOptions& model = shared_options(cost.model);
  const bool decoder = options.kind == ModelKind::kDecoder;
  object["kind"] = decoder ? "decoder" : "encoder";
  const AttentionOptions& attention = model.attention;
  object["layers"] = model.layers;
  object["d_model"] = attention.d_model;
  object["heads"] = attention.heads;
  object["vocabulary"] = model.vocabulary;
  object["context"] = model.context;
  if (!cost.impossible.empty()) {
    object["impossible"] = cost.impossible;
    return object;
  }
  object["head_width"] = *attention.head_width;
  object["groups"] = *attention.groups;
  object["key_width"] = *attention.key_width;
  object["attention_parameters"] = cost.size.attention_parameters;
  object["attention_parameters_effective"] = cost.size.attention_parameters_effective;
  object["total_parameters"] = cost.size.total_parameters;
  if (decoder) {
    object["kv_cache_elements_per_token"] = cost.size.cache_elements_per_token;
    object["kv_cache_bytes_per_token"] = cost.size.cache_bytes_per_token;
  }
  object["bytes_per_element"] = 4;
  if (options.memory_budget) {
    object["memory_budget_bytes"] = *options.memory_budget;
    object["largest_batch"] = cost.largest_batch;
    object["longest_context"] = cost.longest_context;
    object["longest_context_batch"] = options.batch_size;
  }
  return object;
}

void print_objects(const std::vector<Cost>& costs, const CostOptions& options) {
  std::string text = "[";
  for (const Cost& one : costs) text += (text.size() > 1 ? ",\n " : "") + to_object(one, options).dump();
  print_json(text + "]\n");
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

// What the numbers stand on, defaults included.
std::string assumptions(const std::vector<Cost>& costs, const CostOptions& options, const Sweep& sweep) {
  const TransformerOptions& model = options.model;
  const auto size = [&](const char* name, int64_t value) {
    return sweep.name == name ? join_text(name, " varying, ") : join_text(name, " ", value, ", ");
  };
  const std::string kind = options.kind == ModelKind::kDecoder ? "decoder language model: " : "masked-LM encoder: ";
  std::string text = kind + size("layers", model.layers) + size("d-model", model.attention.d_model) +
                     size("heads", model.attention.heads) + size("vocabulary", model.vocabulary) +
                     size("context", model.context);
  for (const Cost& one : costs) {
    if (!one.impossible.empty() || !one.sweep_value.empty()) continue;
    const AttentionOptions& attention = shared_options(one.model).attention;
    const auto sizes = scheme_record(one.scheme).sizes;
    if (sizes != nullptr) text += join_text(one.scheme, ": ", sizes(attention), ", ");
  }
  return text + "float32.";
}

TextTable make_table(const CostOptions& options, const Sweep& sweep) {
  std::vector<Column> columns = {{"scheme", Align::kLeft}};
  if (!sweep.name.empty()) columns.push_back({sweep.name});
  columns.insert(columns.end(),
                 {{"attention parameters"}, {"effective"}, {"all parameters"}, {"% of mha's attention"}});
  if (options.kind == ModelKind::kDecoder) {
    columns.insert(columns.end(), {{"cache per token, one layer"}, {"cache per token, model"}});
  }
  if (options.memory_budget) columns.insert(columns.end(), {{"largest batch"}, {"longest context"}});
  return TextTable(columns);
}

std::string percent_of_mha(const Cost& cost) {
  DecoderOptions mha = shared_options(cost.model);  // decoders and encoders have the same attention
  mha.attention.scheme = "mha";
  mha.attention.key_width.reset();
  mha.attention.scale.reset();
  const auto whole = static_cast<double>(measure(resolve(mha)).attention_parameters);
  return format_fixed(100 * static_cast<double>(cost.size.attention_parameters) / whole, 1);
}

void print_table(const std::vector<Cost>& costs, const CostOptions& options, const Sweep& sweep) {
  TextTable table = make_table(options, sweep);
  for (const Cost& one : costs) {
    const std::string value = sweep.name.empty() ? "" : " " + sweep.name + "=" + one.sweep_value;
    if (!one.impossible.empty()) {
      table.add_spanning(one.scheme, "impossible" + value + ": " + one.impossible);
      continue;
    }
    std::vector<std::string> cells = {one.scheme};
    if (!sweep.name.empty()) cells.push_back(one.sweep_value);
    cells.insert(cells.end(), {exact(one.size.attention_parameters), exact(one.size.attention_parameters_effective),
                               exact(one.size.total_parameters), percent_of_mha(one)});
    if (options.kind == ModelKind::kDecoder) {
      cells.insert(cells.end(), {exact(one.size.cache_elements_per_token),
                                 format_bytes(static_cast<double>(one.size.cache_bytes_per_token))});
    }
    if (options.memory_budget) cells.insert(cells.end(), {exact(one.largest_batch), exact(one.longest_context)});
    table.add(cells);
  }
  const int width = terminal_width(Stream::kOut);
  print(wrap(assumptions(costs, options, sweep), width, 0) + "\n");
  const bool decoder = options.kind == ModelKind::kDecoder;
  print(join_text("Attention parameters count no biases",
                  decoder ? "; the cache of one layer is in elements" : "; an encoder keeps no cache", ".\n"));
  if (options.memory_budget) {
    print(
        wrap(join_text("Weights and cache within ", format_bytes(*options.memory_budget), ": largest batch at context ",
                       options.model.context, ", longest context at batch ", options.batch_size, "."),
             width, 0) +
        "\n");
  }
  print("\n" + table.text(width));
}

}  // namespace

namespace {

Arguments arguments(CostOptions& options) {
  Arguments made("cost",
                 "Prints what every attention scheme takes: attention parameters (no biases; effective: without "
                 "those that another can absorb), all parameters, cache per token.");
  made.group("What to print", own_fields(options));
  made.group("Model", model_fields(options.model));
  made.group("Encoder", fields(options.encoder));
  made.note(
      "The encoder table of the MHE paper: headshare cost --kind encoder --layers 12 --d-model 768 --heads 12. "
      "The vocabulary is GPT-2's unless --vocabulary says otherwise; groups and key-width left at auto depend on heads "
      "and d-model, and the output states them.");
  return made;
}

// The kind of model comes first and everything else on top of what it starts with. False: --help.
bool begin_with_kind(const Words& words, CostOptions* options) {
  CostOptions probe;
  Arguments given = arguments(probe);
  if (!given.parse(words)) return false;
  if (probe.kind == ModelKind::kEncoder) {
    options->model = EncoderOptions();
    if (given.given("memory-budget")) throw UsageError("--memory-budget is about decoding; an encoder keeps no cache");
    return true;
  }
  for (const Field& one : fields(probe.encoder)) {
    if (given.given(one.name)) throw UsageError("--" + one.name + " belongs to --kind encoder");
  }
  return true;
}

}  // namespace

int run_cost(const Words& words) {
  CostOptions options;
  if (!begin_with_kind(words, &options)) return kOk;
  arguments(options).parse(words);
  Sweep sweep;
  const std::vector<Cost> costs = as_usage([&] {
    Fields model = model_fields(options.model);
    if (!options.sweep.empty()) sweep = parse_sweep(options.sweep, model);
    return all_costs(options, sweep);
  });
  if (options.json) {
    print_objects(costs, options);
  } else {
    print_table(costs, options, sweep);
  }
  return kOk;
}

}  // namespace headshare
