// headshare info: what is in a model, what this machine supports, which kernel runs and why.
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <fstream>
#include <thread>

#include "headshare/base/format.h"
#include "headshare/base/json_input.h"
#include "headshare/cli/machine.h"
#include "headshare/cli/tables/kernel_report.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/data/safetensors.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/size.h"
#include "headshare/ops/head_attention.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

using Json = nlohmann::ordered_json;

struct InfoOptions {
  std::string model_path;
  bool json = false;
  bool kernels = false;
  KernelOptions problem;
  DecoderOptions model;
  RuntimeOptions runtime;
};

Fields own_fields(InfoOptions& o) {
  return {
      field("json", &o.json, "print one JSON object"),
      field("kernels", &o.kernels, "which attention kernel runs, and what keeps the faster ones from it"),
  };
}

std::string machine_text(const Json& report) {
  std::string text = join_text("headshare    ", report["headshare"].get<std::string>(), " with libtorch ",
                               report["torch"].get<std::string>(), "\nprocessor    ",
                               report["processor"].get<std::string>(), ", ", report["cores"].dump(), " cores, ",
                               report["threads"].dump(), " threads, ", report["instructions"].get<std::string>(),
                               " kernels\nmemory       ", format_bytes(report["memory_bytes"]), ", ",
                               format_bytes(report["memory_available_bytes"]), " available\nCUDA         ",
                               report["cuda_devices"].dump(), " devices\nattention    backends, first choice first:\n");
  for (const Json& one : report["attention_backends"]) {
    text += "             " + one["name"].get<std::string>() + ": " + one["summary"].get<std::string>() + "\n";
  }
  return text;
}

// The step a training checkpoint was taken at, when there is one.
std::optional<int64_t> training_step(const fs::path& directory) {
  const fs::path path = directory / "training.json";
  if (!fs::exists(path)) return std::nullopt;
  return json_count(json_or_discarded(read_file(path)), "step");
}

void add_task_head(const TaskHeadOptions& head, Json* report) {
  if (head.kind == TaskHeadKind::kNone) return;
  for (const auto& [kind, name] : task_head_names()) {
    if (kind == head.kind) {
      (*report)["task_head"] = {{"reads", name}, {"outputs", head.outputs}, {"labels", head.labels}};
    }
  }
}

Json tokenizer_report(const Tokenizer& tokenizer) {
  return {{"kind", tokenizer.kind()},
          {"vocabulary_size", tokenizer.words() != nullptr ? Json() : Json(tokenizer.vocabulary_size())},
          {"lossless", tokenizer.lossless()},
          {"end_of_text", tokenizer.special(SpecialToken::kEndOfText).has_value()}};
}

Json model_report(const fs::path& directory, const ModelOptions& options) {
  const SafetensorsFile weights(directory / "model.safetensors");
  const ModelSize size = size_of(options);
  Json report = {{"path", directory.string()},
                 {"kind", kind_name(options)},
                 {"weights_bytes", fs::file_size(directory / "model.safetensors")},
                 {"tensors", weights.tensors().size()},
                 {"attention_parameters", size.attention_parameters},
                 {"attention_parameters_effective", size.attention_parameters_effective},
                 {"embedding_parameters", size.embedding_parameters},
                 {"total_parameters", size.total_parameters}};
  if (!std::holds_alternative<EncoderOptions>(options)) {
    report["kv_cache_elements_per_token"] = size.cache_elements_per_token;
    report["kv_cache_bytes_per_token"] = size.cache_bytes_per_token;
  }
  if (is_encoder_decoder(options)) report["source_cache_bytes_per_token"] = size.source_cache_bytes_per_token;
  for (const std::string name : {"tokenizer", "source_tokenizer"}) {
    const fs::path path = directory / (name + ".json");
    if (fs::exists(path)) report[name] = tokenizer_report(*load_tokenizer(path));
  }
  if (const auto step = training_step(directory)) report["step"] = *step;
  const auto* encoder = std::get_if<EncoderOptions>(&options);
  if (encoder != nullptr) add_task_head(encoder->task_head, &report);
  report["options"] = stored_option_values(options);
  if (encoder != nullptr) {
    std::vector<std::string> idle = idle_fields(encoder->embedding.kind);
    // Without a vocabulary nothing scores one.
    if (encoder->embedding.kind != TokenEmbeddingKind::kTable)
      idle.insert(idle.end(), {"vocabulary", "tie-embeddings"});
    for (const std::string& name : idle) report["options"].erase(name);
  }
  return report;
}

