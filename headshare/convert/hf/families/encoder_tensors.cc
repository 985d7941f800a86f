#include "headshare/convert/hf/families/encoder_tensors.h"

#include <algorithm>
#include <optional>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/strings/format.h"
#include "headshare/convert/hf/written_config.h"

namespace headshare {
namespace {

// A class of transformers, by its name behind that of the family, and the heads that it has. Of several classes with
// the same heads, ours are written as the first.
struct HeadClass {
  const char* name;
  bool pooler, masked_head;
  TaskHeadKind task = TaskHeadKind::kNone;
  std::optional<int64_t> outputs = {};  // nothing: config.json says how many
};

constexpr HeadClass kHeadClasses[] = {
    {.name = "Model", .pooler = true, .masked_head = false},
    {.name = "ForMaskedLM", .pooler = false, .masked_head = true},
    {.name = "ForSequenceClassification", .pooler = true, .masked_head = false, .task = TaskHeadKind::kText},
    {.name = "ForQuestionAnswering", .pooler = false, .masked_head = false, .task = TaskHeadKind::kToken, .outputs = 2},
    {.name = "ForMultipleChoice", .pooler = true, .masked_head = false, .task = TaskHeadKind::kText, .outputs = 1},
    {.name = "ForPreTraining", .pooler = true, .masked_head = true},
    {.name = "LMHeadModel", .pooler = false, .masked_head = true}};

std::string heads_of(const EncoderOptions& o) {
  std::vector<std::string> parts;
  if (o.pooler) parts.emplace_back("its pooler");
  if (o.masked_head) parts.emplace_back("its masked-LM head");
  if (o.three_way_head) parts.emplace_back("its three-way head");
  if (o.task_head.kind != TaskHeadKind::kNone) parts.emplace_back("the head of its task");
  return parts.empty() ? "no head" : list_text(parts);
}

void add_classes(const EncoderOptions& options, nlohmann::json* config) {
  if (options.three_way_head) return add_class_names({"original", "shuffled", "random"}, 3, config);
  const TaskHeadOptions& head = options.task_head;
  if (head.kind != TaskHeadKind::kText) return;
  add_class_names(head.labels, head.outputs, config);
  (*config)["problem_type"] = head.outputs == 1 ? "regression" : "single_label_classification";
}

}  // namespace

std::vector<HfKey> with_block_keys(std::vector<HfKey> keys) {
  keys.insert(keys.end(), {{"hidden_size", "d-model"},
                           {"num_hidden_layers", "layers"},
                           {"num_attention_heads", "heads"},
                           {"intermediate_size", "feed-forward-width"},
                           {"hidden_dropout_prob", "dropout"},
                           {"attention_probs_dropout_prob", "attention-dropout"},
                           {"layer_norm_eps", "norm-epsilon"},
                           {"initializer_range", "init-deviation"}});
  return keys;
}

const std::vector<HfKey>& bert_keys() {
  static const std::vector<HfKey> keys = with_block_keys(
      {{"vocab_size", "vocabulary"}, {"max_position_embeddings", "context"}, {"type_vocab_size", "segments"}});
  return keys;
}

const BlockParts& bert_block_parts() {
  static const BlockParts parts = {
      {"attention.self.query", "attention.scheme.query"}, {"attention.self.key", "attention.scheme.key"},
      {"attention.self.value", "attention.scheme.value"}, {"attention.output.dense", "attention.scheme.output"},
      {"attention.output.LayerNorm", "attention_norm"},   {"intermediate.dense", "feed_forward.expand"},
      {"output.dense", "feed_forward.contract"},          {"output.LayerNorm", "feed_forward_norm"}};
  return parts;
}

HfShape encoder_shape(const HfConfig& config, const std::string& type, const char* plain,
                      const EncoderOptions& options) {
  return {.options = options,
          .model_type = type,
          .notes = {join_text("the count of parameters includes the encoder and ", heads_of(options), " (",
                              config.architecture().value_or(plain), ")")}};
}

std::vector<std::string> bert_form_objections(const EncoderOptions& o, const BertForm& form) {
  const std::string& name = form.name;
  const std::string no_place = ", which " + name + " has no place for; only headshare reads such a model";
  const std::string way_out =
      join_text("; `train --task ", o.three_way_head ? "three-way" : "mlm", " --bert` makes encoders that BERT holds");
  const bool has_projection_bias = o.attention.projection_bias;
  const TaskHeadOptions& head = o.task_head;
  const Objections all = {
      {is_hashed(o.embedding), "the encoder hashes words (--token-embedding), and " + name +
                                   " has a row for each; name the words that are to have one with --words FILE"},
      {o.three_way_head && (o.masked_head || head.kind != TaskHeadKind::kNone),
       "the encoder has a head of three-way classification beside another" + no_place},
      {o.attention.scheme != "mha",
       "the encoder's attention is " + o.attention.scheme + no_place + "; an encoder of scheme mha can be written"},
      {o.norms != NormPlacement::kAfter,
       "the encoder's norms stand before its parts (--norms pre)" + no_place + way_out},
      {o.positions != PositionKind::kLearned, "the encoder's positions are not learned" + no_place + way_out},
      {(o.segments > 0) != form.segments,
       form.segments ? "the encoder has no segment embedding, and " + name + " always has one (--segments)"
                     : "the encoder has segments" + no_place},
      {!has_projection_bias || !o.feed_forward_bias,
       join_text("the encoder has no biases in ", has_projection_bias ? "its feed-forward part" : "its projections",
                 ", and ", name, " always has them (",
                 has_projection_bias ? "--feed-forward-bias" : "--projection-bias", ")")},
      {o.norm != NormKind::kLayer,
       "the encoder's norms are of another kind than " + name + "'s (--norm rms)" + no_place},
      {o.feed_forward != FeedForwardKind::kPlain, "the encoder's feed-forward part is gated" + no_place},
      {o.pooler && o.pooler_activation != form.pooler, std::string("the encoder's pooler has ") +
                                                           (form.pooler == PoolerActivation::kTanh ? "ReLU" : "tanh") +
                                                           no_place},
      {o.layer_groups && !form.shares_layers,
       "the encoder's layers share their parameters (--layer-groups)" + no_place},
      {o.embedding_width && !form.factorised, "the encoder's embedding is factorised (--embedding-width)" + no_place},
      {o.attention.qk_norm, "the encoder norms queries and keys (--qk-norm)" + no_place},
      {o.attention.content_bias, "the encoder has a content bias" + no_place},
      {head.kind == TaskHeadKind::kWords, "the encoder's head reads two groups of words" + no_place},
      {head.kind == TaskHeadKind::kToken && head.outputs != 2,
       join_text("the encoder's head gives every token ", head.outputs, " numbers", no_place)}};
  return raised(all, why_not_usual_heads(o.attention, "the encoder", no_place));
}

nlohmann::json begin_encoder_config(const std::string& type, const std::string& architecture,
                                    const std::vector<HfKey>& keys, const EncoderOptions& options) {
  nlohmann::json config = begin_config(type, architecture, keys, options);
  add_classes(options, &config);
  return config;
}

std::string architecture_of(const std::string& family, const EncoderOptions& options) {
  const TaskHeadKind task = options.task_head.kind;
  for (const HeadClass& one : kHeadClasses) {
    if (one.task == task && (task != TaskHeadKind::kNone || one.masked_head == options.masked_head)) {
      return family + one.name;
    }
  }
  return family + kHeadClasses[0].name;
}

void set_heads_of_class(const HfConfig& config, const std::string& family, EncoderOptions* options) {
  const std::string own = config.architecture().value_or(family + kHeadClasses[0].name);
  const std::string name = own.substr(std::min(own.find(family) + family.size(), own.size()));
  const HeadClass* found = std::find_if(std::begin(kHeadClasses), std::end(kHeadClasses),
                                        [&](const HeadClass& one) { return name == one.name; });
  const HeadClass& head = found == std::end(kHeadClasses) ? kHeadClasses[0] : *found;
  options->pooler = head.pooler;
  options->masked_head = head.masked_head;
  if (head.task == TaskHeadKind::kNone) return;
  options->task_head =
      head.outputs ? TaskHeadOptions{.kind = head.task, .outputs = *head.outputs} : read_classes(config);
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

void refuse_causal_encoder(const HfConfig& config, const std::string& model) {
  HS_CHECK(!config.flag("is_causal", false), config.config_key("is_causal"), " is true: no token of this ", model,
           " attends to those behind it, and headshare's encoders attend to all; remove the key if the model was "
           "trained without it");
}

void refuse_other_encoders(const HfConfig& config, const std::string& model) {
  refuse_causal_encoder(config, model);
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

void add_class_names(std::vector<std::string> labels, int64_t classes, nlohmann::json* config) {
  for (int64_t i = static_cast<int64_t>(labels.size()); i < classes; ++i) labels.push_back(join_text("LABEL_", i));
  for (size_t i = 0; i < labels.size(); ++i) {
    (*config)["id2label"][std::to_string(i)] = labels[i];
    (*config)["label2id"][labels[i]] = i;
  }
}

TaskHeadOptions read_classes(const HfConfig& config) {
  TaskHeadOptions head{.kind = TaskHeadKind::kText, .outputs = 2};
  read_keys(config, {{"num_labels", "outputs"}}, {field("outputs", &head.outputs, "", {.min = 1, .max = 1 << 20})});
  const nlohmann::json& names = config.value("id2label");
  if (names.is_null()) return head;
  const std::string where = config.config_key("id2label");
  HS_CHECK(names.is_object() && !names.empty(), where, " is ", brief_json(names), ", not an object of class names");
  const auto named = static_cast<int64_t>(names.size());
  // If the number and the list disagree, transformers takes the number and drops the names.
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
