// What the directories of BERT and its relatives have in common.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "headshare/convert/hf/mapping.h"

namespace headshare {

using TensorNames = std::vector<std::pair<std::string, std::string>>;  // theirs, ours

// Adds a layer's weight and bias.
void add_pair(const std::string& theirs, const std::string& ours, TensorNames* names);

// Adds weight and bias of each part of each block: "encoder.layer." + number + "." + part, ours after `our_prefix`.
void add_blocks(const std::string& prefix, const TensorNames& parts, int64_t layers, TensorNames* names,
                const std::string& our_prefix = "blocks.");

// The numbers of BERT's and RoBERTa's configurations, and the parts of their blocks.
const std::vector<HfKey>& bert_keys();
const TensorNames& bert_block_parts();

// Maps each of the named tensors, after checking its shape, as it stands; our names with theirs in full. `shape_of`
// gives the shape of one of ours.
std::map<std::string, std::string> take_named(const TensorNames& names,
                                              const std::function<std::vector<int64_t>(const std::string&)>& shape_of,
                                              HfMapping* mapping);

// The same for an encoder's. Where the head's output layer is the token embedding, files may have it under either name,
// that of `output_layer` too.
std::map<std::string, std::string> take_encoder(TensorNames names, const EncoderOptions& options,
                                                const std::string& output_layer, HfMapping* mapping);

// BERT-base, whose sizes the configurations of its relatives default to.
EncoderOptions base_encoder();

// Throws Error for a decoder, and for other positions than absolute ones; `model`: "BERT".
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

// Where a task's head has a dropout of its own, `key` of the configuration (`usual` where it does not say, null: that
// of the encoder), says that headshare has one for both.
void note_head_dropout(const HfConfig& config, const char* key, const nlohmann::json& usual,
                       const EncoderOptions& options, std::vector<std::string>* notes);

// What becomes of the heads of such classes.
std::string multiple_choice_note(const std::string& name);

// A head of one output gives a number, one of several the scores of classes that exclude each other: throws Error,
// naming the way out, for another problem_type.
void check_problem_type(const HfConfig& config, int64_t outputs);

}  // namespace headshare
