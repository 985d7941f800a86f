// This section holds the words of a token file: a tokenizer without a vocabulary numbers them anew in each process, so
// a file has numbers of its own and the words beside them. This header is for headshare/data only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headshare/text/hash/word_table.h"

namespace headshare {

// Numbers words in the order in which they stand in a text.
class WordSection {
 public:
  explicit WordSection(const WordTable& words) : words_(words) {}

  // Puts the file's ids in the place of this process's.
  std::vector<int32_t> to_file(std::span<const int32_t> ids);

  int64_t words() const { return static_cast<int64_t>(order_.size()); }

  // Returns the section: signatures (16 bytes each), lengths (4 bytes each), the words' bytes, zeros to a multiple of
  // 8.
  std::string bytes() const;

 private:
  const WordTable& words_;
  std::vector<int32_t> order_;    // the process's number of each word of the file
  std::vector<int32_t> in_file_;  // by the process's number: the file's, or -1
};

// Adds a section's words to a table and returns the process's id for each id of the file, or nothing where they are all
// the same. Throws Error led by `where` for a damaged section.
std::vector<int32_t> add_section(std::span<const char> section, int64_t count, const std::string& where,
                                 WordTable* words);

}  // namespace headshare
