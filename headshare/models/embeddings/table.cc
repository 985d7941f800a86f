#include <ATen/ATen.h>

#include "headshare/models/token_embedding.h"

namespace headshare {
namespace {

class TableEmbedding : public TokenEmbedding {
 public:
  explicit TableEmbedding(Tensor table) : table_(std::move(table)) {}

  Tensor lookup(const Tensor& ids, LookupGradient gradient) const override {
    const bool sparse = gradient == LookupGradient::kRows && device().is_cpu();
    return at::embedding(table_, ids, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, sparse);
  }
  const Tensor& table() const override { return table_; }
  c10::Device device() const override { return table_.device(); }

 private:
  Tensor table_;
};

}  // namespace

std::shared_ptr<TokenEmbedding> make_table_embedding(const TransformerOptions& o, const DeclareParameter& declare) {
  return std::make_shared<TableEmbedding>(
      declare("token_embedding", {o.vocabulary, embedding_width(o)}, Init::normal(o.init_deviation)));
}

}  // namespace headshare
