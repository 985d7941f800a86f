// ALBERT as Hugging Face transformers stores it (models/albert/modeling_albert.py): AlbertModel, AlbertForMaskedLM,
// AlbertForPreTraining, AlbertForSequenceClassification, AlbertForMultipleChoice and AlbertForQuestionAnswering.
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// BERT's form with a factorised embedding and layers that share their parameters in groups. Both directions, as
// bert_type(); groups of several inner layers or of unequal length are refused.
HfModelType albert_type();

}  // namespace headshare
