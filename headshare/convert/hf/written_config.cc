#include "headshare/convert/hf/written_config.h"

#include <ATen/ATen.h>

#include "headshare/attention/schemes/gqa.h"
#include "headshare/base/error.h"
#include "headshare/base/files/file.h"
#include "headshare/base/json/json_input.h"
#include "headshare/models/checkpoint.h"
#include "headshare/text/text_borders.h"

namespace headshare {

void check_has_mark(const fs::path& directory) {
  const nlohmann::json config = json_or_discarded(read_file(directory / "config.json"));
  HS_CHECK(config.is_object() && config.contains(kExportMark), directory.string(),
           " was not written by headshare, so it is not overwritten; choose another name");
}
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

void add_ends_of_text(const ModelToWrite& model, nlohmann::json* config) {
  const Tokenizer* tokenizer = model.tokenizers.target.get();
  const auto end = tokenizer == nullptr ? std::nullopt : tokenizer->special(SpecialToken::kEndOfText);
  const auto begin = tokenizer == nullptr ? std::nullopt : begins_texts(*tokenizer);
  (*config)["bos_token_id"] = begin ? nlohmann::json(*begin) : end ? nlohmann::json(*end) : nlohmann::json();
  (*config)["eos_token_id"] = end ? nlohmann::json(*end) : nlohmann::json();
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

namespace {

// Names what no format has a place for in heads of any width; "" where there is nothing.
std::string added_part(const AttentionOptions& o, const std::string& model, const std::string& no_place) {
  if (o.gate != OutputGate::kNone) return model + "'s heads have an output gate (--output-gate)" + no_place;
  if (o.kv_shift || o.key_offset) {
    return model + "'s keys meet those of the token before (--kv-shift, --key-offset)" + no_place;
  }
  if (o.window) return model + "'s attention has a local window (--local-window)" + no_place;
  return o.sinks ? model + "'s heads have sinks (--attention-sinks)" + no_place : "";
}

}  // namespace

std::string why_not_usual_heads(const AttentionOptions& o, const std::string& model, const std::string& no_place,
                                bool may_be_unscaled) {
  if (const std::string part = added_part(o, model, no_place); !part.empty()) return part;
  const AttentionOptions usual = with_default_heads(o);
  if (usual.head_width != o.head_width || usual.key_width != o.key_width) {
    return join_text(model, "'s heads are ", *o.head_width, " wide and its keys ", *o.key_width, " together", no_place);
  }
  if (usual.scale == o.scale || (may_be_unscaled && o.scale == 1)) return "";
  return join_text(model, " scales its scores by ", *o.scale, no_place);
}

NamedTensors with_zero_biases(NamedTensors tensors) {
  NamedTensors added;
  for (const auto& [name, tensor] : tensors) {
    const bool projects =
        name.find("attention.scheme.") != std::string::npos || name.find(".feed_forward.") != std::string::npos;
    if (!projects || !name.ends_with(".weight")) continue;
    const std::string bias = name.substr(0, name.rfind('.')) + ".bias";
    if (!tensors.contains(bias)) added.emplace(bias, at::zeros({tensor.size(0)}));
  }
  tensors.merge(added);
  return tensors;
}

bool has_uneven_groups(const AttentionOptions& o) {
  const auto& own = o.own.get<GqaOptions>();
  return o.scheme == "gqa" && (own.query_heads || own.key_heads || own.value_heads);
}

std::string why_not_head_width(const AttentionOptions& o, const std::string& model, const std::string& no_place) {
  if (const std::string part = added_part(o, model, no_place); !part.empty()) return part;
  AttentionOptions usual = o;
  usual.key_width.reset();
  usual.scale.reset();
  usual = resolve(usual);
  if (usual.key_width != o.key_width) {
    return join_text(model, "'s keys are ", *o.key_width, " wide together (--key-width)", no_place);
  }
  return usual.scale == o.scale ? "" : join_text(model, " scales its scores by ", *o.scale, no_place);
}

}  // namespace headshare
