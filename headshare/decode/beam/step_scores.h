// Beam search asks this interface of a model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace headshare {

using at::Tensor;

// A hypothesis changes its row: row `to` continues what row `from` had.
struct RowMove {
  int64_t from = 0;
  int64_t to = 0;
};

// Gives scores of the next token for rows of hypotheses. The rows of a sentence are contiguous. At first each sentence
// has one row, which has seen its source and no target token; with widen() it gets a row for each beam.
class StepScores {
 public:
  virtual ~StepScores() = default;

  // Feeds one token to each row: last [N], N the number of rows. Returns scores [N, V] of the token behind it, float32
  // on the CPU: logits, or log probabilities; the search normalises both. The search may write into the tensor until
  // the next call.
  virtual Tensor next(const std::vector<int64_t>& last) = 0;

  // Each sentence's row becomes `beam` rows that have seen the same. It is called once at most, with beam > 1.
  virtual void widen(int64_t beam) = 0;

  // Copies what rows have seen (the cache of self-attention). No `to` is also a `from`, and no `to` comes twice: the
  // moves may be done in any order, or all at once by index_select and index_copy. Both rows belong to one sentence, so
  // the encoder's side stays as it is. Rows that are in no move stay as they are. It is never called without moves.
  virtual void move(std::span<const RowMove> moves) = 0;

  // The batch becomes these sentences, in this order: place i gets the rows of sentence sentences[i]. A sentence moves
  // only to fill the place of a finished one: sentences[i] == i wherever i stays. So a model may copy only sentences
  // that move, then cut off the rows behind. It is never called without sentences.
  virtual void keep(std::span<const int64_t> sentences) = 0;
};

}  // namespace headshare
