#include "headshare/convert/hf/bert.h"

#include <ATen/ATen.h>

#include <map>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/convert/hf/encoder_tensors.h"
#include "headshare/convert/hf/mapping.h"

namespace headshare {
namespace {

using Directory = std::shared_ptr<const HfDirectory>;
using Names = TensorNames;

constexpr const char* kHead = "cls.predictions.";
constexpr const char* kOutputBias = "masked_head.output_bias";
constexpr const char* kMultipleChoice = "BertForMultipleChoice";

// A task's head in BertForSequenceClassification and BertForQuestionAnswering; "": BERT has none such.
std::string task_head_name(TaskHeadKind kind) {
  return kind == TaskHeadKind::kText ? "classifier" : kind == TaskHeadKind::kToken ? "qa_outputs" : "";
}

// Every tensor of ours and its name in BertForMaskedLM without the prefix "bert.".
Names tensor_names(const EncoderOptions& options) {
  Names names = {{"embeddings.word_embeddings.weight", "token_embedding"},
                 {"embeddings.position_embeddings.weight", "position_embedding"},
                 {"embeddings.token_type_embeddings.weight", "segment_embedding"}};
  const auto pair = [&](const std::string& theirs, const std::string& ours) { add_pair(theirs, ours, &names); };
  pair("embeddings.LayerNorm", "embedding_norm");
  add_blocks("encoder.layer.", bert_block_parts(), options.layers, &names);
  if (options.pooler) pair("pooler.dense", "pooler");
  if (options.task_head.kind != TaskHeadKind::kNone) pair(task_head_name(options.task_head.kind), "task_head.output");
  if (options.three_way_head) pair("classifier", "three_way_head.output");
  if (!options.masked_head) return names;
  pair(join_text(kHead, "transform.dense"), "masked_head.dense");
  pair(join_text(kHead, "transform.LayerNorm"), "masked_head.norm");
  if (!options.tie_embeddings) names.emplace_back(join_text(kHead, "decoder.weight"), "masked_head.output_embedding");
  names.emplace_back(join_text(kHead, "bias"), kOutputBias);
  return names;
}

// "bert.x" and "x" are one, and so are a norm's old names gamma and beta and the new ones.
std::string plain_name(const std::string& full) {
  constexpr std::string_view kPrefix = "bert.";
  std::string name = full.starts_with(kPrefix) ? full.substr(kPrefix.size()) : full;
  for (const auto& [old, now] : {std::pair<std::string, std::string>{"gamma", "weight"}, {"beta", "bias"}}) {
    if (name.ends_with("LayerNorm." + old)) name.replace(name.size() - old.size(), old.size(), now);
  }
  return name;
}

void refuse_what_encoders_lack(const HfConfig& config) {
  refuse_what_we_lack(config);
  refuse_other_classes(
      config, {"BertModel", "BertForMaskedLM", "BertForPreTraining", "BertLMHeadModel", "BertForNextSentencePrediction",
               "BertForSequenceClassification", kMultipleChoice, "BertForQuestionAnswering"});
  refuse_other_encoders(config, "BERT");
}

// The options of the configuration; pooler and heads are not among them.
EncoderOptions read_options(const HfConfig& config) {
  refuse_what_encoders_lack(config);
  EncoderOptions options = base_encoder();
  read_keys(config, bert_keys(), stored_fields(options));
  HS_CHECK(options.segments > 0, config.config_key("type_vocab_size"), " is 0, and BERT has at least 1");
  options.activation = read_activation(config, "hidden_act", ActivationKind::kGeluErf);
  options.tie_embeddings = config.flag("tie_word_embeddings", true);
  return options;
}

// Pooler and heads as the tensors have them.
EncoderOptions read_options(const HfDirectory& directory, const HfMapping& tensors) {
  EncoderOptions options = read_options(directory);
  options.pooler = tensors.has("pooler.dense.weight");
  options.task_head = read_pooled_head(directory, tensors, "pooler.dense.weight", kMultipleChoice);
  options.masked_head = tensors.has(join_text(kHead, "transform.dense.weight"));
  return resolve_read(directory, options);
}

// What repeats other tensors, belongs to the next-sentence task or is no parameter.
void leave_out_the_rest(const EncoderOptions& options, const std::map<std::string, std::string>& taken,
                        HfMapping* mapping) {
  mapping->leave_out("embeddings.position_ids");
  mapping->leave_out("cls.seq_relationship.weight");
  mapping->leave_out("cls.seq_relationship.bias");
  if (!options.masked_head) return;
  if (!options.tie_embeddings) return mapping->leave_out(join_text(kHead, "bias"));
  mapping->leave_out_copy(join_text(kHead, "decoder.bias"), {options.vocabulary}, taken.at(kOutputBias));
}

}  // namespace

EncoderOptions bert_options(const HfConfig& config) {
  EncoderOptions options = read_options(config);
  const std::string name = config.architecture().value_or("BertModel");
  const bool pre_training = name == "BertForPreTraining";
  options.masked_head = pre_training || name == "BertForMaskedLM" || name == "BertLMHeadModel";
  options.pooler = pre_training || (!options.masked_head && name != "BertForQuestionAnswering");
  if (name == "BertForQuestionAnswering") options.task_head = {.kind = TaskHeadKind::kToken, .outputs = 2};
  if (name == kMultipleChoice) options.task_head = {.kind = TaskHeadKind::kText, .outputs = 1};
  if (name == "BertForSequenceClassification") options.task_head = read_classes(config);
  return resolve_read(config, options);
}

ForeignModel map_bert(const Directory& directory) {
  HfMapping mapping(directory, plain_name);
  const EncoderOptions options = read_options(*directory, mapping);
  ForeignModel foreign{.options = options, .tokenizer = directory->tokenizer()};
  Names names = tensor_names(options);
  for (auto& [theirs, ours] : names) {
    if (ours == kOutputBias) theirs = output_bias_name(kHead, options, mapping);
  }
  const auto taken = take_encoder(names, options, join_text(kHead, "decoder.weight"), &mapping);
  if (mapping.has("cls.seq_relationship.weight")) {
    foreign.notes.push_back("the next-sentence head (cls.seq_relationship) is left out: headshare has none");
  }
  if (directory->architecture() == kMultipleChoice) {
    foreign.notes.push_back(multiple_choice_note(kMultipleChoice));
  }
  if (options.task_head.kind == TaskHeadKind::kText) {
    note_head_dropout(*directory, "classifier_dropout", {}, options, &foreign.notes);
  }
  leave_out_the_rest(options, taken, &mapping);
  mapping.finish("BERT", &foreign);
  return foreign;
}

void check_bert_holds(const EncoderOptions& o) {
  const std::string no_place = ", which BERT has no place for; only headshare reads such a model";
  const std::string way_out =
      join_text("; `train --task ", o.three_way_head ? "three-way" : "mlm", " --bert` makes encoders that BERT holds");
  const std::string scheme = o.attention.scheme;
  HS_CHECK(!is_hashed(o.embedding), "the encoder hashes words (--token-embedding), and BERT has a row for each; name ",
           "the words that are to have one with --words FILE");
  HS_CHECK(!o.three_way_head || (!o.masked_head && o.task_head.kind == TaskHeadKind::kNone),
           "the encoder has a head of three-way classification beside another", no_place);
  HS_CHECK(scheme == "mha", "the encoder's attention is ", scheme, no_place,
           "; an encoder of scheme mha can be written");
  HS_CHECK(o.norms == NormPlacement::kAfter, "the encoder's norms stand before its parts (--norms pre)", no_place,
           way_out);
  HS_CHECK(o.positions == PositionKind::kLearned, "the encoder's positions are not learned", no_place, way_out);
  HS_CHECK(o.segments > 0, "the encoder has no segment embedding, and BERT always has one (--segments)");
  HS_CHECK(o.attention.projection_bias && o.feed_forward_bias, "the encoder has no biases in ",
           o.attention.projection_bias ? "its feed-forward part" : "its projections", ", and BERT always has them (",
           o.attention.projection_bias ? "--feed-forward-bias" : "--projection-bias", ")");
  HS_CHECK(o.norm == NormKind::kLayer, "the encoder's norms are of another kind than BERT's (--norm rms)", no_place);
  HS_CHECK(o.feed_forward == FeedForwardKind::kPlain, "the encoder's feed-forward part is gated", no_place);
  HS_CHECK(!o.pooler || o.pooler_activation == PoolerActivation::kTanh, "the encoder's pooler has ReLU", no_place);
  HS_CHECK(!o.layer_groups, "the encoder's layers share their parameters (--layer-groups)", no_place);
  HS_CHECK(!o.embedding_width, "the encoder's embedding is factorised (--embedding-width)", no_place);
  HS_CHECK(!o.attention.qk_norm, "the encoder norms queries and keys (--qk-norm)", no_place);
  HS_CHECK(!o.attention.content_bias, "the encoder has a content bias", no_place);
  const TaskHeadOptions& head = o.task_head;
  HS_CHECK(head.kind != TaskHeadKind::kWords, "the encoder's head reads two groups of words", no_place);
  HS_CHECK(head.kind != TaskHeadKind::kToken || head.outputs == 2, "the encoder's head gives every token ",
           head.outputs, " numbers", no_place);
  EncoderOptions plain = o;
  plain.attention.head_width.reset();
  plain.attention.key_width.reset();
  plain.attention.scale.reset();
  plain = resolve(plain);
  HS_CHECK(plain.attention.head_width == o.attention.head_width && plain.attention.key_width == o.attention.key_width,
           "the encoder's heads are ", *o.attention.head_width, " wide and its keys ", *o.attention.key_width,
           " together", no_place);
  HS_CHECK(plain.attention.scale == o.attention.scale, "the encoder scales its scores by ", *o.attention.scale,
           no_place);
}

namespace {

std::string architecture(const EncoderOptions& options) {
  if (options.three_way_head) return "BertForTokenClassification";
  switch (options.task_head.kind) {
    case TaskHeadKind::kText:
      return "BertForSequenceClassification";
    case TaskHeadKind::kToken:
      return "BertForQuestionAnswering";
    default:
      return options.masked_head ? "BertForMaskedLM" : "BertModel";
  }
}

void add_labels(const std::vector<std::string>& labels, nlohmann::json* config) {
  for (size_t i = 0; i < labels.size(); ++i) {
    (*config)["id2label"][std::to_string(i)] = labels[i];
    (*config)["label2id"][labels[i]] = i;
  }
}

void add_classes(const EncoderOptions& options, nlohmann::json* config) {
  if (options.three_way_head) return add_labels({"original", "shuffled", "random"}, config);
  const TaskHeadOptions& head = options.task_head;
  if (head.kind != TaskHeadKind::kText) return;
  std::vector<std::string> labels = head.labels;
  if (labels.empty()) {
    for (int64_t i = 0; i < head.outputs; ++i) labels.push_back(join_text("LABEL_", i));
  }
  add_labels(labels, config);
  (*config)["problem_type"] = head.outputs == 1 ? "regression" : "single_label_classification";
}

nlohmann::json bert_config(EncoderOptions options) {
  static const std::map<ActivationKind, std::string> kActivations = {{ActivationKind::kGeluTanh, "gelu_pytorch_tanh"},
                                                                     {ActivationKind::kGeluErf, "gelu"},
                                                                     {ActivationKind::kRelu, "relu"},
                                                                     {ActivationKind::kSilu, "silu"}};
  nlohmann::json config = {
      {"model_type", "bert"},
      {"architectures", {architecture(options)}},
      {"hidden_act", kActivations.at(options.activation)},
      {"tie_word_embeddings", options.tie_embeddings},
      {"dtype", "float32"},
      {kExportMark, kModelFormatVersion},
  };
  const nlohmann::json values = to_json(stored_fields(options));
  for (const HfKey& key : bert_keys()) config[key.theirs] = values.at(key.ours);
  add_classes(options, &config);
  return config;
}

}  // namespace

void write_bert(const fs::path& directory, const Encoder& model) {
  const EncoderOptions& options = model->options();
  check_bert_holds(options);
  const NamedTensors ours = model_tensors(*model);
  const bool has_head = options.masked_head || options.three_way_head || options.task_head.kind != TaskHeadKind::kNone;
  NamedTensors theirs;
  for (const auto& [name, our_name] : tensor_names(options)) {
    const bool in_head =
        name.starts_with(kHead) || our_name.starts_with("task_head.") || our_name.starts_with("three_way_head.");
    check_finite(ours.at(our_name), join_text("the encoder: tensor '", our_name, "'"),
                 "training has diverged: export an earlier checkpoint, or train with a smaller --learning-rate");
    theirs.emplace(has_head && !in_head ? "bert." + name : name, ours.at(our_name));
  }
  if (options.masked_head && !options.tie_embeddings) theirs[join_text(kHead, "decoder.bias")] = ours.at(kOutputBias);
  write_tensors(directory / "model.safetensors", theirs, {{"format", "pt"}});
  write_file(directory / "config.json", bert_config(options).dump(2) + "\n");
}

}  // namespace headshare
