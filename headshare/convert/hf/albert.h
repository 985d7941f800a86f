// ALBERT as Hugging Face transformers stores it (models/albert/modeling_albert.py): AlbertModel, AlbertForMaskedLM,
// AlbertForPreTraining, AlbertForSequenceClassification, AlbertForMultipleChoice and AlbertForQuestionAnswering.
#pragma once

#include <memory>

#include "headshare/convert/foreign.h"
#include "headshare/convert/hf/directory.h"

namespace headshare {

// The options of a configuration alone, as bert_options().
EncoderOptions albert_options(const HfConfig& config);

// The model as our encoder: BERT's form with a factorised embedding and layers that share their parameters in groups.
// Throws Error as map_bert() does, and for groups of several inner layers or of unequal length.
ForeignModel map_albert(const std::shared_ptr<const HfDirectory>& directory);

}  // namespace headshare
