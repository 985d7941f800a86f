// A GGUF file, version 3: named values, then tensors, each at a multiple of 32 bytes (the specification is ggml's).
// llama.cpp and the programs around it read such files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/models/checkpoint.h"

namespace headshare {

// These are the types of values that we write and read; others are refused by number.
using GgufValue = std::variant<uint32_t, float, bool, std::string, std::vector<std::string>, std::vector<int32_t>,
                               std::vector<float>>;

struct GgufFile {
  std::vector<std::pair<std::string, GgufValue>> values = {};  // in their order
  NamedTensors tensors = {};                                   // float32

  // Throws Error, naming the key, where it is missing or of another type.
  const GgufValue& value(const std::string& key) const;
  template <class T>
  const T& get(const std::string& key) const {
    const T* found = std::get_if<T>(&value(key));
    if (found == nullptr) refuse_type(key);
    return *found;
  }

 private:
  [[noreturn]] static void refuse_type(const std::string& key);
};

// Writes the whole file or nothing.
void write_gguf(const fs::path& path, const GgufFile& file);

// Reads a file with float32 tensors. Throws Error naming the file and what is wrong: it is untrusted.
GgufFile read_gguf(const fs::path& path);

}  // namespace headshare
