#include "headshare/convert/gguf/merge_scores.h"

#include <optional>
#include <unordered_map>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/strings/valid_utf8.h"
#include "headshare/convert/foreign/byte_spellings.h"

namespace headshare {
namespace {

constexpr size_t kMostExactScores = 1 << 24;  // whole numbers that float32 holds

class MergeCourse {
 public:
  explicit MergeCourse(const CharacterBpeDefinition& definition) : definition_(definition) {
    for (size_t id = 0; id < definition.tokens.size(); ++id) {
      ids_.emplace(definition.tokens[id], static_cast<int32_t>(id));
    }
    for (size_t rank = 0; rank < definition.merges.size(); ++rank) {
      ranks_.emplace(pair_key(definition.merges[rank].left, definition.merges[rank].right), rank);
    }
  }

  // Tells how merging a text goes: whether it comes to two neighbours, and the rank of their merge, if they have one.
  struct End {
    bool two = false;
    std::optional<size_t> rank = {};
  };
  End end_of(const std::string& text) const {
    std::vector<int32_t> symbols = characters(text);
    while (symbols.size() > 2) {
      const std::optional<size_t> at = first_merge(symbols);
      if (!at) return {};
      symbols[*at] = definition_.merges[*rank_of(symbols[*at], symbols[*at + 1])].result;
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(*at) + 1);
    }
    if (symbols.size() < 2) return {};
    return {.two = true, .rank = rank_of(symbols[0], symbols[1])};
  }

 private:
  static constexpr int32_t kNoToken = -1;  // a character that is its bytes

  static uint64_t pair_key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }

  std::optional<size_t> rank_of(int32_t left, int32_t right) const {
    const auto found = ranks_.find(pair_key(left, right));
    return found == ranks_.end() ? std::nullopt : std::optional(found->second);
  }

  std::vector<int32_t> characters(const std::string& text) const {
    std::vector<int32_t> symbols;
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      if (next_code_point(text, &at) < 0) ++at;
      const auto found = ids_.find(std::string_view(text).substr(begin, at - begin));
      symbols.push_back(found == ids_.end() ? kNoToken : found->second);
    }
    return symbols;
  }

  // Returns where the next merge begins.
  std::optional<size_t> first_merge(const std::vector<int32_t>& symbols) const {
    std::optional<size_t> best, place;
    for (size_t at = 0; at + 1 < symbols.size(); ++at) {
      const std::optional<size_t> rank = rank_of(symbols[at], symbols[at + 1]);
      if (rank && (!best || *rank < *best)) best = rank, place = at;
    }
    return place;
  }

  const CharacterBpeDefinition& definition_;
  std::unordered_map<std::string_view, int32_t> ids_;
  std::unordered_map<uint64_t, size_t> ranks_;
};

}  // namespace

std::vector<float> merge_scores(const CharacterBpeDefinition& definition, const std::vector<std::string>& spellings) {
  HS_CHECK(definition.merges.size() < kMostExactScores, "the tokenizer has ", definition.merges.size(),
           " merges, and readers of GGUF tell fewer than ", kMostExactScores, " scores apart", kWithoutTokenizer);
  const MergeCourse course(definition);
  // Nothing makes the other tokens.
  std::vector<float> scores(spellings.size(), -static_cast<float>(definition.merges.size()));
  for (size_t id = 0; id < spellings.size(); ++id) {
    const MergeCourse::End end = course.end_of(spellings[id]);
    if (!end.two) continue;
    HS_CHECK(end.rank, "merging the characters of the token ", brief_json(spellings[id]),
             " comes to two tokens that no merge joins, and readers of GGUF join them", kWithoutTokenizer);
    scores[id] = -static_cast<float>(*end.rank);
  }
  return scores;
}

}  // namespace headshare
