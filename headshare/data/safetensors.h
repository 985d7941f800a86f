// Safetensors files hold an unsigned 64-bit header length, a JSON header {name: {dtype, shape, data_offsets}}, then the
// raw little-endian values. They are read by memory mapping and written atomically. Source:
// https://github.com/huggingface/safetensors, README "Format". The header is untrusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/base/files/file.h"

namespace headshare {

// These are the element types of whole bytes; the format's 4- and 6-bit types are refused by name.
enum class DType {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

std::string_view dtype_name(DType dtype);  // as the header spells it: "F32", "BF16"
uint64_t dtype_bytes(DType dtype);         // per element

// A view shows one tensor's values, row-major; it owns nothing.
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;       // {} is a scalar; a size may be 0
  const std::byte* data = nullptr;  // in a file written elsewhere possibly unaligned: use memcpy
  uint64_t bytes = 0;               // product of shape * dtype_bytes(dtype)
};

using TensorMap = std::map<std::string, TensorView>;
using TensorMetadata = std::map<std::string, std::string>;

// This is the largest header read or written, the limit of the reference implementation.
inline constexpr uint64_t kMostHeaderBytes = 100'000'000;

// This is an open file. Everything about the header is checked on opening: length, JSON, duplicate names, types, shapes
// whose size overflows, offsets that do not match shape and type, overlap, leave holes or run past the end. Throws
// Error naming the file and what is wrong. The views live as long as this object; the file must not be shortened
// meanwhile.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const fs::path& path);

  const fs::path& path() const { return path_; }
  const TensorMap& tensors() const { return tensors_; }
  const TensorMetadata& metadata() const { return metadata_; }
  bool contains(const std::string& name) const { return tensors_.contains(name); }

  // Throws Error with the nearest name when there is no such tensor.
  const TensorView& at(const std::string& name) const;

 private:
  fs::path path_;
  MappedFile mapped_;
  TensorMap tensors_;
  TensorMetadata metadata_;
};

// Writes tensors straight from their memory through AtomicFile. The data begins at a multiple of 8
// bytes and tensors stand in order of element size (largest first), then name, as the reference
// implementation writes them: each is aligned to its element, and equal input gives equal bytes.
// Throws Error when a view's bytes do not match its shape and type, a name is empty or
// "__metadata__" or not UTF-8, or the file cannot be written.
void write_safetensors(const fs::path& path, const TensorMap& tensors, const TensorMetadata& metadata = {});

// This is `model.safetensors.index.json`, which spreads one model over several files.
struct ShardIndex {
  std::map<std::string, fs::path> file_of;  // tensor name -> file beside the index
  std::vector<fs::path> files;              // each once, sorted
};

// Reads an index and checks that each file named in it is a plain name beside the index and can be
// opened. Throws Error naming the index and what is wrong.
ShardIndex read_shard_index(const fs::path& path);

}  // namespace headshare
