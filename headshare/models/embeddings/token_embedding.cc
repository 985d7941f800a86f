#include "headshare/models/token_embedding.h"

namespace headshare {

std::shared_ptr<TokenEmbedding> make_token_embedding(const TransformerOptions& o, const DeclareParameter& declare) {
  return make_table_embedding(o, declare);
}

}  // namespace headshare
