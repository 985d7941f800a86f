// HashFormers as their authors publish them (github HUIYINXUE/hashformer, src/model/model.py): RoBERTa whose token
// embeddings read hashes of words. roberta.h reads such directories; here is what differs.
#pragma once

#include "headshare/convert/hf/encoder_tensors.h"

namespace headshare {

// Their class for the pre-training task.
inline constexpr const char* kThreeWayClass = "RobertaForShuffleRandomThreeWayClassification";

// The token embedding of a RoBERTa configuration: vocab_size 0 is Pool, 1 Add and 2 Proj, and other sizes are tables.
// Emb's configuration is that of a RoBERTa, so that the caller says that ids are buckets of words (`hashes_words`).
// Throws Error, naming the key, for numbers that these models do not have.
TokenEmbeddingKind hashformer_embedding(const HfConfig& config, bool hashes_words);

// The tensors of a token embedding, without the prefix "roberta.".
const TensorNames& hashformer_tensors(TokenEmbeddingKind kind);

}  // namespace headshare
