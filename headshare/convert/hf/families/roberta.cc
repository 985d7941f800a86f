#include "headshare/convert/hf/families/roberta.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/convert/hf/families/encoder_tensors.h"
#include "headshare/convert/hf/families/hashformer.h"
#include "headshare/convert/hf/written_config.h"

namespace headshare {
namespace {

constexpr const char* kRobertaMasked = "RobertaForMaskedLM";
constexpr const char* kRobertaClassification = "RobertaForSequenceClassification";
constexpr const char* kRobertaMultipleChoice = "RobertaForMultipleChoice";
constexpr const char* kRobertaQuestions = "RobertaForQuestionAnswering";
constexpr const char* kClassifier = "classifier.out_proj.weight";
constexpr const char* kRobertaOutputLayer = "lm_head.decoder.weight";

// The number of rows of the position table that stand before the first token's.
int64_t unused_positions(const HfConfig& config) {
  const nlohmann::json& padding = config.value("pad_token_id");
  if (padding.is_null()) return 2;  // RobertaConfig's default is 1
  const std::string where = config.config_key("pad_token_id");
  HS_CHECK(padding.is_number_integer() && padding >= 0 && padding <= 1 << 20, where, " is ", brief_json(padding),
           ", not a token; positions are counted from it");
  return padding.get<int64_t>() + 1;
}

// Where words are hashed, vocab_size says how.
std::vector<HfKey> keys_of(const EncoderOptions& options) {
  std::vector<HfKey> keys = bert_keys();
  if (is_hashed(options.embedding)) {
    std::erase_if(keys, [](const HfKey& key) { return key.theirs == std::string_view("vocab_size"); });
  }
  return keys;
}

// The options of the configuration; pooler and heads are not among them.
EncoderOptions read_roberta_options(const HfConfig& config, bool hashed) {
  refuse_what_we_lack(config);
  refuse_other_classes(
      config, {"RobertaModel", kRobertaMasked, kRobertaClassification, kRobertaMultipleChoice, kRobertaQuestions,
               kThreeWayClass, "XLMRobertaModel", "XLMRobertaForMaskedLM", "XLMRobertaForSequenceClassification",
               "XLMRobertaForMultipleChoice", "XLMRobertaForQuestionAnswering"});
  refuse_other_encoders(config, "RoBERTa");
  EncoderOptions options = base_encoder();
  options.vocabulary = config.value("model_type") == "xlm-roberta" ? 30522 : 50265;  // of their classes
  options.embedding.kind = hashformer_embedding(config, hashed);
  read_keys(config, keys_of(options), stored_fields(options));
  HS_CHECK(options.segments > 0, config.config_key("type_vocab_size"), " is 0, and RoBERTa has at least 1");
  const int64_t unused = unused_positions(config);
  HS_CHECK(options.context > unused, config.config_key("max_position_embeddings"), " is ", options.context,
           ", of which the first ", unused, " are not used: none is left");
  options.context -= unused;
  options.activation = read_activation(config, "hidden_act", ActivationKind::kGeluErf);
  options.tie_embeddings = config.flag("tie_word_embeddings", true);
  return options;
}

// transformers' head applies GELU whatever hidden_act says.
void check_head_activation(const HfConfig& config, const EncoderOptions& options) {
  HS_CHECK(!options.masked_head || options.activation == ActivationKind::kGeluErf, config.config_key("hidden_act"),
           " is ", brief_json(config.value("hidden_act")),
           " while RoBERTa's masked-LM head always has gelu; convert the model "
           "without its head: AutoModel.from_pretrained(DIR).save_pretrained(NEW_DIR)");
}

bool is_class(const HfConfig& config, const std::string& name) {
  const std::string own = config.architecture().value_or("RobertaModel");
  return own == name || own == "XLM" + name;
}

TaskHeadOptions read_task_head(const HfDirectory& directory, const HfMapping& tensors) {
  if (tensors.has("qa_outputs.weight")) return {.kind = TaskHeadKind::kToken, .outputs = 2};
  if (tensors.has("classifier.weight")) return {.kind = TaskHeadKind::kText, .outputs = 1};  // multiple choice
  if (!tensors.has(kClassifier)) return {};
  const TaskHeadOptions head = read_classes(directory);
  check_problem_type(directory, head.outputs);
  return head;
}

// The names of tensors depend on these besides the options.
struct RobertaNames {
  bool own_layer = false;  // a classifier has a layer of its own in place of the pooler
  std::string output_bias = "lm_head.bias";
};

RobertaNames names_of(const EncoderOptions& options, const HfMapping& tensors) {
  RobertaNames names{.own_layer = tensors.has(kClassifier)};
  const bool untied = !options.tie_embeddings && tensors.has("lm_head.decoder.bias");
  if (untied || !tensors.has("lm_head.bias")) names.output_bias = "lm_head.decoder.bias";
  return names;
}

// Every tensor of ours and its name without the prefix "roberta.".
TensorPlaces tensor_places(const EncoderOptions& options, int64_t unused, const RobertaNames& names) {
  TensorPlaces places = hashformer_places(options.embedding.kind);
  if (options.masked_head && options.tie_embeddings && places.front().ours == "token_embedding") {
    places.front().copies = {kRobertaOutputLayer};
  }
  places.push_back({.theirs = "embeddings.token_type_embeddings.weight", .ours = "segment_embedding"});
  add_pair("embeddings.LayerNorm", "embedding_norm", &places);
  add_blocks("encoder.layer.", bert_block_parts(), options.layers, &places);
  if (options.pooler) add_pair(names.own_layer ? "classifier.dense" : "pooler.dense", "pooler", &places);
  if (options.task_head.kind == TaskHeadKind::kToken) add_pair("qa_outputs", "task_head.output", &places);
  if (options.task_head.kind == TaskHeadKind::kText) {
    add_pair(names.own_layer ? "classifier.out_proj" : "classifier", "task_head.output", &places);
  }
  if (options.three_way_head) add_pair("dense", "three_way_head.output", &places);
  if (options.masked_head) {
    add_pair("lm_head.dense", "masked_head.dense", &places);
    add_pair("lm_head.layer_norm", "masked_head.norm", &places);
    if (!options.tie_embeddings)
      places.push_back({.theirs = kRobertaOutputLayer, .ours = "masked_head.output_embedding"});
    places.push_back({.theirs = names.output_bias, .ours = "masked_head.output_bias"});
  }
  places.push_back(
      {.theirs = "embeddings.position_embeddings.weight", .ours = "position_embedding", .unused_rows = unused});
  return places;
}

EncoderOptions roberta_options(const HfConfig& config) {
  EncoderOptions options = read_roberta_options(config, /*hashed=*/false);
  set_heads_of_class(config, "Roberta", &options);  // those of XLMRoberta have the same
  options.three_way_head = is_class(config, kThreeWayClass);
  check_head_activation(config, options);
  return resolve_read(config, options);
}

HfShape roberta_shape(const HfConfig& config, const std::string& type) {
  return encoder_shape(config, type, "RobertaModel", roberta_options(config));
}

// Leaves out tensors that repeat others or are no parameters.
void leave_out_the_rest_of_roberta(const EncoderOptions& options, const std::map<std::string, std::string>& taken,
                                   HfMapping* mapping) {
  mapping->leave_out("embeddings.position_ids");
  for (const char* unread : {"pooler.dense.weight", "pooler.dense.bias"}) {  // beside a classifier's own layer
    if (options.pooler) mapping->leave_out(unread);
  }
  if (options.masked_head && options.tie_embeddings) {
    mapping->leave_out_copy("lm_head.decoder.bias", {options.vocabulary}, taken.at("masked_head.output_bias"));
  } else if (options.masked_head) {
    mapping->leave_out("lm_head.bias");
  }
}

ForeignModel open_roberta(const std::shared_ptr<const HfDirectory>& directory) {
  HfMapping mapping(directory, without_prefix("roberta."));
  EncoderOptions options = read_roberta_options(*directory, hashes_words(*directory));
  options.pooler = mapping.has("pooler.dense.weight") || mapping.has("classifier.dense.weight");
  options.masked_head = mapping.has("lm_head.dense.weight");
  options.three_way_head = mapping.has("dense.weight");
  options.task_head = read_task_head(*directory, mapping);
  check_head_activation(*directory, options);
  options = resolve_read(*directory, options);
  ForeignModel foreign{.options = options};
  if (is_hashed(options.embedding)) ask_for_hash(*directory, &foreign);
  const auto taken =
      take_places(tensor_places(options, unused_positions(*directory), names_of(options, mapping)), options, &mapping);
  leave_out_the_rest_of_roberta(options, taken, &mapping);
  if (is_class(*directory, kRobertaMultipleChoice))
    foreign.notes.push_back(multiple_choice_note(kRobertaMultipleChoice));
  if (options.task_head.kind == TaskHeadKind::kText) {
    note_head_dropout(*directory, "classifier_dropout", {}, options, &foreign.notes);
  }
  mapping.finish(is_hashed(options.embedding) ? "HashFormer" : "RoBERTa", &foreign);
  return foreign;
}

std::vector<std::string> roberta_objections(const ModelOptions& options) {
  const auto& o = options.as<EncoderOptions>();
  std::vector<std::string> all = bert_form_objections(o, {.name = "RoBERTa"});
  if (o.three_way_head) all.emplace_back("the encoder has a head of three-way classification, which RoBERTa has not");
  if (o.masked_head && o.activation != ActivationKind::kGeluErf) {
    all.emplace_back("RoBERTa's masked-LM head always has gelu-erf, and the encoder's has not (--activation)");
  }
  return all;
}

// transformers counts positions of the tokens that are no padding, and from its id on.
int64_t padding_of(const ModelToWrite& model) {
  const Tokenizer* tokenizer = model.tokenizers.target.get();
  const auto padding = tokenizer == nullptr ? std::nullopt : tokenizer->special(SpecialToken::kPadding);
  HS_CHECK(padding,
           "RoBERTa counts positions without padding, and the checkpoint has no tokenizer with a token for "
           "that; write the model as BERT: --to hf:bert");
  return *padding;
}

HfContent roberta_content(const ModelToWrite& model) {
  const auto& options = model.options.as<EncoderOptions>();
  const int64_t unused = padding_of(model) + 1;
  const RobertaNames names{.own_layer = options.task_head.kind == TaskHeadKind::kText};
  const bool has_head = options.masked_head || options.task_head.kind != TaskHeadKind::kNone;
  HfContent content;
  content.tensors = fill_places(tensor_places(options, unused, names), model, has_head ? "roberta." : "",
                                {"lm_head.", "classifier.", "qa_outputs."});
  if (options.masked_head && !options.tie_embeddings) {
    content.tensors["lm_head.decoder.bias"] = content.tensors.at("lm_head.bias").clone();
  }
  content.config = begin_encoder_config("roberta", architecture_of("Roberta", options), bert_keys(), options);
  content.config["hidden_act"] = activation_name(options.activation);
  content.config["max_position_embeddings"] = options.context + unused;
  content.config["pad_token_id"] = unused - 1;
  return content;
}

}  // namespace

HfModelType roberta_type() {
  return {.name = "roberta",
          .models = {"RoBERTa", "HashFormers"},
          .kind = "encoder",
          .shape = roberta_shape,
          .open = open_roberta,
          .objections = roberta_objections,
          .only_by_name = true,
          .content = roberta_content};
}

HfModelType xlm_roberta_type() {
  HfModelType type = roberta_type();
  type.name = "xlm-roberta";
  type.models = {"XLM-RoBERTa"};
  type.objections = nullptr;  // what it holds is written as RoBERTa
  type.content = nullptr;
  return type;
}

}  // namespace headshare
