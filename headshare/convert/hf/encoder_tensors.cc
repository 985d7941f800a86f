#include "headshare/convert/hf/encoder_tensors.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"

namespace headshare {
namespace {

// The shape of each of our tensors, those of blocks by the first block's names.
std::map<std::string, std::vector<int64_t>> shapes(EncoderOptions one_block) {
  const DeclareOn meta(at::kMeta);
  one_block.layers = 1;
  one_block.layer_groups.reset();
  std::map<std::string, std::vector<int64_t>> found;
  for (const auto& [name, tensor] : model_tensors(*Encoder(one_block))) found.emplace(name, tensor.sizes().vec());
  return found;
}

std::string in_first_block(const std::string& ours) {
  constexpr std::string_view kBlocks = "blocks.";
  if (!ours.starts_with(kBlocks)) return ours;
  return "blocks.0" + ours.substr(ours.find('.', kBlocks.size()));
}

}  // namespace

const std::vector<HfKey>& bert_keys() {
  static const std::vector<HfKey> keys = {{"vocab_size", "vocabulary"},
                                          {"max_position_embeddings", "context"},
                                          {"type_vocab_size", "segments"},
                                          {"hidden_size", "d-model"},
                                          {"num_hidden_layers", "layers"},
                                          {"num_attention_heads", "heads"},
                                          {"intermediate_size", "feed-forward-width"},
                                          {"hidden_dropout_prob", "dropout"},
                                          {"attention_probs_dropout_prob", "attention-dropout"},
                                          {"layer_norm_eps", "norm-epsilon"},
                                          {"initializer_range", "init-deviation"}};
  return keys;
}

const TensorNames& bert_block_parts() {
  static const TensorNames parts = {
      {"attention.self.query", "attention.scheme.query"}, {"attention.self.key", "attention.scheme.key"},
      {"attention.self.value", "attention.scheme.value"}, {"attention.output.dense", "attention.scheme.output"},
      {"attention.output.LayerNorm", "attention_norm"},   {"intermediate.dense", "feed_forward.expand"},
      {"output.dense", "feed_forward.contract"},          {"output.LayerNorm", "feed_forward_norm"}};
  return parts;
}

void add_pair(const std::string& theirs, const std::string& ours, TensorNames* names) {
  for (const char* part : {".weight", ".bias"}) names->emplace_back(theirs + part, ours + part);
}

void add_blocks(const std::string& prefix, const TensorNames& parts, int64_t layers, TensorNames* names,
                const std::string& our_prefix) {
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (const auto& [theirs, ours] : parts) {
      add_pair(join_text(prefix, layer, ".", theirs), join_text(our_prefix, layer, ".", ours), names);
    }
  }
}

std::map<std::string, std::string> take_named(const TensorNames& names,
                                              const std::function<std::vector<int64_t>(const std::string&)>& shape_of,
                                              HfMapping* mapping) {
  std::map<std::string, std::string> taken;
  for (const auto& [theirs, ours] : names) {
    const std::string full =
        mapping->take(theirs, shape_of(ours), ours.ends_with("output_embedding") ? kUntiedAdvice : "");
    taken.emplace(ours, full);
    mapping->add(full, "", ours, [from = mapping->shared_directory(), full] { return from->read(full); });
  }
  return taken;
}

std::map<std::string, std::string> take_encoder(TensorNames names, const EncoderOptions& options,
                                                const std::string& output_layer, HfMapping* mapping) {
  const auto of_first = shapes(options);
  const auto shape_of = [&](const std::string& ours) { return of_first.at(in_first_block(ours)); };
  std::map<std::string, std::string> taken;
  const std::string ours = "token_embedding";
  const auto embedding =
      std::find_if(names.begin(), names.end(), [&](const auto& name) { return name.second == ours; });
  if (options.masked_head && options.tie_embeddings && embedding != names.end()) {
    taken.emplace(ours, mapping->copy_tied({embedding->first, output_layer}, shape_of(ours), ours));
    names.erase(embedding);
  } else if (options.masked_head && embedding != names.end() && !mapping->has(embedding->first)) {
    mapping->take(embedding->first, shape_of(ours),
                  mapping->tied_advice(output_layer));  // which notes that it is missing
    names.erase(embedding);
  }
  taken.merge(take_named(names, shape_of, mapping));
  return taken;
}

