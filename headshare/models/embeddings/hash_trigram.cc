#include <ATen/ATen.h>

#include <unordered_map>

#include "headshare/models/embeddings/letters_embedding.h"
#include "headshare/text/hash/trigrams.h"

namespace headshare {
namespace {

// A TrigramTable holds the rows of the trigrams seen so far, numbered in the order in which they came.
class TrigramTable {
 public:
  TrigramTable(int64_t hashes, int64_t rows) : hashes_(hashes), rows_(rows) {}

  void add(const std::string& word, std::vector<int32_t>* numbers) {
    for (const int32_t trigram : word_trigrams(word)) {
      const auto [found, fresh] = numbers_.emplace(trigram, static_cast<int32_t>(numbers_.size()));
      if (fresh) {
        const std::vector<int64_t> picked = trigram_rows(trigram, hashes_, rows_);
        fresh_.insert(fresh_.end(), picked.begin(), picked.end());
      }
      numbers->push_back(found->second);
    }
  }

  // Returns the rows of all trigrams on a device, int64 [trigrams, hashes].
  const Tensor& on(c10::Device device) {
    if (!picked_.defined()) picked_ = at::empty({0, hashes_}, at::kLong);
    picked_ = picked_.to(device);
    if (!fresh_.empty()) picked_ = at::cat({picked_, at::tensor(fresh_, at::kLong).view({-1, hashes_}).to(device)});
    fresh_.clear();
    return picked_;
  }

 private:
  int64_t hashes_, rows_;
  std::unordered_map<int32_t, int32_t> numbers_;
  std::vector<int64_t> fresh_;  // not in picked_ yet
  Tensor picked_;
};

class HashTrigram : public LettersEmbedding {
 public:
  HashTrigram(const TokenEmbeddingOptions& o, const EmbeddingSize& size, const EmbeddingHost& host,
              const std::shared_ptr<TrigramTable>& table)
      : LettersEmbedding(
            size, host, [table](const std::string& word, std::vector<int32_t>* numbers) { table->add(word, numbers); }),
        rows_(host.declare("trigram_embedding", {o.trigram_rows, size.width}, Init::normal(size.deviation))),
        table_(table) {}

 private:
  Tensor words(const PieceBags& bags) const override {
    const Tensor picked = table_->on(rows_.device()).index_select(0, bags.pieces);  // [n, m]
    return bag_sums(rows_, picked.flatten(), bags.begins * picked.size(1));
  }

  Tensor rows_;  // [v, W]
  std::shared_ptr<TrigramTable> table_;
};

}  // namespace

std::shared_ptr<TokenEmbedding> make_hash_trigram(const TokenEmbeddingOptions& options, const EmbeddingSize& size,
                                                  const EmbeddingHost& host) {
  return std::make_shared<HashTrigram>(options, size, host,
                                       std::make_shared<TrigramTable>(options.trigram_hashes, options.trigram_rows));
}

}  // namespace headshare
