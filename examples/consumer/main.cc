// This program shows what a project gets from an installed headshare: an attention layer by the name of its scheme, the
// costs of schemes in a model, and a comparison of trained models. Its argument is the directory that the comparison
// fills.
#include <ATen/ATen.h>

#include <iostream>

#include "headshare/attention/attention.h"
#include "headshare/compare/method.h"
#include "headshare/host/process_host.h"
#include "headshare/models/cost.h"

namespace {

using namespace headshare;

void use_layers() {
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::ones({1, 3, 64});  // [B, T, E]
  for (const std::string scheme : {"mha", "mhe_mul"}) {
    Attention layer(AttentionOptions{.scheme = scheme, .d_model = 64, .heads = 4});
    initialise(*layer, /*seed=*/1);
    const at::Tensor y = layer->self(x, {.causal = true});  // [B, T, E]
    const AttentionCost cost = layer->scheme().cost();
    std::cout << scheme << ": " << cost.parameters << " parameters, " << cost.cache_elements
              << " cached elements per token, output " << y.sizes() << "\n";
  }
}

// Prints what schemes cost in a model of GPT-2's size whose weights and cache have 1 GiB.
void ask_for_costs() {
  CostOptions question = cost_options();
  question.model.common().layers = 12;
  question.model.common().attention.d_model = 768;
  question.model.common().attention.heads = 12;
  question.schemes = {"mha", "mhe_mul"};
  question.memory_budget = 1 << 30;
  for (const SchemeCost& one : all_costs(question, {})) {
    std::cout << one.scheme << ": " << one.size.total_parameters << " parameters, room for a context of "
              << one.longest_context << " tokens\n";
  }
}

void compare(const std::string& directory) {
  CompareCommand command;
  command.out = directory;
  command.comparison = preset_options("offsets", Preset::kQuick);
  command.comparison.schemes = {"mha", "sha"};
  command.comparison.train.steps = 10;
  command.runtime.threads = 1;
  ProcessHost host({.program = HEADSHARE_PROGRAM}, command);
  ComparisonCall call = command.call("consumer");
  for (const Cell& cell : compare(call, host).cells) {
    std::cout << cell.key.variant << ": " << cell.steps << " steps, accuracy " << cell.quality << "\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    use_layers();
    ask_for_costs();
    if (argc == 2) compare(argv[1]);
  } catch (const headshare::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
