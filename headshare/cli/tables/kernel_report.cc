#include "headshare/cli/tables/kernel_report.h"

#include <ATen/ATen.h>

#include "headshare/attention/attention.h"
#include "headshare/base/error.h"
#include "headshare/base/memory.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/ops/head_attention_backends.h"

namespace headshare {
namespace {

struct Situation {
  std::string name;
  int64_t queries;
  int64_t keys;
  bool training;
};

// Where a model attends.
struct Place {
  std::string name;  // in what stands before a situation: "" where there is one place alone
  const AttentionOptions& attention;
  bool causal;
  bool decodes;  // one query after the other
};

std::vector<Place> places_of(const ModelOptions& model) {
  if (const auto* translator = std::get_if<EncoderDecoderOptions>(&model)) {
    const AttentionSites& sites = *translator->sites;
    return {{"encoder: ", sites.encoder, false, false},
            {"decoder: ", sites.decoder, true, true},
            {"cross-attention: ", sites.cross, false, true}};
  }
  const bool causal = is_causal(model);
  return {{"", shared_options(model).attention, causal, causal}};
}

std::vector<Situation> situations(const KernelOptions& options, int64_t context, bool decodes) {
  const int64_t keys = options.keys.value_or(context);
  if (options.queries) return {{"as asked", *options.queries, keys, options.training}};
  std::vector<Situation> usual = {{"training", keys, keys, true}, {"scoring", keys, keys, false}};
  if (decodes) usual.push_back({"decoding", 1, keys, false});
  return usual;
}

nlohmann::ordered_json report_on(const Situation& situation, const KernelOptions& options,
                                 const AttentionOptions& attention, c10::Device device) {
  // As in a model: gradients are wanted in training only, and autocast decides what products get.
  const at::AutoGradMode gradients(situation.training);
  const ComputeIn computing(options.precision, device.type());
  const int64_t T = situation.queries;
  const int64_t S = situation.keys;
  const int64_t B = options.batch_size;
  const int64_t E = attention.d_model;
  const std::shared_ptr<Scheme> scheme = make_scheme(attention);
  initialise(*scheme, /*seed=*/0);
  scheme->to(device);
  const Tensor queries = scheme->project_queries(at::zeros({B, T, E}, device), S - T);
  const HeadProblem problem = scheme->problem(queries, scheme->remember(at::zeros({B, S, E}, device), 0));
  HeadMask mask{.causal = options.causal};
  if (options.padding) mask.visible_keys = at::ones({B, S}, at::TensorOptions(device).dtype(at::kBool));
  if (attention.alibi) {
    mask.alibi_slopes = at::tensor(alibi_slopes(attention.heads), at::TensorOptions(at::kFloat)).to(device);
  }
  scheme->train(situation.training);
  const HeadDropout dropout{.p = attention.attention_dropout,
                            .site = scheme.get(),
                            .shared = attention.attention_dropout_mask == DropoutMaskKind::kShared};
  const HeadBackend& chosen = choose_head_backend(problem, mask, dropout);
  nlohmann::ordered_json object = {{"situation", situation.name},
                                   {"batch_size", B},
                                   {"queries", T},
                                   {"keys", S},
                                   {"causal", options.causal},
                                   {"padding", options.padding},
                                   {"precision", precision_name(options.precision)},
                                   {"dropout", dropout.active() ? dropout.p : 0.0},
                                   {"backend", chosen.name}};
  if (chosen.name == kSdpaBackend.name) object["fused"] = sdpa_is_fused(problem, mask);
  const bool blocks = chosen.name == kFusedBackend.name || chosen.name == kFactorisedBackend.name;
  const Precision products = multiplies_bf16(problem) ? Precision::kBf16 : Precision::kFp32;
  object["products"] = precision_name(blocks ? products : options.precision);
  object["refused"] = nlohmann::ordered_json::array();
  for (const HeadBackend& backend : head_backends()) {
    if (backend.name == chosen.name) break;
    object["refused"].push_back({{"backend", backend.name}, {"reasons", backend.why_not(problem, mask, dropout)}});
  }
  return object;
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

nlohmann::ordered_json kernel_report(const KernelOptions& asked, const ModelOptions& model, c10::Device device) {
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  for (const Place& place : places_of(model)) {
    KernelOptions options = asked;
    options.causal = options.causal && place.causal;
    for (Situation& one : situations(options, shared_options(model).context, place.decodes)) {
      one.name = place.name + one.name;
      const double tokens = static_cast<double>(options.batch_size) * static_cast<double>(one.queries + one.keys);
      const double widths = 4.0 * static_cast<double>(place.attention.d_model + 2 * *place.attention.key_width);
      check_memory(4 * tokens * widths, "posing the problem", "use a smaller --batch-size or --keys");
      report.push_back(report_on(one, options, place.attention, device));
    }
  }
  return report;
}

namespace {

// "training (batch 8, 256 queries, 256 keys, causal, dropout 0.1)"
std::string problem_text(const nlohmann::ordered_json& one) {
  std::string text = join_text(one["situation"].get<std::string>(), " (batch ", one["batch_size"].dump(), ", ",
                               one["queries"].dump(), " queries, ", one["keys"].dump(), " keys");
  if (one["causal"] == true) text += ", causal";
  if (one["padding"] == true) text += ", padded";
  if (one["dropout"] != 0.0) text += ", dropout " + one["dropout"].dump();
  return text + ", " + one["precision"].get<std::string>() + ")";
}

}  // namespace

std::string kernel_text(const nlohmann::ordered_json& report, int width) {
  std::string text;
  for (const nlohmann::ordered_json& one : report) {
    const std::string fused = !one.contains("fused") ? "" : one["fused"] == true ? ", fused" : ", in its plain form";
    const std::string products =
        one["products"] == one["precision"] ? "" : ", products in " + one["products"].get<std::string>();
    const std::string line = problem_text(one) + ": " + one["backend"].get<std::string>() + fused + products;
    text += wrap(line, width, 2) + "\n";
    for (const nlohmann::ordered_json& refused : one["refused"]) {
      std::string reasons;
      for (const auto& reason : refused["reasons"]) {
        reasons += (reasons.empty() ? "" : "; ") + reason.get<std::string>();
      }
      if (reasons.empty()) reasons = "HEADSHARE_BACKEND asks for another";
      text += "    not " + wrap(refused["backend"].get<std::string>() + ": " + reasons, width, 8) + "\n";
    }
  }
  return text;
}

}  // namespace headshare
