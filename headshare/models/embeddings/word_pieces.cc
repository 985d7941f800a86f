#include "headshare/models/embeddings/word_pieces.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/models/embeddings/word_codes.h"
#include "headshare/text/hash/word_table.h"

namespace headshare {

Tensor places_in_words(const PieceBags& bags) {
  const Tensor begins = at::repeat_interleave(bags.begins, bags.counts, 0, bags.pieces.size(0));
  return at::arange(bags.pieces.size(0), begins.options()) - begins;
}

Tensor bag_sums(const Tensor& rows, const Tensor& picked, const Tensor& begins) {
  constexpr int64_t kSum = 0;
  return std::get<0>(at::embedding_bag(rows, picked, begins, /*scale_grad_by_freq=*/false, kSum));
}

void WordPieces::read_words(std::shared_ptr<const Tokenizer> tokenizer) {
  tokenizer_ = word_reader(std::move(tokenizer));
  pieces_ = ends_ = Tensor();
}

void WordPieces::catch_up(c10::Device device) const {
  check_reader(tokenizer_.get());
  if (!ends_.defined()) {
    pieces_ = at::empty({0}, at::kInt);
    ends_ = at::zeros({1}, at::kLong);
  }
  pieces_ = pieces_.to(device);
  ends_ = ends_.to(device);
  const WordTable& words = *tokenizer_->words();
  const int64_t have = ends_.size(0) - 1;
  const int64_t all = words.size();
  if (all == have) return;
  const int64_t before = pieces_.size(0);
  std::vector<int32_t> pieces;
  std::vector<int64_t> ends;
  for (int64_t number = have; number < all; ++number) {
    const size_t begin = pieces.size();
    cut_(words.word(static_cast<int32_t>(number)), &pieces);
    HS_CHECK(pieces.size() > begin, "word number ", number, " is empty: the token cache that it is from is damaged");
    ends.push_back(before + static_cast<int64_t>(pieces.size()));
  }
  pieces_ = at::cat({pieces_, at::tensor(pieces, at::kInt).to(device)});
  ends_ = at::cat({ends_, at::tensor(ends, at::kLong).to(device)});
}

PieceBags WordPieces::of(const Tensor& numbers) const {
  catch_up(numbers.device());
  const Tensor from = ends_.index_select(0, numbers);
  const Tensor counts = ends_.index_select(0, numbers + 1) - from;
  const Tensor ends = counts.cumsum(0);
  const Tensor begins = ends - counts;
  const auto total = numbers.size(0) == 0 ? 0 : ends[-1].item<int64_t>();
  const Tensor shift = at::repeat_interleave(from - begins, counts, 0, total);
  const Tensor places = at::arange(total, shift.options()) + shift;
  return {.pieces = pieces_.index_select(0, places).to(at::kLong), .begins = begins, .counts = counts};
}

}  // namespace headshare
