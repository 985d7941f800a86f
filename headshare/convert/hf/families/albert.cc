#include "headshare/convert/hf/families/albert.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/convert/hf/families/encoder_tensors.h"
#include "headshare/convert/hf/written_config.h"

namespace headshare {
namespace {

constexpr const char* kAlbertMasked = "AlbertForMaskedLM";
constexpr const char* kAlbertPreTraining = "AlbertForPreTraining";
constexpr const char* kAlbertClassification = "AlbertForSequenceClassification";
constexpr const char* kAlbertMultipleChoice = "AlbertForMultipleChoice";
constexpr const char* kAlbertQuestions = "AlbertForQuestionAnswering";
constexpr const char* kAlbertOutputLayer = "predictions.decoder.weight";
constexpr const char* kAlbertOutputBias = "masked_head.output_bias";

const BlockParts& albert_block_parts() {
  static const BlockParts parts = {{"albert_layers.0.attention.query", "attention.scheme.query"},
                                   {"albert_layers.0.attention.key", "attention.scheme.key"},
                                   {"albert_layers.0.attention.value", "attention.scheme.value"},
                                   {"albert_layers.0.attention.dense", "attention.scheme.output"},
                                   {"albert_layers.0.attention.LayerNorm", "attention_norm"},
                                   {"albert_layers.0.ffn", "feed_forward.expand"},
                                   {"albert_layers.0.ffn_output", "feed_forward.contract"},
                                   {"albert_layers.0.full_layer_layer_norm", "feed_forward_norm"}};
  return parts;
}

// AlbertConfig's numbers.
std::vector<HfKey> albert_keys() {
  std::vector<HfKey> keys = bert_keys();
  keys.push_back({"embedding_size", "embedding-width"});
  keys.push_back({"num_hidden_groups", "layer-groups"});
  return keys;
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
EncoderOptions read_albert(const HfConfig& config) {
  refuse_what_we_lack(config);
  refuse_other_classes(config, {"AlbertModel", kAlbertMasked, kAlbertPreTraining, kAlbertClassification,
                                kAlbertMultipleChoice, kAlbertQuestions});
  refuse_other_encoders(config, "ALBERT");
  EncoderOptions options = albert_defaults();
  read_keys(config, albert_keys(), stored_fields(options));
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

// Every tensor of ours and its name without the prefix "albert.".
TensorPlaces albert_places(const EncoderOptions& options) {
  const bool tied = options.masked_head && options.tie_embeddings;
  TensorPlaces places = {{.theirs = "embeddings.word_embeddings.weight",
                          .ours = "token_embedding",
                          .copies = tied ? std::vector<std::string>{kAlbertOutputLayer} : std::vector<std::string>{}},
                         {.theirs = "embeddings.position_embeddings.weight", .ours = "position_embedding"},
                         {.theirs = "embeddings.token_type_embeddings.weight", .ours = "segment_embedding"}};
  add_pair("embeddings.LayerNorm", "embedding_norm", &places);
  add_pair("encoder.embedding_hidden_mapping_in", "embedding_projection", &places);
  add_blocks("encoder.albert_layer_groups.", albert_block_parts(), own_layers(options), &places);
  if (options.pooler) add_pair("pooler", "pooler", &places);
  if (options.task_head.kind == TaskHeadKind::kText) add_pair("classifier", "task_head.output", &places);
  if (options.task_head.kind == TaskHeadKind::kToken) add_pair("qa_outputs", "task_head.output", &places);
  if (!options.masked_head) return places;
  add_pair("predictions.dense", "masked_head.dense", &places);
  add_pair("predictions.LayerNorm", "masked_head.norm", &places);
  if (!options.tie_embeddings) places.push_back({.theirs = kAlbertOutputLayer, .ours = "masked_head.output_embedding"});
  places.push_back({.theirs = "predictions.bias", .ours = kAlbertOutputBias});
  return places;
}

// Leaves out tensors that repeat others, belong to the sentence-order task or are no parameters.
void leave_out_the_rest_of_albert(const EncoderOptions& options, const std::map<std::string, std::string>& taken,
                                  HfMapping* mapping) {
  for (const char* unread : {"embeddings.position_ids", "embeddings.token_type_ids", "sop_classifier.classifier.weight",
                             "sop_classifier.classifier.bias"}) {
    mapping->leave_out(unread);
  }
  if (!options.masked_head) return;
  if (!options.tie_embeddings) return mapping->leave_out("predictions.bias");
  mapping->leave_out_copy("predictions.decoder.bias", {options.vocabulary}, taken.at(kAlbertOutputBias));
}

// The notes say what differs in training.
std::vector<std::string> albert_training_notes(const HfDirectory& directory, const EncoderOptions& options) {
  std::vector<std::string> notes;
  if (options.dropout > 0) {
    notes.push_back(
        join_text("ALBERT drops nothing after its feed-forward part; in training, headshare drops there too (",
                  options.dropout, ")"));
  }
  if (options.task_head.kind == TaskHeadKind::kText) {
    note_head_dropout(directory, "classifier_dropout_prob", 0.1, options, &notes);
  }
  if (directory.architecture() == kAlbertMultipleChoice) notes.push_back(multiple_choice_note(kAlbertMultipleChoice));
  return notes;
}

EncoderOptions albert_options(const HfConfig& config) {
  EncoderOptions options = read_albert(config);
  set_heads_of_class(config, "Albert", &options);
  return resolve_read(config, options);
}

HfShape albert_shape(const HfConfig& config, const std::string& type) {
  return encoder_shape(config, type, "AlbertModel", albert_options(config));
}

ForeignModel open_albert(const std::shared_ptr<const HfDirectory>& directory) {
  HfMapping mapping(directory, without_prefix("albert."));
  EncoderOptions options = read_albert(*directory);
  options.pooler = mapping.has("pooler.weight");
  options.masked_head = mapping.has("predictions.dense.weight");
  options.task_head = read_pooled_head(*directory, mapping, "pooler.weight", kAlbertMultipleChoice);
  options = resolve_read(*directory, options);
  ForeignModel foreign{.options = options};
  TensorPlaces places = albert_places(options);
  for (TensorPlace& place : places) {
    if (place.ours == kAlbertOutputBias) place.theirs = output_bias_name("predictions.", options, mapping);
  }
  const auto taken = take_places(places, options, &mapping);
  foreign.notes = albert_training_notes(*directory, options);
  if (mapping.has("sop_classifier.classifier.weight")) {
    foreign.notes.emplace_back("the sentence-order head (sop_classifier) is left out: headshare has none");
  }
  leave_out_the_rest_of_albert(options, taken, &mapping);
  mapping.finish("ALBERT", &foreign);
  return foreign;
}

std::vector<std::string> albert_objections(const ModelOptions& options) {
  const auto& o = options.as<EncoderOptions>();
  std::vector<std::string> all = bert_form_objections(o, {.name = "ALBERT", .shares_layers = true, .factorised = true});
  if (o.three_way_head) {
    all.emplace_back("the encoder has a head of three-way classification, which ALBERT has no place for");
  }
  if (!o.layer_groups) all.emplace_back("the encoder's layers share no parameters, and ALBERT's do (--layer-groups)");
  if (!o.embedding_width) {
    all.emplace_back("the encoder's embedding is not factorised, and ALBERT's is (--embedding-width)");
  }
  return all;
}

HfContent albert_content(const ModelToWrite& model) {
  const auto& options = model.options.as<EncoderOptions>();
  const bool has_head = options.masked_head || options.task_head.kind != TaskHeadKind::kNone;
  HfContent content;
  content.tensors = fill_places(albert_places(options), model, has_head ? "albert." : "",
                                {"predictions.", "classifier.", "qa_outputs."});
  if (options.masked_head && !options.tie_embeddings) {
    content.tensors["predictions.decoder.bias"] = model.tensors.at(kAlbertOutputBias);
  }
  content.config = begin_encoder_config("albert", architecture_of("Albert", options), albert_keys(), options);
  content.config["hidden_act"] = activation_name(options.activation);
  content.config["inner_group_num"] = 1;
  content.config["classifier_dropout_prob"] = options.dropout;
  return content;
}

}  // namespace

HfModelType albert_type() {
  return {.name = "albert",
          .models = {"ALBERT"},
          .kind = "encoder",
          .shape = albert_shape,
          .open = open_albert,
          .objections = albert_objections,
          .content = albert_content};
}

}  // namespace headshare
