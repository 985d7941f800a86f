// headshare cost: what every scheme takes, without training or allocating anything.
#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/cli/tables/cost_table.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/models/embeddings/idle_options.h"

namespace headshare {
namespace {

Arguments arguments(CostOptions& options) {
  Arguments made("cost",
                 "Prints what every attention scheme takes: attention parameters (no biases; effective: without "
                 "those that another can absorb), all parameters, cache per token.");
  made.optional("MODEL",
                "a model whose shape is meant: a headshare model or run directory, a Hugging Face directory or "
                "config.json, or the YAML of headshare train --config",
                &options.model_path);
  made.group("What to print", own_fields(options));
  made.group("Model", model_fields(options.model));
  made.group("Encoder", fields(static_cast<EncoderParts&>(options.encoder)));
  made.group("Encoder-decoder", translator_fields(options.translator));
  made.common({"schemes", "kind", "layers", "d-model", "heads", "context", "vocabulary", "sweep", "memory-budget",
               "batch-size", "cache-type", "weight-type", "json"});
  made.example("cost --layers 12 --d-model 768 --heads 12", "every scheme at the size of GPT-2");
  made.example("cost config.json --weight-type bf16 --cache-type bf16 --memory-budget 24GiB",
               "a published model: the largest batch and the longest context that fit");
  made.example("cost --kind encoder --layers 12 --d-model 768 --heads 12 --token-embedding hash-proj",
               "an encoder without a vocabulary; --sweep token-embedding=table,hash-proj compares them");
  made.note(
      "The tables of the MHE paper: headshare cost --kind encoder --layers 12 --d-model 768 --heads 12, and headshare "
      "cost --kind encoder-decoder --layers 6 --d-model 512 --heads 8. "
      "The vocabulary is GPT-2's unless --vocabulary says otherwise; groups and key-width left at auto depend on heads "
      "and d-model, and the output states them.");
  std::string types;
  for (const std::string& type : shape_types()) types += (types.empty() ? "" : ", ") + type;
  made.note(
      "With MODEL the options begin with its own, its scheme stands first, and no weights are read. Of Hugging "
      "Face these model types are known: " +
      types + ".");
  return made;
}

// Throws UsageError for an option that the kind of model does not have.
void check_options(const Arguments& given, ModelKind kind, CostOptions& probe) {
  if (!keeps_cache(kind)) {
    for (const char* name : {"memory-budget", "cache-type"}) {
      if (given.given(name)) throw UsageError(join_text("--", name, " is about decoding; an encoder keeps no cache"));
    }
  }
  for (const Field& one : fields(static_cast<EncoderParts&>(probe.encoder))) {
    const bool fits = kind == ModelKind::kEncoder || (kind == ModelKind::kEncoderDecoder && one.name == "norms");
    if (given.given(one.name) && !fits) throw UsageError("--" + one.name + " belongs to --kind encoder");
  }
  for (const Field& one : translator_fields(probe.translator)) {
    if (given.given(one.name) && kind != ModelKind::kEncoderDecoder) {
      throw UsageError("--" + one.name + " belongs to --kind encoder-decoder");
    }
  }
}

// Throws Error for an option that no token embedding here reads.
void check_embedding(const Arguments& given, const CostOptions& options, const Sweep& sweep) {
  if (options.kind != ModelKind::kEncoder) return;
  std::vector<TokenEmbeddingKind> kinds = {options.encoder.embedding.kind};
  if (sweep.name == "token-embedding") {
    kinds.clear();
    for (const std::string& value : sweep.values) {
      TokenEmbeddingOptions one;
      Fields list = fields(one);
      set_field(list, sweep.name, value, "--sweep");
      kinds.push_back(one.kind);
    }
  }
  check_read_by(kinds, options.encoder.embedding);
  const bool table = std::find(kinds.begin(), kinds.end(), TokenEmbeddingKind::kTable) != kinds.end();
  HS_CHECK(table || (!given.given("vocabulary") && sweep.name != "vocabulary"),
           "--vocabulary is for a table of tokens, and hashed embeddings have no vocabulary; leave it out");
}

// What options stand on top of, where no model is given.
TransformerOptions first_options(ModelKind kind) {
  if (kind == ModelKind::kEncoder) return EncoderOptions();
  EncoderDecoderOptions translator;  // positions as in the first Transformer
  translator.positions = PositionKind::kSinusoidal;
  return kind == ModelKind::kEncoderDecoder ? static_cast<TransformerOptions>(translator) : DecoderOptions();
}

// The model or its kind comes first and everything else on top of what it starts with. False: --help.
bool begin_with_model(const Words& words, CostOptions* options) {
  CostOptions probe = cost_options();
  Arguments given = arguments(probe);
  if (!given.parse(words)) return false;
  if (!probe.model_path.empty()) {
    options->model_path = probe.model_path;
    take_model(options);
    if (given.given("kind") && probe.kind != options->kind) {
      throw UsageError("--kind is not that of " + probe.model_path + "; leave it out");
    }
    for (const Field& one : model_fields(probe.model)) {
      if (given.given(one.name)) options->given.insert(one.name);
    }
  } else {
    options->model = first_options(probe.kind);
    options->kind = probe.kind;
  }
  check_options(given, options->kind, probe);
  return true;
}

}  // namespace

int run_cost(const Words& words) {
  CostOptions options = cost_options();
  if (!begin_with_model(words, &options)) return kOk;
  Arguments given = arguments(options);
  given.parse(words);
  Sweep sweep;
  const std::vector<Cost> costs = as_usage([&] {
    sweep = parse_sweep(options.sweep, swept_fields(options.model, options));
    check_embedding(given, options, sweep);
    return all_costs(options, sweep);
  });
  for (const std::string& note : options.shape.notes) notice(note);
  if (options.json) {
    print_json(costs_json(costs, options));
  } else {
    print(costs_text(costs, options, sweep, terminal_width(Stream::kOut)));
  }
  return kOk;
}

}  // namespace headshare
