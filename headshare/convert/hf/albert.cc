#include "headshare/convert/hf/albert.h"

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/convert/hf/encoder_tensors.h"

namespace headshare {
namespace {

constexpr const char* kMasked = "AlbertForMaskedLM";
constexpr const char* kPreTraining = "AlbertForPreTraining";
constexpr const char* kClassification = "AlbertForSequenceClassification";
constexpr const char* kMultipleChoice = "AlbertForMultipleChoice";
constexpr const char* kQuestions = "AlbertForQuestionAnswering";
constexpr const char* kOutputBias = "masked_head.output_bias";

const TensorNames& block_parts() {
  static const TensorNames parts = {{"albert_layers.0.attention.query", "attention.scheme.query"},
                                    {"albert_layers.0.attention.key", "attention.scheme.key"},
                                    {"albert_layers.0.attention.value", "attention.scheme.value"},
                                    {"albert_layers.0.attention.dense", "attention.scheme.output"},
                                    {"albert_layers.0.attention.LayerNorm", "attention_norm"},
                                    {"albert_layers.0.ffn", "feed_forward.expand"},
                                    {"albert_layers.0.ffn_output", "feed_forward.contract"},
                                    {"albert_layers.0.full_layer_layer_norm", "feed_forward_norm"}};
  return parts;
}

std::string plain_name(const std::string& full) {
  constexpr std::string_view kPrefix = "albert.";
  return full.starts_with(kPrefix) ? full.substr(kPrefix.size()) : full;
}

// AlbertConfig's defaults: albert-xxlarge.
EncoderOptions albert_defaults() {
  EncoderOptions options = base_encoder();
  options.vocabulary = 30000;
  options.dropout = options.attention.attention_dropout = 0;
  options.attention.d_model = 4096;
  options.attention.heads = 64;
  options.feed_forward_width = 16384;
  options.embedding_width = 128;
  options.layer_groups = 1;
  return options;
}

// ALBERT runs layer i of group floor(i * groups / layers), and each of the group's inner layers in turn.
void check_groups(const HfConfig& config, const EncoderOptions& options) {
  const nlohmann::json& inner = config.value("inner_group_num");
  HS_CHECK(inner.is_null() || inner == 1, config.config_key("inner_group_num"), " is ", brief_json(inner),
           "; headshare reads groups of 1 layer that runs several times");
  HS_CHECK(options.layers % *options.layer_groups == 0, config.config_key("num_hidden_groups"), " is ",
           *options.layer_groups, ", which does not divide num_hidden_layers ", options.layers,
           "; headshare reads groups of equally many layers");
}

// The options of the configuration; pooler and heads are not among them.
EncoderOptions read_options(const HfConfig& config) {
  refuse_what_we_lack(config);
  refuse_other_classes(config, {"AlbertModel", kMasked, kPreTraining, kClassification, kMultipleChoice, kQuestions});
  refuse_other_encoders(config, "ALBERT");
  EncoderOptions options = albert_defaults();
  std::vector<HfKey> keys = bert_keys();
  keys.push_back({"embedding_size", "embedding-width"});
  keys.push_back({"num_hidden_groups", "layer-groups"});
  read_keys(config, keys, stored_fields(options));
  for (const auto& [key, value] :
       {std::pair("embedding_size", options.embedding_width), std::pair("num_hidden_groups", options.layer_groups)}) {
    HS_CHECK(value, config.config_key(key), " is ", brief_json(config.value(key)), ", not a number");
  }
  HS_CHECK(options.segments > 0, config.config_key("type_vocab_size"), " is 0, and ALBERT has at least 1");
  check_groups(config, options);
  options.activation = read_activation(config, "hidden_act", ActivationKind::kGeluTanh);
  options.tie_embeddings = config.flag("tie_word_embeddings", true);
  return options;
}

TensorNames tensor_names(const EncoderOptions& options, const HfMapping& tensors) {
  TensorNames names = {{"embeddings.word_embeddings.weight", "token_embedding"},
                       {"embeddings.position_embeddings.weight", "position_embedding"},
                       {"embeddings.token_type_embeddings.weight", "segment_embedding"}};
  add_pair("embeddings.LayerNorm", "embedding_norm", &names);
  add_pair("encoder.embedding_hidden_mapping_in", "embedding_projection", &names);
  add_blocks("encoder.albert_layer_groups.", block_parts(), own_layers(options), &names);
  if (options.pooler) add_pair("pooler", "pooler", &names);
  if (options.task_head.kind == TaskHeadKind::kText) add_pair("classifier", "task_head.output", &names);
  if (options.task_head.kind == TaskHeadKind::kToken) add_pair("qa_outputs", "task_head.output", &names);
  if (!options.masked_head) return names;
  add_pair("predictions.dense", "masked_head.dense", &names);
  add_pair("predictions.LayerNorm", "masked_head.norm", &names);
  if (!options.tie_embeddings) names.emplace_back("predictions.decoder.weight", "masked_head.output_embedding");
  names.emplace_back(output_bias_name("predictions.", options, tensors), kOutputBias);
  return names;
}

// What repeats other tensors, belongs to the sentence-order task or is no parameter.
void leave_out_the_rest(const EncoderOptions& options, const std::map<std::string, std::string>& taken,
                        HfMapping* mapping) {
  for (const char* unread : {"embeddings.position_ids", "embeddings.token_type_ids", "sop_classifier.classifier.weight",
                             "sop_classifier.classifier.bias"}) {
    mapping->leave_out(unread);
  }
  if (!options.masked_head) return;
  if (!options.tie_embeddings) return mapping->leave_out("predictions.bias");
  mapping->leave_out_copy("predictions.decoder.bias", {options.vocabulary}, taken.at(kOutputBias));
}

// What differs in training.
std::vector<std::string> training_notes(const HfDirectory& directory, const EncoderOptions& options) {
  std::vector<std::string> notes;
  if (options.dropout > 0) {
    notes.push_back(
        join_text("ALBERT drops nothing after its feed-forward part; in training, headshare drops there too (",
                  options.dropout, ")"));
  }
  if (options.task_head.kind == TaskHeadKind::kText) {
    note_head_dropout(directory, "classifier_dropout_prob", 0.1, options, &notes);
  }
  if (directory.architecture() == kMultipleChoice) notes.push_back(multiple_choice_note(kMultipleChoice));
  return notes;
}

}  // namespace

EncoderOptions albert_options(const HfConfig& config) {
  EncoderOptions options = read_options(config);
  const std::string name = config.architecture().value_or("AlbertModel");
  options.masked_head = name == kMasked || name == kPreTraining;
  options.pooler = name != kMasked && name != kQuestions;
  if (name == kQuestions) options.task_head = {.kind = TaskHeadKind::kToken, .outputs = 2};
  if (name == kMultipleChoice) options.task_head = {.kind = TaskHeadKind::kText, .outputs = 1};
  if (name == kClassification) options.task_head = read_classes(config);
  return resolve_read(config, options);
}

ForeignModel map_albert(const std::shared_ptr<const HfDirectory>& directory) {
  HfMapping mapping(directory, plain_name);
  EncoderOptions options = read_options(*directory);
  options.pooler = mapping.has("pooler.weight");
  options.masked_head = mapping.has("predictions.dense.weight");
  options.task_head = read_pooled_head(*directory, mapping, "pooler.weight", kMultipleChoice);
  options = resolve_read(*directory, options);
  ForeignModel foreign{.options = options, .tokenizer = directory->tokenizer()};
  const auto taken = take_encoder(tensor_names(options, mapping), options, "predictions.decoder.weight", &mapping);
  foreign.notes = training_notes(*directory, options);
  if (mapping.has("sop_classifier.classifier.weight")) {
    foreign.notes.emplace_back("the sentence-order head (sop_classifier) is left out: headshare has none");
  }
  leave_out_the_rest(options, taken, &mapping);
  mapping.finish("ALBERT", &foreign);
  return foreign;
}

}  // namespace headshare
