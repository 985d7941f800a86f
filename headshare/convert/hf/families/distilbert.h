// DistilBERT as Hugging Face transformers stores it (models/distilbert/modeling_distilbert.py): DistilBertModel,
// DistilBertForMaskedLM, DistilBertForSequenceClassification and DistilBertForQuestionAnswering.
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// BERT's form without segments; the layer before a classification head is a pooler with ReLU. Both directions, as
// bert_type().
HfModelType distilbert_type();

}  // namespace headshare
