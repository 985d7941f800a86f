// DistilBERT as Hugging Face transformers stores it (models/distilbert/modeling_distilbert.py): DistilBertModel,
// DistilBertForMaskedLM, DistilBertForSequenceClassification and DistilBertForQuestionAnswering.
#pragma once

#include <memory>

#include "headshare/convert/foreign.h"
#include "headshare/convert/hf/directory.h"

namespace headshare {

// The options of a configuration alone, as bert_options().
EncoderOptions distilbert_options(const HfConfig& config);

// The model as our encoder: BERT's form without segments; the layer before a classification head is a pooler with ReLU.
// Throws Error as map_bert() does.
ForeignModel map_distilbert(const std::shared_ptr<const HfDirectory>& directory);

}  // namespace headshare
