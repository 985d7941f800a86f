// Decides by which number variants are compared, and which of them may be: losses of different tokens say nothing of
// each other.
#pragma once

#include <string>

#include "headshare/report/results/results.h"

namespace headshare {

// Tells whether the variants are compared by loss: perplexities are its exponential, and losses are what seeds scatter
// evenly around.
bool compares_loss(const Subject& subject);
std::string compared_name(const Subject& subject);  // "test loss", "validation accuracy"
bool less_is_better(const Subject& subject);        // of the compared number

// Tells whether the variants differ in their token embeddings.
bool compares_embeddings(const Results& results);

// Returns the name of the variant that differs from this one in its embedding alone, which is a table; "" where there
// is none.
std::string table_twin(const Results& results, const Variant& variant);

// Tells whether losses of these two say which is better: they are of the same tokens, and random tokens among these are
// as easy to find. Scores of fine-tuned encoders are of the same examples, whatever reads these.
bool losses_compare(const Results& results, const std::string& variant, const std::string& other);
// Tells the same of all variants together.
bool all_losses_compare(const Results& results);

}  // namespace headshare
