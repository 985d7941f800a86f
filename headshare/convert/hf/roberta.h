// RoBERTa as Hugging Face transformers stores it (models/roberta/modeling_roberta.py): RobertaModel,
// RobertaForMaskedLM, RobertaForSequenceClassification, RobertaForMultipleChoice and RobertaForQuestionAnswering;
// XLM-RoBERTa alike; and HashFormers, whose code is RoBERTa's with other embeddings (hashformer.h).
#pragma once

#include <memory>

#include "headshare/convert/foreign.h"
#include "headshare/convert/hf/directory.h"

namespace headshare {

// The options of a configuration alone, as bert_options().
EncoderOptions roberta_options(const HfConfig& config);

// The model as our encoder: BERT's form. Positions are counted from pad_token_id + 1, so that the rows of the position
// table before it are left out, and the context is as much shorter. A classification head becomes pooler and task head.
// Throws Error as map_bert() does.
ForeignModel map_roberta(const std::shared_ptr<const HfDirectory>& directory);

}  // namespace headshare
