// A check tells whether a contender of the attention benchmarks computes what it should. Wrong ones are not timed.
#pragma once

#include <optional>
#include <string>

#include "headshare/bench/attention_contender.h"

namespace headshare {

// An objection is a sentence on what is wrong, or nothing.
using Objection = std::optional<std::string>;

// This check compares, without dropout, heads and gradients of a few blocks of queries (the first, the last, some in
// between) of the last sentence with the plain formula in double precision. It allows twice the error of the plain
// formula in the case's own precision, and some roundings of the result's magnitude.
class FormulaCheck {
 public:
  // `inputs`: filled with Fill::kNormal, without dropout.
  FormulaCheck(const CaseInputs& inputs, Pass pass);

  Objection operator()(const Contender& contender) const;

 private:
  struct Expected {
    std::string what;  // "heads", "gradient of keys"
    Tensor value;      // double
    double tolerance;
  };

  Pass pass_;
  std::vector<std::pair<int64_t, int64_t>> blocks_;  // of queries: first, last + 1
  Tensor output_gradient_;                           // zero outside the blocks and the last sentence
  Expected heads_;                                   // [H, queries of all blocks, D]
  // The expected gradients stand in the order of Contender::leaves: of contenders that get the problem ready, and of
  // those that pose it.
  std::vector<Expected> of_problem_, of_inputs_;
};

// With dropout: where all scores of a query and all values are equal, a query that sees n keys gives the value times
// (keys kept) / (n (1 - p)), which must be spread as drawn independently: mean 1, variance p / (n (1 - p)).
// `contender` must have been made from inputs of Fill::kUniform.
Objection check_dropout_statistics(const Contender& contender, const CaseInputs& uniform);

// Checks that backward used the dropout mask of forward: heads are linear in the values for a fixed mask, so <heads,
// heads> = <values, gradient of the values for the heads' gradient `heads`>. Where one tensor is keys and values, or
// both are linear in it, the keys' part of its gradient is taken off: it is <queries, their gradient>, since scores are
// bilinear.
Objection check_dropout_gradient(const Contender& contender);

}  // namespace headshare
