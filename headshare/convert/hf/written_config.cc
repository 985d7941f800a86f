#include "headshare/convert/hf/written_config.h"

#include "headshare/base/error.h"
#include "headshare/models/checkpoint.h"

namespace headshare {
namespace {

AttentionOptions with_default_heads(AttentionOptions options) {
  options.head_width.reset();
  options.key_width.reset();
  options.scale.reset();
  return resolve(options);
}

}  // namespace

nlohmann::json begin_config(const std::string& type, const std::string& architecture, const std::vector<HfKey>& keys,
                            const ModelOptions& options) {
  nlohmann::json config = {{"model_type", type},
                           {"architectures", nlohmann::json::array({architecture})},
                           {"tie_word_embeddings", options.common().tie_embeddings},
                           {"dtype", "float32"},
                           {kExportMark, kModelFormatVersion}};
  const nlohmann::json values = stored_option_values(options);
  for (const HfKey& key : keys) config[key.theirs] = values.at(key.ours);
  return config;
}

std::string activation_name(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kGeluTanh:
      return "gelu_pytorch_tanh";
    case ActivationKind::kGeluErf:
      return "gelu";
    case ActivationKind::kRelu:
      return "relu";
    case ActivationKind::kSilu:
      return "silu";
  }
  throw Error("unknown activation");
}

std::vector<std::string> raised(const Objections& objections, const std::string& last) {
  std::vector<std::string> texts;
  for (const auto& [raised, text] : objections) {
    if (raised) texts.push_back(text);
  }
  if (!last.empty()) texts.push_back(last);
  return texts;
}

bool has_usual_scale(const AttentionOptions& o) { return o.scale == with_default_heads(o).scale; }

std::string why_not_usual_heads(const AttentionOptions& o, const std::string& model, const std::string& no_place,
                                bool may_be_unscaled) {
  const AttentionOptions usual = with_default_heads(o);
  if (usual.head_width != o.head_width || usual.key_width != o.key_width) {
    return join_text(model, "'s heads are ", *o.head_width, " wide and its keys ", *o.key_width, " together", no_place);
  }
  if (usual.scale == o.scale || (may_be_unscaled && o.scale == 1)) return "";
  return join_text(model, " scales its scores by ", *o.scale, no_place);
}

}  // namespace headshare