EncoderOptions base_encoder() {
  EncoderOptions options;
  options.vocabulary = 30522;
  options.context = 512;
  options.layers = 12;
  options.dropout = options.attention.attention_dropout = 0.1;
  options.attention.d_model = 768;
  options.attention.heads = 12;
  options.feed_forward_width = 3072;
  return options;
}

void refuse_other_encoders(const HfConfig& config, const std::string& model) {
  HS_CHECK(!config.flag("is_decoder", false), config.config_key("is_decoder"), " is true: headshare reads ", model,
           " as an encoder");
  const nlohmann::json& positions = config.value("position_embedding_type");
  HS_CHECK(positions.is_null() || positions == "absolute", config.config_key("position_embedding_type"), " is ",
           brief_json(positions), "; headshare reads absolute positions");
}

TaskHeadOptions read_pooled_head(const HfDirectory& directory, const HfMapping& tensors,
                                 const std::string& pooler_weight, const std::string& multiple_choice) {
  if (tensors.has("qa_outputs.weight")) return {.kind = TaskHeadKind::kToken, .outputs = 2};
  if (!tensors.has("classifier.weight") || !tensors.has(pooler_weight)) return {};
  // A number for each choice, whatever id2label says.
  if (directory.architecture() == multiple_choice) return {.kind = TaskHeadKind::kText, .outputs = 1};
  const TaskHeadOptions head = read_classes(directory);
  check_problem_type(directory, head.outputs);
  return head;
}

std::string output_bias_name(const std::string& head, const EncoderOptions& options, const HfMapping& tensors) {
  const std::string own = head + "bias";
  const std::string added = head + "decoder.bias";
  const bool both = tensors.has(own) && tensors.has(added);
  if (both) return options.tie_embeddings ? own : added;
  return tensors.has(added) ? added : own;
}

TaskHeadOptions read_classes(const HfConfig& config) {
  TaskHeadOptions head{.kind = TaskHeadKind::kText, .outputs = 2};
  read_keys(config, {{"num_labels", "outputs"}}, {field("outputs", &head.outputs, "", {.min = 1, .max = 1 << 20})});
  const nlohmann::json& names = config.value("id2label");
  if (names.is_null()) return head;
  const std::string where = config.config_key("id2label");
  HS_CHECK(names.is_object() && !names.empty(), where, " is ", brief_json(names), ", not an object of class names");
  const auto named = static_cast<int64_t>(names.size());
  // Of a number and a list that disagree, transformers takes the number and drops the names.
  if (!config.value("num_labels").is_null() && named != head.outputs) return head;
  head.outputs = named;
  for (int64_t i = 0; i < head.outputs; ++i) {
    const auto name = names.find(std::to_string(i));
    HS_CHECK(name != names.end() && name->is_string(), where, " has no name for class ", i, " of ", head.outputs);
    head.labels.push_back(name->get<std::string>());
  }
  return head;
}

void note_head_dropout(const HfConfig& config, const char* key, const nlohmann::json& usual,
                       const EncoderOptions& options, std::vector<std::string>* notes) {
  const nlohmann::json& set = config.value(key);
  const nlohmann::json theirs = set.is_null() ? usual : set;
  if (options.task_head.kind == TaskHeadKind::kNone || theirs.is_null() || theirs == options.dropout) return;
  notes->push_back(join_text("one dropout serves the encoder and the head of its task: that of the encoder, ",
                             options.dropout, ", is kept, ", key, " ", brief_json(theirs), " is not"));
}

std::string multiple_choice_note(const std::string& name) {
  return "the head of " + name + " becomes a text head that gives each choice a number";
}

void check_problem_type(const HfConfig& config, int64_t outputs) {
  const nlohmann::json& type = config.value("problem_type");
  const char* ours = outputs == 1 ? "regression" : "single_label_classification";
  HS_CHECK(type.is_null() || type == ours, config.config_key("problem_type"), " is ", brief_json(type), " with ",
           outputs, outputs == 1 ? " output" : " outputs", "; headshare's heads of ", outputs, " are for ", ours,
           ". If the model is of that type, correct problem_type; else convert it without its head: "
           "AutoModel.from_pretrained(DIR).save_pretrained(NEW_DIR)");
}

}  // namespace headshare
