// This stream gives the bytes of one input: a file, a gzip file or standard input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "headshare/data/gzip_members.h"

namespace headshare {

enum class Decompress { kByName, kNo };

class ByteStream {
 public:
  // Opens the input: "-" is standard input; a name ending in ".gz" is decompressed (several members follow each other)
  // unless kNo is given. Throws Error when the input cannot be opened, is a directory, or is not gzip though its name
  // says so.
  explicit ByteStream(std::string input, Decompress decompress = Decompress::kByName);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Reads until `bytes` are there or the input ends; returns how many. Throws Error for a read
  // failure, and for gzip data that is damaged, cut short or followed by something else.
  size_t read(char* out, size_t bytes);

  // Counts the bytes of the file read so far: those of the compressed file for gzip.
  uint64_t position() const;

  // Returns the name that messages use: the path, or "standard input".
  const std::string& name() const { return name_; }

 private:
  size_t read_plain(char* out, size_t bytes);

  std::string name_;
  int descriptor_ = -1;
  uint64_t count_ = 0;
  std::unique_ptr<GzipMembers> gzip_;
};

// Reads all of an input. Throws Error when it has more than `most` bytes, and as ByteStream does.
std::string read_input(const std::string& input, size_t most = size_t{1} << 30);

}  // namespace headshare
