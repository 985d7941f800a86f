// This class reads a text file line by line, in memory that grows with the longest line only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/data/byte_stream.h"

namespace headshare {

class LineReader {
 public:
  // Opens the input as ByteStream does: "-" is standard input, names in .gz are decompressed. A byte order mark at the
  // start is left out, with a notice.
  explicit LineReader(const std::string& input) : stream_(input) {}

  // Returns the next line without its '\n' (a '\r' before it stays), valid until the next call; nothing at the end.
  // Throws Error for a line of more than 256 MiB, and as ByteStream does.
  std::optional<std::string_view> next();

  uint64_t number() const { return number_; }  // of the line last read, from 1
  const std::string& name() const { return stream_.name(); }
  uint64_t position() const { return stream_.position(); }  // bytes of the file as stored

  // Returns "train.tsv:17", for messages about the line last read.
  std::string where() const;

 private:
  bool fill();

  ByteStream stream_;
  std::string buffer_;
  size_t begin_ = 0;  // of the next line in the buffer
  uint64_t number_ = 0;
  bool started_ = false;
  bool ended_ = false;
};

// Returns a line without the '\r' of CR LF.
std::string_view without_return(std::string_view line);

// Returns what stands between the line's tabs.
std::vector<std::string> split_at_tabs(std::string_view line);

}  // namespace headshare
