// BERT as Hugging Face transformers stores it (models/bert/modeling_bert.py): BertModel, BertForMaskedLM,
// BertForPreTraining, BertForSequenceClassification, BertForMultipleChoice and BertForQuestionAnswering.
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// Reading: our encoder of scheme mha with learned positions, biases everywhere and norms after the sums; pooler and
// heads where the directory has them; the head of BertForMultipleChoice is a text head of one output. Tensors are taken
// as they stand, with or without the prefix "bert.", norms also under their old names gamma and beta; position_ids are
// left out, and the next-sentence head with a note. Where no tensors tell, pooler and heads are those of the class that
// `architectures` names; without one it is a BertModel, which has the pooler. A next-sentence head is not counted.
//
// Writing: the class with the encoder's head (BertForMaskedLM, BertForSequenceClassification, BertForQuestionAnswering;
// BertForTokenClassification for three-way classification), or BertModel where it has none.
HfModelType bert_type();

}  // namespace headshare
