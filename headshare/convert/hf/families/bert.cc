#include "headshare/convert/hf/families/bert.h"

#include "headshare/base/error.h"
#include "headshare/convert/hf/families/encoder_tensors.h"
#include "headshare/convert/hf/written_config.h"

namespace headshare {
namespace {

constexpr const char* kHead = "cls.predictions.";
constexpr const char* kBertOutputLayer = "cls.predictions.decoder.weight";
constexpr const char* kBertOutputBias = "masked_head.output_bias";
constexpr const char* kBertMultipleChoice = "BertForMultipleChoice";

// A task's head in BertForSequenceClassification and BertForQuestionAnswering; "": BERT has none such.
std::string task_head_name(TaskHeadKind kind) {
  return kind == TaskHeadKind::kText ? "classifier" : kind == TaskHeadKind::kToken ? "qa_outputs" : "";
}

// Every tensor of ours and its name in BertForMaskedLM without the prefix "bert.".
TensorPlaces bert_places(const EncoderOptions& options) {
  const bool tied = options.masked_head && options.tie_embeddings;
  TensorPlaces places = {{.theirs = "embeddings.word_embeddings.weight",
                          .ours = "token_embedding",
                          .copies = tied ? std::vector<std::string>{kBertOutputLayer} : std::vector<std::string>{}},
                         {.theirs = "embeddings.position_embeddings.weight", .ours = "position_embedding"},
                         {.theirs = "embeddings.token_type_embeddings.weight", .ours = "segment_embedding"}};
  const auto pair = [&](const std::string& theirs, const std::string& ours) { add_pair(theirs, ours, &places); };
  pair("embeddings.LayerNorm", "embedding_norm");
  add_blocks("encoder.layer.", bert_block_parts(), options.layers, &places);
  if (options.pooler) pair("pooler.dense", "pooler");
  if (options.task_head.kind != TaskHeadKind::kNone) pair(task_head_name(options.task_head.kind), "task_head.output");
  if (options.three_way_head) pair("classifier", "three_way_head.output");
  if (!options.masked_head) return places;
  pair(join_text(kHead, "transform.dense"), "masked_head.dense");
  pair(join_text(kHead, "transform.LayerNorm"), "masked_head.norm");
  if (!options.tie_embeddings) places.push_back({.theirs = kBertOutputLayer, .ours = "masked_head.output_embedding"});
  places.push_back({.theirs = join_text(kHead, "bias"), .ours = kBertOutputBias});
  return places;
}

// "bert.x" and "x" are one, and so are a norm's old names gamma and beta and the new ones.
std::string plain_bert_name(const std::string& full) {
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
               "BertForSequenceClassification", kBertMultipleChoice, "BertForQuestionAnswering"});
  refuse_other_encoders(config, "BERT");
}

// The options of the configuration; pooler and heads are not among them.
EncoderOptions read_bert_options(const HfConfig& config) {
  refuse_what_encoders_lack(config);
  EncoderOptions options = base_encoder();
  read_keys(config, bert_keys(), stored_fields(options));
  HS_CHECK(options.segments > 0, config.config_key("type_vocab_size"), " is 0, and BERT has at least 1");
  options.activation = read_activation(config, "hidden_act", ActivationKind::kGeluErf);
  options.tie_embeddings = config.flag("tie_word_embeddings", true);
  return options;
}

// Pooler and heads as the tensors have them.
EncoderOptions read_bert_options(const HfDirectory& directory, const HfMapping& tensors) {
  EncoderOptions options = read_bert_options(directory);
  options.pooler = tensors.has("pooler.dense.weight");
  options.task_head = read_pooled_head(directory, tensors, "pooler.dense.weight", kBertMultipleChoice);
  options.masked_head = tensors.has(join_text(kHead, "transform.dense.weight"));
  return resolve_read(directory, options);
}

// Leaves out tensors that repeat others, belong to the next-sentence task or are no parameters.
void leave_out_the_rest_of_bert(const EncoderOptions& options, const std::map<std::string, std::string>& taken,
                                HfMapping* mapping) {
  mapping->leave_out("embeddings.position_ids");
  mapping->leave_out("cls.seq_relationship.weight");
  mapping->leave_out("cls.seq_relationship.bias");
  if (!options.masked_head) return;
  if (!options.tie_embeddings) return mapping->leave_out(join_text(kHead, "bias"));
  mapping->leave_out_copy(join_text(kHead, "decoder.bias"), {options.vocabulary}, taken.at(kBertOutputBias));
}

// Pooler and heads as the class has them.
EncoderOptions bert_options(const HfConfig& config) {
  EncoderOptions options = read_bert_options(config);
  set_heads_of_class(config, "Bert", &options);
  return resolve_read(config, options);
}

HfShape bert_shape(const HfConfig& config, const std::string& type) {
  return encoder_shape(config, type, "BertModel", bert_options(config));
}

ForeignModel open_bert(const std::shared_ptr<const HfDirectory>& directory) {
  HfMapping mapping(directory, plain_bert_name);
  const EncoderOptions options = read_bert_options(*directory, mapping);
  ForeignModel foreign{.options = options};
  TensorPlaces places = bert_places(options);
  for (TensorPlace& place : places) {
    if (place.ours == kBertOutputBias) place.theirs = output_bias_name(kHead, options, mapping);
  }
  const auto taken = take_places(places, options, &mapping);
  if (mapping.has("cls.seq_relationship.weight")) {
    foreign.notes.push_back("the next-sentence head (cls.seq_relationship) is left out: headshare has none");
  }
  if (directory->architecture() == kBertMultipleChoice) {
    foreign.notes.push_back(multiple_choice_note(kBertMultipleChoice));
  }
  if (options.task_head.kind == TaskHeadKind::kText) {
    note_head_dropout(*directory, "classifier_dropout", {}, options, &foreign.notes);
  }
  leave_out_the_rest_of_bert(options, taken, &mapping);
  mapping.finish("BERT", &foreign);
  return foreign;
}

std::vector<std::string> bert_objections(const ModelOptions& options) {
  return bert_form_objections(options.as<EncoderOptions>());
}

HfContent bert_content(const ModelToWrite& model) {
  const auto& options = model.options.as<EncoderOptions>();
  const bool has_head = options.masked_head || options.three_way_head || options.task_head.kind != TaskHeadKind::kNone;
  HfContent content;
  content.tensors =
      fill_places(bert_places(options), model, has_head ? "bert." : "", {kHead, "classifier.", "qa_outputs."});
  if (options.masked_head && !options.tie_embeddings) {
    content.tensors[join_text(kHead, "decoder.bias")] = model.tensors.at(kBertOutputBias);
  }
  content.config = begin_encoder_config(
      "bert", options.three_way_head ? "BertForTokenClassification" : architecture_of("Bert", options), bert_keys(),
      options);
  content.config["hidden_act"] = activation_name(options.activation);
  return content;
}

}  // namespace

HfModelType bert_type() {
  return {.name = "bert",
          .models = {"BERT"},
          .kind = "encoder",
          .shape = bert_shape,
          .open = open_bert,
          .objections = bert_objections,
          .content = bert_content};
}

}  // namespace headshare
