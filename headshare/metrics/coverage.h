// Counts how many words of the scored examples models never saw in training, and tells how well models do there.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace headshare {

// Words are those of WordsAndSymbols (text/hash): lower-cased, whatever the models' tokenizers make of them, and of
// whole texts, also where rows are cut.
struct Coverage {
  int64_t types = 0;         // distinct words of the part that is scored
  int64_t unseen_types = 0;  // distinct words that no training example has
  int64_t words = 0;         // with repetitions
  int64_t unseen_words = 0;
  int64_t rows = 0;         // examples
  int64_t unseen_rows = 0;  // examples with an unseen word
  // These examples were longer than a row and were cut, by the models' tokenizer; files from before this was counted
  // have none.
  std::optional<int64_t> cut_rows = {};
  std::optional<double> unseen_score = {};  // the score of these rows alone; none where they have no score
};

// coverage_from_json() throws Error, which names `where` and the key, for JSON that is no such object and for more
// unseen words or rows than words or rows.
nlohmann::ordered_json to_json(const Coverage& coverage);
Coverage coverage_from_json(const nlohmann::json& object, const std::string& where);

}  // namespace headshare
