// headshare cost tells what every scheme takes, without training or allocating anything.
#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/cli/tables/cost_table.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/train_command.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/host/model_shape.h"
#include "headshare/models/embeddings/idle_options.h"

namespace headshare {
namespace {

struct CostCommand {
  std::string model_path;  // a model whose shape is asked about; "": the one that the options describe
  bool json = false;
  CostOptions options = cost_options();
};

Arguments arguments_of(CostCommand& command) {
  CostOptions& options = command.options;
  Arguments made("cost",
                 "Prints what every attention scheme takes: attention parameters (no biases; effective: without "
                 "those that another can absorb), all parameters, cache per token.");
  made.optional("MODEL",
                "a model whose shape is meant: a headshare model or run directory, a Hugging Face directory or "
                "config.json, or the YAML of headshare train --config",
                &command.model_path);
  Fields asked = fields(options);
  asked.push_back(field("json", &command.json, "print a JSON list with one object per scheme"));
  made.group("What to print", std::move(asked));
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

HfShape shape_at(const fs::path& path) {
  const bool configuration = path.extension() == ".yaml" || path.extension() == ".yml";
  if (!configuration || !path_exists(path)) return read_shape(path);
  return {.options = configured_model(path.string()), .model_type = "headshare"};
}

// Returns the options of the model, or of its kind: everything that was typed comes on top of them.
CostCommand beginning(const CostCommand& asked, const Arguments& typed, const std::optional<HfShape>& shape) {
  CostCommand command;
  command.options = cost_options(asked.options.kind);
  if (!shape) return command;
  take_shape(*shape, &command.options);
  if (typed.given("kind") && asked.options.kind != command.options.kind) {
    throw UsageError("--kind is not that of " + asked.model_path + "; leave it out");
  }
  TransformerOptions known;
  for (const Field& one : model_fields(known)) {
    if (typed.given(one.name)) command.options.given.insert(one.name);
  }
  return command;
}

}  // namespace

int run_cost(const Words& words) {
  CostCommand asked;
  Arguments typed = arguments_of(asked);
  if (!typed.parse(words)) return kOk;
  std::optional<HfShape> shape;
  if (!asked.model_path.empty()) shape = shape_at(asked.model_path);
  CostCommand command = beginning(asked, typed, shape);
  CostOptions& options = command.options;
  check_options(typed, options.kind, asked.options);
  arguments_of(command).repeat(typed);
  Sweep sweep;
  const std::vector<SchemeCost> costs = as_usage([&] {
    sweep = parse_sweep(options.sweep, swept_fields(options.model, options));
    check_embedding(typed, options, sweep);
    return all_costs(options, sweep);
  });
  if (shape) {
    for (const std::string& note : shape->notes) notice(note);
  }
  if (command.json) {
    print_json(costs_json(costs, options));
    return kOk;
  }
  const std::string source = shape ? command.model_path + " (" + shape->model_type + ")" : "";
  print(costs_text(costs, options, sweep, source, terminal_width(Stream::kOut)));
  return kOk;
}

}  // namespace headshare
