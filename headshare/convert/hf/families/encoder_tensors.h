// The directories of BERT and its relatives have these keys, names and rules in common.
#pragma once

#include <string>
#include <vector>

#include "headshare/convert/hf/model_type.h"
#include "headshare/convert/hf/tensor_places.h"

namespace headshare {

// Adds the numbers of blocks in BERT's configurations, which ViT's have, too.
std::vector<HfKey> with_block_keys(std::vector<HfKey> keys);

// These list the numbers of BERT's and RoBERTa's configurations, and the parts of their blocks.
const std::vector<HfKey>& bert_keys();
const BlockParts& bert_block_parts();

// The shape of an encoder; `plain`: the class without a head, which a configuration that names none is.
HfShape encoder_shape(const HfConfig& config, const std::string& type, const char* plain,
                      const EncoderOptions& options);

// BERT's relatives differ in the tensors that they have a place for.
struct BertForm {
  std::string name = "BERT";
  bool segments = true;
  PoolerActivation pooler = PoolerActivation::kTanh;
  bool shares_layers = false;
  bool factorised = false;
};

// The sentences say what keeps an encoder out of such tensors, as HfModelType::objections has them.
std::vector<std::string> bert_form_objections(const EncoderOptions& resolved, const BertForm& form = {});

// Returns the beginning of such a model's config.json: the type, the class, the numbers under `keys`, the names of
// classes.
nlohmann::json begin_encoder_config(const std::string& type, const std::string& architecture,
                                    const std::vector<HfKey>& keys, const EncoderOptions& options);

// "Albert" + "ForMaskedLM", "ForSequenceClassification", "ForQuestionAnswering" or "Model": by the encoder's head.
std::string architecture_of(const std::string& family, const EncoderOptions& options);

// The opposite: sets the pooler and the heads that the class has which config.json names, by what stands there behind
// `family`. A configuration without a class, and a class with another head, are those of "Model", which has a pooler.
void set_heads_of_class(const HfConfig& config, const std::string& family, EncoderOptions* options);

// BERT-base, whose sizes the configurations of its relatives default to.
EncoderOptions base_encoder();

// Throws Error where a token does not attend to what follows (is_causal, a key of every encoder of transformers);
// `model`: "BERT".
void refuse_causal_encoder(const HfConfig& config, const std::string& model);

// Throws Error for a causal encoder, for a decoder, and for other positions than absolute ones.
void refuse_other_encoders(const HfConfig& config, const std::string& model);

// The head of a task as the tensors have it, where classifiers read the pooler, whose weight is named. A model of the
// class `multiple_choice` has one output for each choice.
TaskHeadOptions read_pooled_head(const HfDirectory& directory, const HfMapping& tensors,
                                 const std::string& pooler_weight, const std::string& multiple_choice);

// The bias of a masked-LM head: "bias" or "decoder.bias" after `head`, or both. With tied embeddings they are one;
// without, transformers adds the decoder's and ignores the other.
std::string output_bias_name(const std::string& head, const EncoderOptions& options, const HfMapping& tensors);

// The classes' names are id2label's values, in the order of its keys 0, 1, ...; without it, or where num_labels is
// another number, num_labels counts them, and transformers' default is two.
TaskHeadOptions read_classes(const HfConfig& config);

// The opposite: writes the names of classes; those without a name are called as transformers calls them, LABEL_0.
void add_class_names(std::vector<std::string> labels, int64_t classes, nlohmann::json* config);

// Where a task's head has a dropout of its own, `key` of the configuration (`usual` where it does not say, null: that
// of the encoder), says that headshare has one for both.
void note_head_dropout(const HfConfig& config, const char* key, const nlohmann::json& usual,
                       const EncoderOptions& options, std::vector<std::string>* notes);

// The note says what becomes of the heads of such classes.
std::string multiple_choice_note(const std::string& name);

// A head of one output gives a number, one of several the scores of classes that exclude each other: throws Error,
// naming the way out, for another problem_type.
void check_problem_type(const HfConfig& config, int64_t outputs);

}  // namespace headshare
