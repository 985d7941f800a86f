// Token embeddings as a second axis of a comparison: a tokenizer with what turns its tokens into vectors.
#pragma once

#include <string>
#include <vector>

#include "headshare/compare/options.h"
#include "headshare/report/results/results.h"

namespace headshare {

// What encoders with any of the embeddings learn from text: there is no vocabulary to score in most of them.
inline constexpr const char* kEmbeddingTask = "three-way";

// One of --embeddings: "hash-md-proj" is the tokenizer hash-md with the token embedding hash-proj.
struct EmbeddingChoice {
  std::string name;
  std::string tokenizer;  // of --tokenizer
  std::string kind;       // of --token-embedding
};

// The table of WordPiece first, which the others are measured against.
const std::vector<EmbeddingChoice>& embedding_choices();

// Those that --embeddings names or `all` stands for, in the order of the list; none where it is empty. Throws Error,
// with the nearest name, for an unknown one.
std::vector<EmbeddingChoice> chosen_embeddings(const ComparisonOptions& options);

// Every one of `variants` with every chosen embedding, "mha+hash-md-proj"; `variants` where none is chosen. Throws
// Error where two have one name.
std::vector<Variant> with_embeddings(const ComparisonOptions& options, const std::vector<Variant>& variants);

// The options that an embedding sets.
Fields embedding_fields(ComparisonOptions& options);

// Drops what the tokenizer of `options` does not have: a vocabulary's size, merges.
void fit_to_tokenizer(ComparisonOptions* options);

// Throws Error where --embeddings stands beside options that it sets, or a task whose models do not take them.
void check_embeddings(const ComparisonOptions& options);

}  // namespace headshare
