#include "headshare/convert/hf/families/llama_form.h"
#include "headshare/convert/hf/llama_families.h"

namespace headshare {
namespace {

const LlamaFamily& mistral_family() {
  static const LlamaFamily family = {.type = "mistral",
                                     .name = "Mistral",
                                     .vocabulary = 32000,
                                     .feed_forward_width = 14336,
                                     .context = 131072,
                                     .groups = 8,
                                     .window = LlamaWindow::kEveryLayer};
  return family;
}

std::vector<std::string> mistral_objections(const ModelOptions& options) {
  return llama_form_objections(
      options.as<DecoderOptions>(),
      {.name = "Mistral", .scaling = true, .feed_forward_bias = false, .projection_bias = false, .windows = true});
}

}  // namespace

HfModelType mistral_type() {
  HfModelType type = llama_form_type<mistral_family>();
  type.objections = mistral_objections;
  type.content = llama_form_content<mistral_family>;
  return type;
}

}  // namespace headshare
