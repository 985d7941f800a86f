// For this folder's tests only: pairs without files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headshare/base/rng.h"
#include "headshare/data/parallel/pair_data.h"
#include "headshare/data/test_support.h"
#include "headshare/data/text/fake_tokenizer.h"

namespace headshare {

inline std::vector<Pair> read_all(const PairFiles& files, const PairOptions& options = {}) {
  PairText text(files, options);
  std::vector<Pair> pairs;
  while (std::optional<Pair> pair = text.next()) pairs.push_back(std::move(*pair));
  return pairs;
}

// A test makes pairs of `lengths` (without the end token; FakeTokenizer makes a token of each byte), in files of
// `test`.
class PairTest : public DirectoryTest {
 protected:
  PairFiles files_of(const std::vector<std::pair<int64_t, int64_t>>& lengths) const {
    std::string source;
    std::string target;
    for (const auto& [from, to] : lengths) {
      source += std::string(static_cast<size_t>(from), 's') + "\n";
      target += std::string(static_cast<size_t>(to), 't') + "\n";
    }
    return {file("a.src", source), file("a.tgt", target)};
  }

  PairData data_of(const std::vector<std::pair<int64_t, int64_t>>& lengths, const PairLimits& limits = {}) const {
    const FakeTokenizer tokenizer;
    PairText text(files_of(lengths), {});
    return PairData(&text, tokenizer, tokenizer, limits);
  }

  // Makes pairs of `count` random lengths from 1 to `most`.
  PairData random_data(int64_t count, uint64_t most, uint64_t seed) const {
    Philox random(seed);
    std::vector<std::pair<int64_t, int64_t>> lengths;
    for (int64_t i = 0; i < count; ++i) {
      lengths.emplace_back(1 + static_cast<int64_t>(random.below(most)), 1 + static_cast<int64_t>(random.below(most)));
    }
    return data_of(lengths);
  }
};

}  // namespace headshare
