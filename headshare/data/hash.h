// This is a fast 128-bit content hash (XXH3; not against attackers). It names cached files and data sets.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace headshare {

class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void update(const void* data, size_t bytes);
  void update(std::string_view text) { update(text.data(), text.size()); }

  // Returns the hash of everything so far as 32 hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string content_hash(std::string_view text);

}  // namespace headshare
