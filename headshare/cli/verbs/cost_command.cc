// headshare cost tells what every scheme takes, without training or allocating anything.
#include <algorithm>
#include <cctype>
#include <map>

#include "headshare/attention/idle_options.h"
#include "headshare/attention/scheme_record.h"
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
  std::map<std::string, ModelOptions> others = {};  // options of the other kinds, which are listed and not asked about
};

// Finds what holds the options of a kind: those that are asked about, or a stand-in.
ModelOptions& options_of(const ModelKind& kind, CostCommand& command) {
  if (kind.name() == command.options.kind) return command.options.model;
  return command.others.try_emplace(kind.name(), kind.costed()).first->second;
}

// Returns the options that only some kinds have, by kind and each once. An option that the kind in question has is its
// own, whichever kind lists it.
std::vector<std::pair<const ModelKind*, Fields>> own_options(CostCommand& command) {
  ModelOptions& asked = command.options.model;
  Fields of_asked = asked.kind().own_fields(asked);
  std::vector<std::string> listed;
  std::vector<std::pair<const ModelKind*, Fields>> all;
  for (const ModelKind* kind : model_kinds()) {
    Fields own;
    for (Field& one : kind->own_fields(options_of(*kind, command))) {
      if (std::find(listed.begin(), listed.end(), one.name) != listed.end()) continue;
      listed.push_back(one.name);
      const Field* same = find_field(of_asked, one.name);
      own.push_back(same == nullptr ? std::move(one) : *same);
    }
    if (!own.empty()) all.emplace_back(kind, std::move(own));
  }
  return all;
}

// "encoder-decoder" -> "Encoder-decoder".
std::string heading_of(const ModelKind& kind) {
  std::string text = kind.name();
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

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
  made.group("Several workers", fields(options.workers));
  made.group("Model", model_fields(options.model.common()));
  for (auto& [kind, list] : own_options(command)) made.group(heading_of(*kind), std::move(list));
  made.common({"schemes", "kind", "layers", "d-model", "heads", "context", "vocabulary", "sweep", "memory-budget",
               "weight-type", "workers", "json"});
  made.example("cost --layers 12 --d-model 768 --heads 12", "every scheme at the size of GPT-2");
  made.example("cost config.json --weight-type bf16 --cache-type bf16 --memory-budget 24GiB",
               "a published model: the largest batch and the longest context that fit");
  made.example("cost --kind vision-transformer --layers 12 --d-model 192 --heads 3",
               "ViT-tiny: images of 224 x 224 pixels in patches of 16 x 16, 1,000 classes");
  made.example(
      "cost --layers 12 --d-model 768 --heads 12 --workers 8,64,512 --bandwidth 25 --speed 40000 "
      "--step-tokens 524288",
      "what a training step of several workers takes");
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
void check_options(const Arguments& given, const ModelKind& asked) {
  if (!asked.keeps_cache()) {
    for (const char* name : {"memory-budget", "cache-type"}) {
      if (given.given(name))
        throw UsageError(join_text("--", name, " is about decoding; ", with_article(asked), " keeps no cache"));
    }
  }
  ModelOptions of_asked = asked.costed();
  Fields own = asked.own_fields(of_asked);
  Fields had = asked.stored_fields(of_asked);
  for (const Field& one : model_fields(of_asked.common())) {
    if (given.given(one.name) && find_field(had, one.name) == nullptr) {
      throw UsageError(join_text("--", one.name, " is nothing that ", with_article(asked), " has"));
    }
  }
  for (const ModelKind* kind : model_kinds()) {
    ModelOptions options = kind->costed();
    for (const Field& one : kind->own_fields(options)) {
      if (given.given(one.name) && find_field(own, one.name) == nullptr) {
        throw UsageError("--" + one.name + " belongs to --kind " + kind->name());
      }
    }
  }
}

// Throws Error for an option that no token embedding here reads.
void check_embedding(const Arguments& given, const CostOptions& options, const Sweep& sweep) {
  const auto* encoder = options.model.find<EncoderOptions>();
  if (encoder == nullptr) return;
  std::vector<TokenEmbeddingKind> kinds = {encoder->embedding.kind};
  if (sweep.name == "token-embedding") {
    kinds.clear();
    for (const std::string& value : sweep.values) {
      TokenEmbeddingOptions one;
      Fields list = fields(one);
      set_field(list, sweep.name, value, "--sweep");
      kinds.push_back(one.kind);
    }
  }
  check_read_by(kinds, encoder->embedding);
  const bool table = std::find(kinds.begin(), kinds.end(), TokenEmbeddingKind::kTable) != kinds.end();
  HS_CHECK(table || (!given.given("vocabulary") && sweep.name != "vocabulary"),
           "--vocabulary is for a table of tokens, and hashed embeddings have no vocabulary; leave it out");
}

// Throws UsageError for an option about workers without their numbers.
void refuse_idle_workers(const Arguments& given, DataParallelOptions workers) {
  if (!workers.workers.empty()) return;
  given.refuse_idle(names_of(fields(workers)), "needs --workers");
}

// Throws UsageError for an option that no scheme here reads.
void refuse_idle_options(const Arguments& given, const CostOptions& options, const Sweep& sweep) {
  const auto* translator = options.model.find<EncoderDecoderOptions>();
  std::vector<std::string> schemes;
  for (const std::string& scheme : chosen_schemes(options.schemes)) {
    const std::vector<std::string> sites = translator == nullptr ? Words{scheme} : site_schemes(*translator, scheme);
    schemes.insert(schemes.end(), sites.begin(), sites.end());
  }
  const IdleOptions idle = idle_scheme_options(schemes);
  given.refuse_idle(idle);
  refuse_idle_sweep({sweep.name}, idle);
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
  check_options(typed, options.model.kind());
  arguments_of(command).repeat(typed);
  refuse_idle_workers(typed, options.workers);
  Sweep sweep;
  const std::vector<SchemeCost> costs = as_usage([&] {
    sweep = parse_sweep(options.sweep, swept_fields(options.model));
    check_embedding(typed, options, sweep);
    refuse_idle_options(typed, options, sweep);
    return all_costs(options, sweep);
  });
  if (shape) {
    for (const std::string& note : shape->notes) notice(note);
  }
  const std::string source = shape ? command.model_path + " (" + shape->model_type + ")" : "";
  print_result(
      command.json, [&] { return costs_json(costs, options); },
      [&] { print(costs_text(costs, options, sweep, source, terminal_width(Stream::kOut))); });
  return kOk;
}

}  // namespace headshare
