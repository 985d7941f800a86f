// Token embeddings are a second axis of a comparison: each is a tokenizer with a map from its tokens to vectors.
#pragma once

#include <string>
#include <vector>

#include "headshare/compare/options.h"
#include "headshare/report/results/results.h"

namespace headshare {

// Encoders with any of the embeddings learn this task from text: most embeddings have no vocabulary to give logits for.
inline constexpr const char* kEmbeddingTask = "three-way";

// An EmbeddingChoice is one of --embeddings: "hash-md-proj" is the tokenizer hash-md with the token embedding
// hash-proj.
struct EmbeddingChoice {
  std::string name;
  std::string tokenizer;  // value of --tokenizer
  std::string kind;       // value of --token-embedding
};

// Lists all choices: first the table of WordPiece, which the others are measured against.
const std::vector<EmbeddingChoice>& embedding_choices();

// Returns the choices that --embeddings names or `all` stands for, in the order of the list; none where it is empty.
// Throws Error, with the nearest name, for an unknown one.
std::vector<EmbeddingChoice> chosen_embeddings(const ComparisonOptions& options);

// Combines every one of `variants` with every chosen embedding, "mha+hash-md-proj"; returns `variants` where none is
// chosen. Throws Error where two have one name.
std::vector<Variant> with_embeddings(const ComparisonOptions& options, const std::vector<Variant>& variants);

// Lists the options that an embedding sets.
Fields embedding_fields(ComparisonOptions& options);

// Drops options that the tokenizer of `options` does not have: a vocabulary's size, merges.
void fit_to_tokenizer(ComparisonOptions* options);

// Throws Error where --embeddings stands beside options that it sets, or a task whose models do not take them.
void check_embeddings(const ComparisonOptions& options);

}  // namespace headshare
