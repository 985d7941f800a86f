#include "headshare/text/added/piece_trie.h"

#include <algorithm>

namespace headshare {

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, int32_t>> strings) : of_root_(256) {
  std::sort(strings.begin(), strings.end());
  // The strings below each node, which share their first `depth` bytes, are neighbours.
  struct Below {
    size_t first, last, depth;
  };
  std::vector<Below> below = {{0, strings.size(), 0}};
  nodes_.emplace_back();
  for (size_t node = 0; node < nodes_.size(); ++node) {
    auto [at, last, depth] = below[node];
    if (at < last && strings[at].first.size() == depth) nodes_[node].number = strings[at++].second;
    nodes_[node].first = static_cast<uint32_t>(nodes_.size());
    while (at < last) {
      const auto byte = static_cast<unsigned char>(strings[at].first[depth]);
      const size_t begin = at;
      while (at < last && static_cast<unsigned char>(strings[at].first[depth]) == byte) ++at;
      nodes_.push_back({.byte = byte});
      below.push_back({begin, at, depth + 1});
      ++nodes_[node].children;
    }
  }
  for (uint32_t i = nodes_[0].first; i < nodes_[0].first + nodes_[0].children; ++i) of_root_[nodes_[i].byte] = i;
}

uint32_t PieceTrie::child(uint32_t node, unsigned char byte) const {
  if (node == 0) return of_root_[byte];
  const auto first = nodes_.begin() + nodes_[node].first;
  const auto last = first + nodes_[node].children;
  const auto found = std::lower_bound(first, last, byte, [](const Node& one, unsigned char b) { return one.byte < b; });
  return found != last && found->byte == byte ? static_cast<uint32_t>(found - nodes_.begin()) : 0;
}

}  // namespace headshare
