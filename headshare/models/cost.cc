#include "headshare/models/cost.h"

#include <algorithm>
#include <cmath>

#include "headshare/attention/scheme_record.h"
#include "headshare/attention/schemes/mla.h"
#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/bytes_field.h"
#include "headshare/base/options/nearest.h"
#include "headshare/models/vision_options.h"

namespace headshare {
namespace {

constexpr double kFp32Bytes = 4;

const EnumNames<ElementType>& element_names() {
  static const EnumNames<ElementType> names = {
      {ElementType::kFp32, "fp32"}, {ElementType::kBf16, "bf16"}, {ElementType::kInt8, "int8"}};
  return names;
}

// Takes back what resolve() filled in, so that other schemes and sizes get their own defaults.
template <class Member>
void forget_default(TransformerOptions* model, Member member) {
  TransformerOptions without = *model;
  (without.*member).reset();
  if (resolve(without).*member == model->*member) *model = without;
}

template <class Member>
void forget_attention_default(TransformerOptions* model, Member member) {
  TransformerOptions without = *model;
  (without.attention.*member).reset();
  if (resolve(without).attention.*member == model->attention.*member) *model = without;
}

nlohmann::json own_options(const SchemeRecord& scheme, AttentionOptions attention) {
  return to_json(scheme.options.fields(attention));
}

// Takes back the options that one scheme alone has, where resolve() filled them in.
void forget_own_defaults(TransformerOptions* model, const SchemeRecord& scheme) {
  TransformerOptions without = *model;
  scheme.options.reset(&without.attention);
  if (own_options(scheme, resolve(without).attention) == own_options(scheme, model->attention)) *model = without;
}

void forget_defaults(ModelOptions* options) {
  TransformerOptions* model = &options->common();
  forget_default(model, &TransformerOptions::feed_forward_width);
  forget_attention_default(model, &AttentionOptions::scale);
  forget_attention_default(model, &AttentionOptions::key_width);
  for (const auto& one : scheme_records()) {
    if (one->options.fields == nullptr || one->name == model->attention.scheme) continue;
    forget_own_defaults(model, *one);
  }
  forget_attention_default(model, &AttentionOptions::head_width);
}

// Widths that were chosen for one scheme do not hold for another, unless the user gave them.
void leave_to_scheme(const std::set<std::string>& given, AttentionOptions* attention) {
  if (!given.contains("key-width")) attention->key_width.reset();
  if (!given.contains("attention-scale")) attention->scale.reset();
}

// A model's latent width was filled in when it was made: widths of its layers that the user gives stand in its place.
void leave_to_layers(const std::set<std::string>& given, AttentionOptions* attention) {
  if (!given.contains("layer-kv-latent-widths") || given.contains("kv-latent-width")) return;
  attention->own.get<MlaOptions>().kv_latent.reset();
}

// Fills in what fits into `budget` bytes. Weights and cache take  w P + c x batch x context  bytes; in an
// encoder-decoder the source is as long as the target. Learned positions make P grow with the context: P(context) = P0
// + slope x context.
void fit_into(double budget, const CostOptions& options, SchemeCost* cost) {
  const TransformerOptions& model = cost->model.common();
  const auto bytes = static_cast<double>(element_bytes(options.weight_type));
  CountDifference stored = options.counts;
  stored.fixed_tables = stored.unused_rows = 0;  // parameter_bytes() counts what is stored
  const auto surplus = bytes * static_cast<double>(surplus_parameters(stored, model));
  const auto weights_of = [&](const ModelOptions& one) { return parameter_bytes(one) / kFp32Bytes * bytes - surplus; };
  const double weights = weights_of(cost->model);
  ModelOptions longer = cost->model;
  ++longer.common().context;
  const double slope = weights_of(longer) - weights;
  const auto cache = static_cast<double>(cost->cache_bytes_per_token + cost->source_cache_bytes_per_token);
  const auto context = static_cast<double>(model.context);
  const auto whole = [](double x) { return static_cast<int64_t>(std::floor(std::max(0.0, x))); };
  cost->largest_batch = whole((budget - weights) / (cache * context));
  cost->longest_context =
      whole((budget - (weights - slope * context)) / (cache * static_cast<double>(options.batch_size) + slope));
  // A trained model has no more positions than it has learned.
  const bool bounded = !options.own_scheme.empty() && model.positions == PositionKind::kLearned;
  if (bounded) cost->longest_context = std::min(cost->longest_context, model.context);
  cost->weights_fit = weights <= budget;
}

SchemeCost cost_of(const std::string& scheme, const CostOptions& options, const Sweep& sweep,
                   const std::string& value) {
  SchemeCost cost{.scheme = scheme, .sweep_value = value, .impossible = {}, .model = options.model, .size = {}};
  AttentionOptions& attention = cost.model.common().attention;
  attention.scheme = scheme;
  if (!options.own_scheme.empty() && scheme != options.own_scheme) leave_to_scheme(options.given, &attention);
  if (!options.own_scheme.empty()) leave_to_layers(options.given, &attention);
  Fields list = swept_fields(cost.model);
  if (!sweep.name.empty()) set_field(list, sweep.name, value, "--sweep");
  try {
    const ModelKind& kind = cost.model.kind();
    cost.model = kind.resolve(kind.trainable(cost.model));
    cost.size = measure(cost.model);
    cost.size.total_parameters -= surplus_parameters(options.counts, cost.model.common());
    const auto stored = [&](int64_t float_bytes) {
      return float_bytes / static_cast<int64_t>(kFp32Bytes) * element_bytes(options.cache_type);
    };
    cost.cache_bytes_per_token = stored(cost.size.cache_bytes_per_token);
    cost.source_cache_bytes_per_token = stored(cost.size.source_cache_bytes_per_token);
    if (options.memory_budget) fit_into(*options.memory_budget, options, &cost);
  } catch (const Error& error) {
    cost.impossible = error.what();
  }
  return cost;
}

}  // namespace

int64_t element_bytes(ElementType type) { return type == ElementType::kFp32 ? 4 : type == ElementType::kBf16 ? 2 : 1; }

std::string element_name(ElementType type) { return enum_name(element_names(), type); }

int64_t surplus_parameters(const CountDifference& counts, const TransformerOptions& resolved) {
  const int64_t fixed = (counts.fixed_tables * resolved.context + counts.unused_rows) * resolved.attention.d_model;
  const int64_t surplus = counts.zero_biases - fixed;
  if (counts.output_bias || !resolved.attention.projection_bias) return surplus;
  return surplus + own_layers(resolved) * resolved.attention.d_model;
}

CostOptions cost_options(const std::string& kind) {
  CostOptions options;
  options.kind = kind;
  options.model = model_kind(kind).costed();
  return options;
}

Fields fields(CostOptions& o) {
  std::vector<std::string> kinds;
  for (const ModelKind* one : model_kinds()) kinds.push_back(one->name());
  return {
      field("schemes", &o.schemes, "attention schemes, or all", {.aliases = {"scheme", "attention"}}),
      field("kind", &o.kind,
            "kind of model: a decoder language model, an encoder, which keeps no cache, an encoder-decoder, which "
            "translates, or a vision-transformer, which tells the classes of images",
            kinds, {}),
      field("sweep", &o.sweep, "repeat for several values of one model option: heads=4,8,16,32 or layers=6,12,24"),
      bytes_field("memory-budget", &o.memory_budget,
                  "also print the largest batch (at --context tokens) and the longest context (at --batch-size) whose "
                  "weights and cache fit"),
      field("batch-size", &o.batch_size, "sequences, for the longest context within the budget", {.min = 1}),
      field("cache-type", &o.cache_type,
            "how cached keys and values are stored: 4, 2 or 1 byte each; int8 without its scales", element_names()),
      field("weight-type", &o.weight_type, "how weights are stored, for the budget, likewise", element_names()),
  };
}

Fields model_fields(TransformerOptions& model) {
  Fields list = stored_fields(model);
  std::erase_if(list, [](const Field& one) { return one.name == "scheme"; });
  return list;
}

Fields swept_fields(ModelOptions& model) {
  Fields list = model_fields(model.common());
  if (model.find<VisionOptions>() != nullptr) {
    append(&list, model.kind().own_fields(model));
    Fields known = model.kind().stored_fields(model);
    std::erase_if(list, [&](const Field& one) { return find_field(known, one.name) == nullptr; });
  }
  if (auto* encoder = model.find<EncoderOptions>()) append(&list, fields(encoder->embedding));
  return list;
}

void take_model(const ModelOptions& read, CostOptions* options) {
  options->kind = read.kind().name();
  options->model = read;
  options->own_scheme = read.common().attention.scheme;
  read.kind().forget_defaults(&options->model);
  forget_defaults(&options->model);
}

Sweep parse_sweep(const std::string& text, Fields model) {
  if (text.empty()) return {};
  const size_t equals = text.find('=');
  HS_CHECK(equals != std::string::npos, "--sweep is written NAME=VALUE,VALUE,..., such as heads=4,8,16; not ",
           brief_text(text));
  std::vector<std::string> values;
  field("sweep", &values, "").parse(text.substr(equals + 1));
  HS_CHECK(!values.empty(), "--sweep ", text, " has no values");
  std::vector<std::string> known;
  for (const Field& one : model) known.push_back(one.name);
  const Field* found = find_field(model, text.substr(0, equals));
  HS_CHECK(found != nullptr, "--sweep: unknown option ", brief_text(text.substr(0, equals)),
           did_you_mean(text.substr(0, equals), known));
  return {found->name, values};
}

std::vector<SchemeCost> all_costs(const CostOptions& options, const Sweep& sweep) {
  if (!options.workers.workers.empty()) check_data_parallel(options.workers);
  std::vector<std::string> schemes = chosen_schemes(options.schemes);
  std::stable_partition(schemes.begin(), schemes.end(),
                        [&](const std::string& one) { return one == options.own_scheme; });
  std::vector<SchemeCost> costs;
  const std::vector<std::string> once = {""};
  for (const std::string& scheme : schemes) {
    for (const std::string& value : sweep.name.empty() ? once : sweep.values) {
      costs.push_back(cost_of(scheme, options, sweep, value));
    }
  }
  const bool none =
      std::all_of(costs.begin(), costs.end(), [](const SchemeCost& one) { return !one.impossible.empty(); });
  HS_CHECK(!none, costs.front().impossible);
  return costs;
}

int64_t mha_parameters(const ModelOptions& model) {
  ModelOptions mha = model;
  mha.kind().set_scheme("mha", &mha);
  return measure(mha.kind().resolve(mha)).attention_parameters;
}

}  // namespace headshare
