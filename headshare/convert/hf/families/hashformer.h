// HashFormers as their authors publish them (github HUIYINXUE/hashformer, src/model/model.py): RoBERTa whose token
// embeddings read hashes of words. roberta.h reads such directories; here is what differs.
#pragma once

#include "headshare/convert/hf/families/encoder_tensors.h"

namespace headshare {

// Their class for the pre-training task.
inline constexpr const char* kThreeWayClass = "RobertaForShuffleRandomThreeWayClassification";

// The token embedding of a RoBERTa configuration: vocab_size 0 is Pool, 1 Add and 2 Proj, and other sizes are tables.
// Emb's configuration is that of a RoBERTa, so that the caller says that ids are buckets of words (`hashes_words`).
// Throws Error, naming the key, for numbers that these models do not have.
TokenEmbeddingKind hashformer_embedding(const HfConfig& config, bool hashes_words);

// Tells whether the user reads a directory's text with a tokenizer that hashes words.
bool hashes_words(const HfDirectory& directory);

// Asks for a tokenizer of kind hash-md or hash-lsh: the files do not say which hash a model has, so
// `foreign.tokenizers` throws Error with the way out.
void ask_for_hash(const HfDirectory& directory, ForeignModel* foreign);

// The tensors of a token embedding, without the prefix "roberta.".
const TensorPlaces& hashformer_places(TokenEmbeddingKind kind);

}  // namespace headshare