std::string tokenizer_text(const Json& tokenizer) {
  return join_text(
      tokenizer["kind"].get<std::string>(), ", ",
      tokenizer["vocabulary_size"].is_null() ? "no vocabulary" : tokenizer["vocabulary_size"].dump() + " tokens",
      tokenizer["lossless"] == true ? ", lossless" : "",
      tokenizer["end_of_text"] == true ? ", with an end-of-text token" : "");
}

std::string model_text(const Json& report, int width) {
  const auto count = [&](const char* key) { return format_count(report[key].get<double>()); };
  std::string text =
      join_text("model        ", report["path"].get<std::string>(), ", ", report["kind"].get<std::string>(),
                "\nweights      ", report["tensors"].dump(), " tensors, ", format_bytes(report["weights_bytes"]), "\n");
  text += join_text("parameters   ", count("total_parameters"), ", of these attention ", count("attention_parameters"),
                    " (effective ", count("attention_parameters_effective"), "), token embedding ",
                    count("embedding_parameters"), "\n");
  if (report.contains("kv_cache_bytes_per_token")) {
    text += join_text("cache        ", format_bytes(report["kv_cache_bytes_per_token"]), " per token, ",
                      report["kv_cache_elements_per_token"].dump(), " elements a layer\n");
  }
  if (report.contains("source_cache_bytes_per_token")) {
    text +=
        join_text("             ", format_bytes(report["source_cache_bytes_per_token"]), " per token of the source\n");
  }
  text += "tokenizer    " + (report.contains("tokenizer") ? tokenizer_text(report["tokenizer"]) : "none") + "\n";
  if (report.contains("source_tokenizer")) {
    text += "             of the source: " + tokenizer_text(report["source_tokenizer"]) + "\n";
  }
  if (report.contains("task_head")) {
    const Json& head = report["task_head"];
    text += join_text("task head    reads ", head["reads"].get<std::string>(), ", ", head["outputs"].dump(), " outputs",
                      head["labels"].empty() ? "" : join_text(" ", head["labels"].dump()), "\n");
  }
  if (report.contains("step")) text += "training     step " + report["step"].dump() + "\n";
  std::string options;
  for (const auto& [name, value] : report["options"].items()) {
    options +=
        (options.empty() ? "" : ", ") + name + " " + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text + "options      " + wrap(options, width, 13) + "\n";
}

// "instructions: libtorch AVX512"
std::string instructions_text() {
  std::string text;
  const Json sets = instruction_sets();
  for (const auto& [kernels, set] : sets.items()) {
    text += (text.empty() ? "instructions: " : ", ") + kernels + " " + set.get<std::string>();
  }
  return text + "\n";
}

}  // namespace

int run_info(const Words& words) {
  InfoOptions options;
  Arguments arguments("info", "Shows what is in a model; without one, what this machine supports.");
  arguments.optional("MODEL", "a checkpoint or run directory", &options.model_path);
  arguments.group("What to print", own_fields(options));
  arguments.group("Kernels", fields(options.problem));
  arguments.group("Model", fields(options.model));
  arguments.group("Computing", fields(options.runtime));
  arguments.common({"json", "kernels", "keys", "scheme", "precision"});
  arguments.example("info run", "what is in a model");
  arguments.example("info --kernels --scheme mhe_add --keys 4096", "which attention kernel runs, and why");
  arguments.note(
      "The options under Kernels say which problem --kernels is about, those under Model for which model, when "
      "no MODEL is given.");
  if (!arguments.parse(words)) return kOk;
  const c10::Device device = start_runtime(options.runtime);
  Json report;
  ModelOptions model;
  if (options.model_path.empty()) {
    model = as_usage([&] { return resolve(options.model); });
    if (!options.kernels) report = describe_machine();
  } else {
    const fs::path directory = find_checkpoint(options.model_path);
    model = read_options(directory);
    check_weights(directory, model);
    report = model_report(directory, model);
  }
  std::vector<KernelRow> kernels;
  if (options.kernels) kernels = kernel_rows(options.problem, model, device);
  if (options.json) {
    if (options.kernels) {
      report["instruction_sets"] = instruction_sets();
      report["kernels"] = kernel_report(kernels);
    }
    print_json(report.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n");
    return kOk;
  }
  const int width = terminal_width(Stream::kOut);
  if (!options.model_path.empty()) {
    print(model_text(report, width));
  } else if (!options.kernels) {
    print(machine_text(report));
  }
  if (options.kernels) print(kernel_text(kernels, width) + instructions_text());
  return kOk;
}

}  // namespace headshare
