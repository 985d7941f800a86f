// BERT as Hugging Face transformers stores it (models/bert/modeling_bert.py): BertModel, BertForMaskedLM,
// BertForPreTraining, BertForSequenceClassification, BertForMultipleChoice and BertForQuestionAnswering.
#pragma once

#include <memory>

#include "headshare/convert/foreign.h"
#include "headshare/convert/hf/directory.h"

namespace headshare {

// The key in config.json by which our own directories are known; transformers ignores it.
inline constexpr const char* kExportMark = "headshare_format_version";

// The options of a configuration alone. Pooler and heads are those of the class that `architectures` names; without one
// it is a BertModel, which has the pooler. A next-sentence head is not counted. Throws Error as map_bert does.
EncoderOptions bert_options(const HfConfig& config);

// The model as our encoder: `mha` with learned positions, biases everywhere and norms after the sums; pooler and
// heads where the directory has them; the head of BertForMultipleChoice is a text head of one output. Tensors are taken
// as they stand, with or without the prefix "bert.", norms also under their old names gamma and beta; position_ids are
// left out, and the next-sentence head with a note. Throws Error for a class of transformers or a configuration we
// cannot reproduce, naming the key, and for tensors that are missing, unknown or of another shape.
ForeignModel map_bert(const std::shared_ptr<const HfDirectory>& directory);

// Throws Error, naming the option and the way out, for an encoder that BERT's tensors cannot hold.
void check_bert_holds(const EncoderOptions& resolved);

// Writes config.json and model.safetensors of the transformers class with the encoder's head (BertForMaskedLM,
// BertForSequenceClassification, BertForQuestionAnswering; BertForTokenClassification for three-way classification), or
// of a BertModel where it has none, into `directory`, which exists. transformers gives the same hidden states and
// scores.
void write_bert(const fs::path& directory, const Encoder& model);

}  // namespace headshare
