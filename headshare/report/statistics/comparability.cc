#include "headshare/report/statistics/comparability.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

constexpr const char* kKind = "token-embedding";
constexpr const char* kTokenizer = "tokenizer";

// Names the targets of a variant's losses: all hashes read words, and unless random tokens are words each embedding has
// codes of its own.
std::string targets_of(const Results& results, const std::string& variant) {
  const nlohmann::json own = variant_of(results, variant).options;
  const auto option = [&](const char* name) {
    const nlohmann::json& from = own.contains(name) ? own : results.options;
    return from.contains(name) && from.at(name).is_string() ? from.at(name).get<std::string>() : "";
  };
  const std::string tokenizer = option(kTokenizer);
  const std::string tokens = tokenizer.starts_with("hash-") ? "words" : tokenizer;
  return option("random-tokens") == "words" ? tokens : tokens + " " + option(kKind);
}

}  // namespace

std::string table_twin(const Results& results, const Variant& variant) {
  const auto rest = [](const Variant& one) {
    nlohmann::json options = one.options;
    options.erase(kKind);
    options.erase(kTokenizer);
    return options;
  };
  for (const std::string& name : variant_names(results)) {
    const Variant other = variant_of(results, name);
    const auto kind = other.options.find(kKind);
    if (kind != other.options.end() && *kind == "table" && rest(other) == rest(variant)) return name;
  }
  return "";
}

bool compares_embeddings(const Results& results) {
  const std::vector<std::string> names = variant_names(results);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return variant_of(results, name).options.contains(kKind); });
}

bool losses_compare(const Results& results, const std::string& variant, const std::string& other) {
  return !results.subject.tasks.empty() || targets_of(results, variant) == targets_of(results, other);
}

bool all_losses_compare(const Results& results) {
  const std::vector<std::string> names = variant_names(results);
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return losses_compare(results, name, names.front()); });
}

bool compares_loss(const Subject& subject) {
  return subject.measure == "perplexity" || subject.measure == "masked-perplexity";
}

bool less_is_better(const Subject& subject) {
  return compares_loss(subject) || subject.direction == Direction::kLowerIsBetter;
}

std::string compared_name(const Subject& subject) {
  return join_text(subject.has_test_part ? "test " : "validation ",
                   compares_loss(subject) ? "loss" : score_heading(subject.measure));
}

}  // namespace headshare
