#include "headshare/convert/gguf/gguf_file.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "headshare/base/error.h"
#include "headshare/base/files/damaged_file.h"
#include "headshare/base/json/json_input.h"
#include "headshare/convert/foreign/byte_reader.h"

namespace headshare {
namespace {

constexpr std::string_view kGgufMagic = "GGUF";
constexpr uint32_t kGgufVersion = 3;
constexpr uint64_t kGgufAlignment = 32;
constexpr uint32_t kGgufFloat32 = 0;  // ggml's type of tensors
constexpr uint32_t kMostDimensions = 4;

// The numbers of types, of values and of the elements of arrays.
constexpr uint32_t kUint32 = 4, kInt32 = 5, kFloat = 6, kBool = 7, kString = 8, kArray = 9;

uint64_t aligned(uint64_t bytes) { return (bytes + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment; }

// The bytes of a header, little-endian as the machines that we build for.
class HeaderBytes {
 public:
  template <class T>
  void number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    number<uint64_t>(value.size());
    bytes_ += value;
  }
  void value(const GgufValue& value) {
    std::visit([this](const auto& one) { typed(one); }, value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void typed(uint32_t value) { number(kUint32), number(value); }
  void typed(float value) { number(kFloat), number(value); }
  void typed(bool value) { number(kBool), number(static_cast<uint8_t>(value)); }
  void typed(const std::string& value) { number(kString), text(value); }
  void typed(const std::vector<std::string>& all) {
    array(kString, all.size());
    for (const std::string& one : all) text(one);
  }
  void typed(const std::vector<int32_t>& all) { numbers(kInt32, all); }
  void typed(const std::vector<float>& all) { numbers(kFloat, all); }

  template <class T>
  void numbers(uint32_t type, const std::vector<T>& all) {
    array(type, all.size());
    for (const T one : all) number(one);
  }
  void array(uint32_t type, uint64_t size) { number(kArray), number(type), number(size); }

  std::string bytes_;
};

// Reads what HeaderBytes wrote.
class HeaderReader : public ByteReader {
 public:
  using ByteReader::ByteReader;

  std::string text() { return std::string(take(number<uint64_t>())); }

  GgufValue value(const std::string& key) {
    switch (const auto type = number<uint32_t>()) {
      case kUint32:
        return number<uint32_t>();
      case kFloat:
        return number<float>();
      case kBool:
        return number<uint8_t>() != 0;
      case kString:
        return text();
      case kArray:
        return array(key);
      default:
        fail(join_text(brief_text(key), " has a value of type ", type, ", which headshare does not read"));
    }
  }

 private:
  GgufValue array(const std::string& key) {
    const auto type = number<uint32_t>();
    const auto size = number<uint64_t>();
    if (size > left()) fail(join_text(brief_text(key), " claims ", size, " values, more than the file has bytes"));
    if (type == kString) {
      std::vector<std::string> all;
      for (uint64_t i = 0; i < size; ++i) all.push_back(text());
      return all;
    }
    if (type == kInt32) return numbers<int32_t>(size);
    if (type == kFloat) return numbers<float>(size);
    fail(join_text(brief_text(key), " is an array of type ", type, ", which headshare does not read"));
  }

  template <class T>
  std::vector<T> numbers(uint64_t size) {
    std::vector<T> all;
    for (uint64_t i = 0; i < size; ++i) all.push_back(number<T>());
    return all;
  }
};

struct TensorHead {
  std::string name;
  std::vector<int64_t> shape;  // slowest first, as torch has it
  uint64_t offset = 0;
};

TensorHead read_tensor_head(HeaderReader* reader) {
  TensorHead head{.name = reader->text(), .shape = {}};
  const auto dimensions = reader->number<uint32_t>();
  if (dimensions > kMostDimensions) reader->fail(join_text(brief_text(head.name), " has ", dimensions, " dimensions"));
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto size = reader->number<uint64_t>();
    if (size > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
      reader->fail(join_text(brief_text(head.name), " has a dimension of ", size));
    }
    head.shape.insert(head.shape.begin(), static_cast<int64_t>(size));
  }
  const auto type = reader->number<uint32_t>();
  if (type != kGgufFloat32) {
    reader->fail(join_text(brief_text(head.name), " is of type ", type, "; headshare reads float32 (0) alone"));
  }
  head.offset = reader->number<uint64_t>();
  return head;
}

Tensor tensor_at(const TensorHead& head, std::string_view data, const HeaderReader& reader) {
  uint64_t values = 1;
  for (const int64_t size : head.shape) {
    if (size != 0 && values > data.size() / static_cast<uint64_t>(size)) {
      reader.fail(join_text(brief_text(head.name), " is larger than the file"));
    }
    values *= static_cast<uint64_t>(size);
  }
  const uint64_t bytes = values * sizeof(float);
  if (head.offset % kGgufAlignment != 0 || head.offset > data.size() || bytes > data.size() - head.offset) {
    reader.fail(join_text(brief_text(head.name), " does not lie within the file"));
  }
  Tensor tensor = at::empty(head.shape, at::kFloat);
  if (bytes > 0) std::memcpy(tensor.mutable_data_ptr(), data.data() + head.offset, bytes);
  return tensor;
}

}  // namespace

const GgufValue& GgufFile::value(const std::string& key) const {
  for (const auto& [name, value] : values) {
    if (name == key) return value;
  }
  throw DamagedFile(join_text("the GGUF file has no '", key, "'"));
}

void GgufFile::refuse_type(const std::string& key) {
  throw DamagedFile(join_text("'", key, "' of the GGUF file is of another type than it should be"));
}

void write_gguf(const fs::path& path, const GgufFile& file) {
  HeaderBytes header;
  header.number<uint32_t>(0x46554747);  // "GGUF"
  header.number(kGgufVersion);
  header.number<uint64_t>(file.tensors.size());
  header.number<uint64_t>(file.values.size());
  for (const auto& [key, value] : file.values) {
    header.text(key);
    header.value(value);
  }
  std::vector<Tensor> alive;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : file.tensors) {
    alive.push_back(tensor.detach().to(at::kCPU, at::kFloat).contiguous());
    header.text(name);
    header.number(static_cast<uint32_t>(tensor.dim()));
    for (int64_t i = tensor.dim() - 1; i >= 0; --i) header.number(static_cast<uint64_t>(tensor.size(i)));
    header.number(kGgufFloat32);
    header.number(offset);
    offset += aligned(alive.back().nbytes());
  }
  const std::string padding(kGgufAlignment, '\0');
  AtomicFile out(path);
  const auto write_aligned = [&](const void* data, uint64_t bytes) {
    out.write(data, bytes);
    out.write(padding.data(), aligned(bytes) - bytes);
  };
  write_aligned(header.bytes().data(), header.bytes().size());
  for (const Tensor& one : alive) write_aligned(one.const_data_ptr(), one.nbytes());
  out.commit();
}

GgufFile read_gguf(const fs::path& path) {
  const std::string content = read_file(path);
  HeaderReader reader(content, path.string());
  if (content.size() < 4 || reader.take(4) != kGgufMagic) reader.fail("it is no GGUF file");
  const auto version = reader.number<uint32_t>();
  if (version != kGgufVersion) reader.fail(join_text("it is of version ", version, " of GGUF; headshare reads 3"));
  const auto tensors = reader.number<uint64_t>(), values = reader.number<uint64_t>();
  GgufFile file;
  for (uint64_t i = 0; i < values; ++i) {
    const std::string key = reader.text();
    file.values.emplace_back(key, reader.value(key));
  }
  std::vector<TensorHead> heads;
  for (uint64_t i = 0; i < tensors; ++i) heads.push_back(read_tensor_head(&reader));
  const uint64_t start = aligned(reader.place());
  const std::string_view data = std::string_view(content).substr(std::min<uint64_t>(start, content.size()));
  for (const TensorHead& head : heads) {
    if (!file.tensors.emplace(head.name, tensor_at(head, data, reader)).second) {
      reader.fail(join_text("it has the tensor ", brief_text(head.name), " twice"));
    }
  }
  return file;
}

}  // namespace headshare
