#include "headshare/text/unigram/unigram_model.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>

namespace headshare {
namespace {

constexpr double kUnknownPenalty = 10;  // SentencePiece's

size_t character_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// Returns the tokens of all bytes; none where one is missing, as then no unknown piece may have them all.
std::vector<int32_t> byte_tokens(const std::vector<std::string>& tokens) {
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < tokens.size(); ++id) ids.emplace(tokens[id], static_cast<int32_t>(id));
  std::vector<int32_t> bytes(256, -1);
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    const auto found = ids.find(name);
    if (found != ids.end()) bytes[static_cast<size_t>(byte)] = found->second;
  }
  return bytes;
}

}  // namespace

UnigramModel::UnigramModel(const Options& o) : scores_(*o.scores), unknown_(o.unknown) {
  std::vector<std::pair<std::string_view, int32_t>> pieces;
  for (size_t id = 0; id < o.tokens->size(); ++id) {
    if (!o.never[id]) pieces.emplace_back((*o.tokens)[id], static_cast<int32_t>(id));
  }
  trie_ = PieceTrie(std::move(pieces));
  unknown_score_ = *std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty;
  if (o.byte_fallback) bytes_ = byte_tokens(*o.tokens);
}

int UnigramModel::byte_of(int32_t id) const {
  const auto found = std::find(bytes_.begin(), bytes_.end(), id);
  return found == bytes_.end() ? -1 : static_cast<int>(found - bytes_.begin());
}

std::vector<UnigramModel::Step> UnigramModel::best_steps(std::string_view word) const {
  std::vector<Step> steps(word.size() + 1);
  const auto offer = [&](size_t begin, size_t bytes, int32_t id, double score) {
    Step& there = steps[begin + bytes];
    const double sum = score + steps[begin].score;
    if (there.bytes == 0 || sum > there.score) there = {sum, id, static_cast<uint32_t>(bytes)};
  };
  for (size_t begin = 0, character = 0; begin < word.size(); begin += character) {
    character = character_bytes(word[begin]);
    bool alone = false;
    trie_.for_each_prefix(word.substr(begin), [&](size_t bytes, int32_t id) {
      offer(begin, bytes, id, scores_[static_cast<size_t>(id)]);
      alone = alone || bytes == character;
    });
    if (!alone) offer(begin, character, unknown_, unknown_score_);
  }
  return steps;
}

void UnigramModel::visit_unknown(std::string_view piece, TextSpan where,
                                 const std::function<void(int32_t, TextSpan)>& visit) const {
  int32_t whole = -1;
  if (piece.size() <= kLongestPiece) {
    trie_.for_each_prefix(piece, [&](size_t bytes, int32_t id) { whole = bytes == piece.size() ? id : whole; });
  }
  const bool in_bytes = !bytes_.empty() && std::all_of(piece.begin(), piece.end(), [this](char byte) {
    return bytes_[static_cast<unsigned char>(byte)] >= 0;
  });
  if (whole >= 0 || !in_bytes) return visit(whole >= 0 ? whole : unknown_, where);
  for (const char byte : piece) visit(bytes_[static_cast<unsigned char>(byte)], where);
}

void UnigramModel::for_each_piece(std::string_view word, const std::function<void(int32_t, TextSpan)>& visit) const {
  std::vector<Step> steps = best_steps(word);
  // Turns the steps round, so that each stands where its piece begins.
  Step piece = steps.back();
  for (size_t end = word.size(); end > 0;) {
    const size_t begin = end - piece.bytes;
    std::swap(piece, steps[begin]);
    end = begin;
  }
  for (size_t begin = 0; begin < word.size();) {
    size_t end = begin + steps[begin].bytes;
    if (steps[begin].id != unknown_) {
      visit(steps[begin].id, {begin, end});
    } else {
      while (end < word.size() && steps[end].id == unknown_) end += steps[end].bytes;
      visit_unknown(word.substr(begin, end - begin), {begin, end}, visit);
    }
    begin = end;
  }
}

}  // namespace headshare
