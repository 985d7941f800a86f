// Finds byte strings with numbers by their beginnings.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace headshare {

class PieceTrie {
 public:
  PieceTrie() = default;

  // `strings` have numbers that are not negative; none is empty or there twice.
  explicit PieceTrie(std::vector<std::pair<std::string_view, int32_t>> strings);

  // Calls visit(bytes, number) for each string that `text` begins with, the shortest first. Takes as many steps as the
  // longest of them has bytes, and one.
  template <class Visit>
  void for_each_prefix(std::string_view text, const Visit& visit) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size() && !nodes_.empty(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]));
      if (node == 0) return;
      if (nodes_[node].number >= 0) visit(i + 1, nodes_[node].number);
    }
  }

  // Tells whether `text` begins with a string, or a string with `text`.
  bool meets(std::string_view text) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size() && !nodes_.empty(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]));
      if (node == 0) return false;
      if (nodes_[node].number >= 0) return true;
    }
    return !nodes_.empty();
  }

 private:
  struct Node {
    int32_t number = -1;
    uint32_t first = 0;  // its children are nodes_[first .. first + children), their bytes ascend
    uint16_t children = 0;
    unsigned char byte = 0;
  };

  // Returns 0, the root, where there is none.
  uint32_t child(uint32_t node, unsigned char byte) const;

  std::vector<Node> nodes_;
  std::vector<uint32_t> of_root_;  // by byte; the root is asked at every place
};

}  // namespace headshare
