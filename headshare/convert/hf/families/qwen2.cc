#include "headshare/convert/hf/families/llama_form.h"
#include "headshare/convert/hf/llama_families.h"

namespace headshare {
namespace {

const LlamaFamily& qwen2_family() {
  static const LlamaFamily family = {.type = "qwen2",
                                     .name = "Qwen2",
                                     .vocabulary = 151936,
                                     .feed_forward_width = 22016,
                                     .context = 32768,
                                     .groups = 32,
                                     .biases = LlamaBiases::kInputs,
                                     .window = LlamaWindow::kAsked};
  return family;
}

std::vector<std::string> qwen2_objections(const ModelOptions& options) {
  return llama_form_objections(
      options.as<DecoderOptions>(),
      {.name = "Qwen2", .scaling = true, .feed_forward_bias = false, .windows = true, .global_layers = true});
}

}  // namespace

HfModelType qwen2_type() {
  HfModelType type = llama_form_type<qwen2_family>();
  type.objections = qwen2_objections;
  type.content = llama_form_content<qwen2_family>;
  return type;
}

}  // namespace headshare
