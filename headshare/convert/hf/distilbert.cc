#include "headshare/convert/hf/distilbert.h"

#include "headshare/base/error.h"
#include "headshare/convert/hf/encoder_tensors.h"

namespace headshare {
namespace {

constexpr const char* kMasked = "DistilBertForMaskedLM";
constexpr const char* kClassification = "DistilBertForSequenceClassification";
constexpr const char* kQuestions = "DistilBertForQuestionAnswering";

// DistilBertConfig's numbers. The epsilon of its norms stands in the code.
const std::vector<HfKey>& number_keys() {
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

const TensorNames& block_parts() {
  static const TensorNames parts = {
      {"attention.q_lin", "attention.scheme.query"}, {"attention.k_lin", "attention.scheme.key"},
      {"attention.v_lin", "attention.scheme.value"}, {"attention.out_lin", "attention.scheme.output"},
      {"sa_layer_norm", "attention_norm"},           {"ffn.lin1", "feed_forward.expand"},
      {"ffn.lin2", "feed_forward.contract"},         {"output_layer_norm", "feed_forward_norm"}};
  return parts;
}

std::string plain_name(const std::string& full) {
  constexpr std::string_view kPrefix = "distilbert.";
  return full.starts_with(kPrefix) ? full.substr(kPrefix.size()) : full;
}

// The options of the configuration; pooler and heads are not among them.
EncoderOptions read_options(const HfConfig& config) {
  refuse_what_we_lack(config);
  refuse_other_classes(config, {"DistilBertModel", kMasked, kClassification, kQuestions});
  EncoderOptions options = base_encoder();
  options.layers = 6;
  options.segments = 0;
  read_keys(config, number_keys(), stored_fields(options));
  options.activation = read_activation(config, "activation", ActivationKind::kGeluErf);
  options.tie_embeddings = config.flag("tie_word_embeddings", true);
  return options;
}

void add_pooler(EncoderOptions* options) {
  options->pooler = true;
  options->pooler_activation = PoolerActivation::kRelu;
}

TensorNames tensor_names(const EncoderOptions& options) {
  TensorNames names = {{"embeddings.word_embeddings.weight", "token_embedding"},
                       {"embeddings.position_embeddings.weight", "position_embedding"}};
  add_pair("embeddings.LayerNorm", "embedding_norm", &names);
  add_blocks("transformer.layer.", block_parts(), options.layers, &names);
  if (options.pooler) add_pair("pre_classifier", "pooler", &names);
  if (options.task_head.kind == TaskHeadKind::kText) add_pair("classifier", "task_head.output", &names);
  if (options.task_head.kind == TaskHeadKind::kToken) add_pair("qa_outputs", "task_head.output", &names);
  if (!options.masked_head) return names;
  add_pair("vocab_transform", "masked_head.dense", &names);
  add_pair("vocab_layer_norm", "masked_head.norm", &names);
  if (!options.tie_embeddings) names.emplace_back("vocab_projector.weight", "masked_head.output_embedding");
  names.emplace_back("vocab_projector.bias", "masked_head.output_bias");
  return names;
}

}  // namespace

EncoderOptions distilbert_options(const HfConfig& config) {
  EncoderOptions options = read_options(config);
  const std::string name = config.architecture().value_or("DistilBertModel");
  options.masked_head = name == kMasked;
  if (name == kQuestions) options.task_head = {.kind = TaskHeadKind::kToken, .outputs = 2};
  if (name == kClassification) {
    add_pooler(&options);
    options.task_head = read_classes(config);
  }
  return resolve_read(config, options);
}

ForeignModel map_distilbert(const std::shared_ptr<const HfDirectory>& directory) {
  HfMapping mapping(directory, plain_name);
  EncoderOptions options = read_options(*directory);
  options.masked_head = mapping.has("vocab_transform.weight");
  if (mapping.has("qa_outputs.weight")) options.task_head = {.kind = TaskHeadKind::kToken, .outputs = 2};
  if (mapping.has("pre_classifier.weight")) {
    add_pooler(&options);
    options.task_head = read_classes(*directory);
    check_problem_type(*directory, options.task_head.outputs);
  }
  options = resolve_read(*directory, options);
  ForeignModel foreign{.options = options, .tokenizer = directory->tokenizer()};
  take_encoder(tensor_names(options), options, "vocab_projector.weight", &mapping);
  mapping.leave_out("embeddings.position_ids");
  const bool questions = options.task_head.kind == TaskHeadKind::kToken;
  note_head_dropout(*directory, questions ? "qa_dropout" : "seq_classif_dropout", questions ? 0.1 : 0.2, options,
                    &foreign.notes);
  mapping.finish("DistilBERT", &foreign);
  return foreign;
}

}  // namespace headshare
