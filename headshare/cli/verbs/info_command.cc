// headshare info: what is in a model, what this machine supports, which kernel runs and why.
#include "headshare/attention/idle_options.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/tables/kernel_report.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/host/machine.h"
#include "headshare/host/model_description.h"
#include "headshare/host/runtime_options.h"

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

std::string card_text(size_t index, const GraphicsCard& card) {
  return join_text("cuda:", index, " ", card.name, ", ", format_bytes(static_cast<double>(card.memory_bytes)),
                   ", compute capability ", card.major, ".", card.minor, "\n");
}

// Lists the cards, or says why there are none; a CUDA build of libtorch says what it was built for.
std::string cuda_text(const CudaFacts& cuda) {
  if (const std::string reason = why_no_card(cuda); !reason.empty()) return "none: " + reason + "\n";
  std::string text;
  for (size_t i = 0; i < cuda.driver.cards.size(); ++i) text += card_text(i, cuda.driver.cards[i]) + "             ";
  return text + join_text("driver ", cuda.driver.version, " (CUDA ", cuda_version_text(cuda.driver.cuda),
                          "), libtorch with CUDA ", cuda_version_text(cuda.built_for),
                          cuda.cudnn == 0 ? "" : " and cuDNN " + cudnn_version_text(cuda.cudnn), "\n");
}

std::string backend_text(const Machine::Backend& one) {
  return join_text("             ", one.name, one.device.empty() ? "" : " (" + one.device + " alone)", ": ",
                   one.summary, "\n");
}

std::string machine_text(const Machine& machine) {
  std::string text = join_text(
      "headshare    ", machine.headshare, " with libtorch ", machine.torch, "\nprocessor    ", machine.processor, ", ",
      machine.cores, " cores, ", machine.threads, " threads, ", machine.instructions, " kernels\nmemory       ",
      format_bytes(static_cast<double>(machine.memory_bytes)), ", ", format_bytes(machine.memory_available_bytes),
      " available\nCUDA         ", cuda_text(machine.cuda), "attention    backends, first choice first:\n");
  for (const Machine::Backend& one : machine.attention_backends) text += backend_text(one);
  return text;
}

std::string tokenizer_text(const TokenizerDescription& tokenizer) {
  return join_text(tokenizer.kind, ", ",
                   tokenizer.vocabulary_size ? std::to_string(*tokenizer.vocabulary_size) + " tokens" : "no vocabulary",
                   tokenizer.lossless ? ", lossless" : "", tokenizer.end_of_text ? ", with an end-of-text token" : "");
}

std::string cache_text(const ModelDescription& model) {
  std::string text;
  if (model.keeps_cache) {
    const int64_t share = model.options.value("share-kv-layers", int64_t{1});
    text += join_text("cache        ", format_bytes(static_cast<double>(model.size.cache_bytes_per_token)),
                      " per token, ", model.size.cache_elements_per_token, " elements ",
                      share == 1 ? "a layer" : join_text("for every ", share, " layers"), "\n");
  }
  if (model.reads_a_source) {
    text += join_text("             ", format_bytes(static_cast<double>(model.size.source_cache_bytes_per_token)),
                      " per token of the source\n");
  }
  return text;
}

std::string model_text(const ModelDescription& model, int width) {
  const auto count = [](int64_t number) { return format_count(static_cast<double>(number)); };
  std::string text = join_text("model        ", model.path.string(), ", ", model.kind, "\nweights      ", model.tensors,
                               " tensors, ", format_bytes(static_cast<double>(model.weights_bytes)), "\n");
  text += join_text("parameters   ", count(model.size.total_parameters), ", of these attention ",
                    count(model.size.attention_parameters), " (effective ",
                    count(model.size.attention_parameters_effective), "), token embedding ",
                    count(model.size.embedding_parameters), "\n", cache_text(model));
  if (model.verbs.empty())
    text += "tokenizer    " + (model.tokenizer ? tokenizer_text(*model.tokenizer) : "none") + "\n";
  if (model.source_tokenizer) text += "             of the source: " + tokenizer_text(*model.source_tokenizer) + "\n";
  if (const auto& head = model.task_head) {
    text += join_text("task head    reads ", head->reads, ", ", head->outputs, " outputs",
                      head->labels.empty() ? "" : " " + nlohmann::json(head->labels).dump(), "\n");
  }
  if (model.step) text += join_text("training     step ", *model.step, "\n");
  if (!model.verbs.empty()) text += "verbs        " + wrap(list_text(model.verbs), width, 13) + "\n";
  std::string options;
  for (const auto& [name, value] : model.options.items()) {
    options +=
        (options.empty() ? "" : ", ") + name + " " + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text + "options      " + wrap(options, width, 13) + "\n";
}

// Returns "instructions: libtorch AVX512".
std::string instructions_text() {
  const InstructionSets sets = instruction_sets();
  return join_text("instructions: libtorch ", sets.libtorch, ", headshare ", sets.headshare, "\n");
}

void refuse_idle_options(const Arguments& arguments, InfoOptions options) {
  const std::vector<std::string> of_model = names_of(fields(options.model));
  if (!options.kernels) {
    arguments.refuse_idle(names_of(fields(options.problem)), "is about --kernels, which is not given");
    arguments.refuse_idle(of_model, "is about --kernels, which is not given");
  } else if (!options.model_path.empty()) {
    arguments.refuse_idle(of_model, "describes a model, and MODEL is one");
  } else {
    arguments.refuse_idle(idle_scheme_options({options.model.attention.scheme}));
  }
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
  refuse_idle_options(arguments, options);
  const c10::Device device = start_runtime(options.runtime);
  std::optional<ModelDescription> described;
  ModelOptions model;
  if (options.model_path.empty()) {
    model = as_usage([&] { return resolve(options.model); });
  } else {
    const fs::path directory = find_checkpoint(options.model_path);
    model = read_options(directory);
    described = describe_checkpoint(directory, model);
  }
  std::vector<KernelRow> kernels;
  if (options.kernels) kernels = kernel_rows(options.problem, model, device);
  const auto object = [&] {
    Json report = described ? to_json(*described) : options.kernels ? Json() : to_json(describe_machine());
    if (options.kernels) {
      report["instruction_sets"] = to_json(instruction_sets());
      report["kernels"] = kernel_report(kernels);
    }
    return json_text(report, 2) + "\n";
  };
  print_result(options.json, object, [&] {
    const int width = terminal_width(Stream::kOut);
    if (described) {
      print(model_text(*described, width));
    } else if (!options.kernels) {
      print(machine_text(describe_machine()));
    }
    if (options.kernels) print(kernel_text(kernels, width) + instructions_text());
  });
  return kOk;
}

}  // namespace headshare
