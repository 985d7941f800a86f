#include "headshare/compare/embeddings.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/compare/variants.h"

namespace headshare {
namespace {

constexpr const char* kAll = "all";
constexpr const char* kTokenizer = "tokenizer";
constexpr const char* kKind = "token-embedding";
constexpr const char* kTable = "table";

std::vector<EmbeddingChoice> make_choices() {
  std::vector<EmbeddingChoice> all = {{.name = "wordpiece", .tokenizer = "wordpiece", .kind = kTable}};
  for (const std::string family : {"hash-md", "hash-lsh"}) {
    for (const std::string kind : {"emb", "pool", "add", "proj"}) {
      all.push_back({.name = family + "-" + kind, .tokenizer = family, .kind = "hash-" + kind});
    }
  }
  // These read the letters of words and use the tokenizer only to find the words.
  all.push_back({.name = "trigram", .tokenizer = "hash-md", .kind = "hash-trigram"});
  all.push_back({.name = "characters", .tokenizer = "hash-md", .kind = "hash-characters"});
  return all;
}

bool hashes_pieces(const EmbeddingChoice& choice) { return choice.tokenizer == "hash-lsh"; }

Variant with_embedding(Variant variant, const EmbeddingChoice& choice) {
  variant.name += "+" + choice.name;
  variant.options[kTokenizer] = choice.tokenizer;
  variant.options[kKind] = choice.kind;
  return variant;
}

// Suggests the nearest of the known names; "hash-proj" is the kind of two choices.
std::string near_embeddings(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = did_you_mean(name, known);
  if (!near.empty()) return near;
  std::vector<std::string> kinds, names;
  for (const EmbeddingChoice& one : embedding_choices()) kinds.push_back(one.kind);
  const std::string kind = nearest_name(name, kinds);
  for (const EmbeddingChoice& one : embedding_choices()) {
    if (one.kind == kind) names.push_back(one.name);
  }
  return names.empty() ? "" : join_text(" (did you mean ", list_text(names, "or"), "?)");
}

// Tells whether the models of a task, or those that they begin with, are encoders whose embedding can be chosen.
bool takes_embeddings(const std::string& task) {
  const std::vector<std::string> first = task_family(task).begins_with();
  return task == kEmbeddingTask || std::find(first.begin(), first.end(), kEmbeddingTask) != first.end();
}

std::string token_embedding(ComparisonOptions options) {
  Fields known = task_family(kEmbeddingTask).model_fields(options);
  return field_text(find_field(known, kKind)->value(), kKind);
}

}  // namespace

const std::vector<EmbeddingChoice>& embedding_choices() {
  static const std::vector<EmbeddingChoice> choices = make_choices();
  return choices;
}

std::vector<EmbeddingChoice> chosen_embeddings(const ComparisonOptions& options) {
  std::vector<std::string> known = {kAll};
  for (const EmbeddingChoice& one : embedding_choices()) known.push_back(one.name);
  for (const std::string& name : options.embeddings) {
    HS_CHECK(std::find(known.begin(), known.end(), name) != known.end(), "--embeddings: there is no ", brief_text(name),
             near_embeddings(name, known), "; there are ", list_text(known));
  }
  const auto named = [&](const std::string& name) {
    return std::find(options.embeddings.begin(), options.embeddings.end(), name) != options.embeddings.end();
  };
  std::vector<EmbeddingChoice> chosen;
  for (const EmbeddingChoice& one : embedding_choices()) {
    if (named(kAll) || named(one.name)) chosen.push_back(one);
  }
  return chosen;
}

std::vector<Variant> with_embeddings(const ComparisonOptions& options, const std::vector<Variant>& variants) {
  const std::vector<EmbeddingChoice> embeddings = chosen_embeddings(options);
  if (embeddings.empty()) return variants;
  std::vector<Variant> all;
  for (const Variant& one : variants) {
    HS_CHECK(!one.options.contains(kKind), "--variants ", one.name, " sets ", kKind,
             ", which --embeddings varies; leave it out of one of them");
    for (const EmbeddingChoice& choice : embeddings) {
      all.push_back(with_embedding(one, choice));
      HS_CHECK(find_variant(all, all.back().name) == &all.back(), "two variants are called ", all.back().name,
               "; give one of --variants another name");
    }
  }
  return all;
}

Fields embedding_fields(ComparisonOptions& options) {
  Fields list;
  for (Field& one : fields(options.own<TextOptions>().tokenizer)) {
    if (one.name == kTokenizer) list.push_back(std::move(one));
  }
  return list;
}

void fit_to_tokenizer(ComparisonOptions* options) {
  TokenizerOptions& tokenizer = options->own<TextOptions>().tokenizer;
  if (!has_vocabulary(tokenizer.kind)) {
    tokenizer.vocabulary_size.reset();
    tokenizer.min_count.reset();
    tokenizer.cased = false;
  }
  if (tokenizer.kind != TokenizerKind::kHashLsh) tokenizer.hash_merges.clear();
}

void check_embeddings(const ComparisonOptions& options) {
  const std::vector<EmbeddingChoice> chosen = chosen_embeddings(options);
  if (chosen.empty()) return;
  HS_CHECK(takes_embeddings(options.task), "--embeddings compares encoders, and --task is ", options.task,
           "; use --task ", kEmbeddingTask, ", or fine-tune them with --task glue or another");
  const TextOptions& text = options.own<TextOptions>();
  HS_CHECK(text.tokenizer_path.empty() && text.tokenizer.kind == TokenizerKind::kWordPiece,
           "--embeddings chooses the tokenizers; leave --tokenizer and --tokenizer-path out");
  HS_CHECK(token_embedding(options) == kTable,
           "--embeddings chooses the token embeddings; leave --token-embedding out");
  HS_CHECK(text.tokenizer.hash_merges.empty() || std::any_of(chosen.begin(), chosen.end(), hashes_pieces),
           "--hash-merges is for the embeddings hash-lsh-..., and none of --embeddings is one; leave it out");
  const bool table = std::any_of(chosen.begin(), chosen.end(), [](const auto& one) { return one.kind == kTable; });
  const TokenizerOptions usual = preset_options(options.task, options.preset, options).own<TextOptions>().tokenizer;
  HS_CHECK(
      table || (text.tokenizer.vocabulary_size == usual.vocabulary_size &&
                text.tokenizer.min_count == usual.min_count && text.tokenizer.cased == usual.cased),
      "--vocabulary-size, --min-count and --cased are for the embedding wordpiece, and --embeddings names only some "
      "that hash words; leave them out");
  HS_CHECK(!text.distillation.given(), "--embeddings trains encoders that have no scores of a vocabulary to learn ",
           "from a teacher; leave --teacher out");
}

}  // namespace headshare
