// RoBERTa as Hugging Face transformers stores it (models/roberta/modeling_roberta.py): RobertaModel,
// RobertaForMaskedLM, RobertaForSequenceClassification, RobertaForMultipleChoice and RobertaForQuestionAnswering;
// XLM-RoBERTa alike; and HashFormers, whose code is RoBERTa's with other embeddings (hashformer.h).
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// Read as BERT's form. Positions are counted from pad_token_id + 1, so that the rows of the position table before it
// are left out, and the context is as much shorter. A classification head becomes pooler and task head. Nothing is
// written as RoBERTa: what has a place there has one in BERT, whose positions do not depend on a padding token.
HfModelType roberta_type();
HfModelType xlm_roberta_type();

}  // namespace headshare
