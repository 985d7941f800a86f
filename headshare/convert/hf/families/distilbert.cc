#include "headshare/convert/hf/families/distilbert.h"

#include "headshare/base/error.h"
#include "headshare/convert/hf/families/encoder_tensors.h"
#include "headshare/convert/hf/written_config.h"

namespace headshare {
namespace {

constexpr const char* kDistilBertMasked = "DistilBertForMaskedLM";
constexpr const char* kDistilBertClassification = "DistilBertForSequenceClassification";
constexpr const char* kDistilBertQuestions = "DistilBertForQuestionAnswering";
constexpr const char* kDistilBertOutputLayer = "vocab_projector.weight";
constexpr double kNormEpsilon = 1e-12;  // stands in their code

// DistilBertConfig's numbers. The epsilon of its norms stands in the code.
const std::vector<HfKey>& distilbert_keys() {
  static const std::vector<HfKey> keys = {{"vocab_size", "vocabulary"},
                                          {"max_position_embeddings", "context"},
                                          {"dim", "d-model", "hidden_size"},
                                          {"n_layers", "layers", "num_hidden_layers"},
                                          {"n_heads", "heads", "num_attention_heads"},
                                          {"hidden_dim", "feed-forward-width"},
                                          {"dropout", "dropout"},
                                          {"attention_dropout", "attention-dropout"},
                                          {"initializer_range", "init-deviation"}};
  return keys;
}

const BlockParts& block_parts() {
  static const BlockParts parts = {
      {"attention.q_lin", "attention.scheme.query"}, {"attention.k_lin", "attention.scheme.key"},
      {"attention.v_lin", "attention.scheme.value"}, {"attention.out_lin", "attention.scheme.output"},
      {"sa_layer_norm", "attention_norm"},           {"ffn.lin1", "feed_forward.expand"},
      {"ffn.lin2", "feed_forward.contract"},         {"output_layer_norm", "feed_forward_norm"}};
  return parts;
}

// The options of the configuration; pooler and heads are not among them.
EncoderOptions read_distilbert_options(const HfConfig& config) {
  refuse_what_we_lack(config);
  refuse_other_classes(config, {"DistilBertModel", kDistilBertMasked, kDistilBertClassification, kDistilBertQuestions});
  refuse_causal_encoder(config, "DistilBERT");
  EncoderOptions options = base_encoder();
  options.layers = 6;
  options.segments = 0;
  read_keys(config, distilbert_keys(), stored_fields(options));
  options.activation = read_activation(config, "activation", ActivationKind::kGeluErf);
  options.tie_embeddings = config.flag("tie_word_embeddings", true);
  return options;
}

void add_pooler(EncoderOptions* options) {
  options->pooler = true;
  options->pooler_activation = PoolerActivation::kRelu;
}

// Every tensor of ours and its name without the prefix "distilbert.".
TensorPlaces tensor_places(const EncoderOptions& options) {
  const bool tied = options.masked_head && options.tie_embeddings;
  TensorPlaces places = {
      {.theirs = "embeddings.word_embeddings.weight",
       .ours = "token_embedding",
       .copies = tied ? std::vector<std::string>{kDistilBertOutputLayer} : std::vector<std::string>{}},
      {.theirs = "embeddings.position_embeddings.weight", .ours = "position_embedding"}};
  add_pair("embeddings.LayerNorm", "embedding_norm", &places);
  add_blocks("transformer.layer.", block_parts(), options.layers, &places);
  if (options.pooler) add_pair("pre_classifier", "pooler", &places);
  if (options.task_head.kind == TaskHeadKind::kText) add_pair("classifier", "task_head.output", &places);
  if (options.task_head.kind == TaskHeadKind::kToken) add_pair("qa_outputs", "task_head.output", &places);
  if (!options.masked_head) return places;
  add_pair("vocab_transform", "masked_head.dense", &places);
  add_pair("vocab_layer_norm", "masked_head.norm", &places);
  if (!options.tie_embeddings)
    places.push_back({.theirs = kDistilBertOutputLayer, .ours = "masked_head.output_embedding"});
  places.push_back({.theirs = "vocab_projector.bias", .ours = "masked_head.output_bias"});
  return places;
}

EncoderOptions distilbert_options(const HfConfig& config) {
  EncoderOptions options = read_distilbert_options(config);
  set_heads_of_class(config, "DistilBert", &options);
  options.pooler = false;  // only the layer before a classification head is one
  if (options.task_head.kind == TaskHeadKind::kText) add_pooler(&options);
  return resolve_read(config, options);
}

HfShape distilbert_shape(const HfConfig& config, const std::string& type) {
  return encoder_shape(config, type, "DistilBertModel", distilbert_options(config));
}

ForeignModel open_distilbert(const std::shared_ptr<const HfDirectory>& directory) {
  HfMapping mapping(directory, without_prefix("distilbert."));
  EncoderOptions options = read_distilbert_options(*directory);
  options.masked_head = mapping.has("vocab_transform.weight");
  if (mapping.has("qa_outputs.weight")) options.task_head = {.kind = TaskHeadKind::kToken, .outputs = 2};
  if (mapping.has("pre_classifier.weight")) {
    add_pooler(&options);
    options.task_head = read_classes(*directory);
    check_problem_type(*directory, options.task_head.outputs);
  }
  options = resolve_read(*directory, options);
  ForeignModel foreign{.options = options};
  take_places(tensor_places(options), options, &mapping);
  mapping.leave_out("embeddings.position_ids");
  const bool questions = options.task_head.kind == TaskHeadKind::kToken;
  note_head_dropout(*directory, questions ? "qa_dropout" : "seq_classif_dropout", questions ? 0.1 : 0.2, options,
                    &foreign.notes);
  mapping.finish("DistilBERT", &foreign);
  return foreign;
}

std::vector<std::string> distilbert_objections(const ModelOptions& options) {
  const auto& o = options.as<EncoderOptions>();
  std::vector<std::string> all =
      bert_form_objections(o, {.name = "DistilBERT", .segments = false, .pooler = PoolerActivation::kRelu});
  if (o.pooler != (o.task_head.kind == TaskHeadKind::kText)) {
    all.emplace_back(
        "the encoder's pooler and a head that reads it are not both there, and DistilBERT has both or none");
  }
  if (o.three_way_head) {
    all.emplace_back("the encoder has a head of three-way classification, which DistilBERT has no place for");
  }
  if (o.norm_epsilon != kNormEpsilon) {
    all.push_back(
        join_text("the encoder's --norm-epsilon is ", o.norm_epsilon, ", and DistilBERT's is ", kNormEpsilon));
  }
  return all;
}

HfContent distilbert_content(const ModelToWrite& model) {
  const auto& options = model.options.as<EncoderOptions>();
  const bool has_head = options.masked_head || options.task_head.kind != TaskHeadKind::kNone;
  HfContent content;
  content.tensors = fill_places(tensor_places(options), model, has_head ? "distilbert." : "",
                                {"vocab_", "pre_classifier.", "classifier.", "qa_outputs."});
  content.config =
      begin_encoder_config("distilbert", architecture_of("DistilBert", options), distilbert_keys(), options);
  content.config["activation"] = activation_name(options.activation);
  for (const char* key : {"seq_classif_dropout", "qa_dropout"}) content.config[key] = options.dropout;
  return content;
}

}  // namespace

HfModelType distilbert_type() {
  return {.name = "distilbert",
          .models = {"DistilBERT"},
          .kind = "encoder",
          .shape = distilbert_shape,
          .open = open_distilbert,
          .objections = distilbert_objections,
          .content = distilbert_content};
}

}  // namespace headshare
