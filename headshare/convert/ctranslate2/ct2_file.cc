#include "headshare/convert/ctranslate2/ct2_file.h"

#include <ATen/ATen.h>

#include <cstring>
#include <limits>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/convert/foreign/byte_reader.h"

namespace headshare {
namespace {

constexpr uint32_t kCt2Version = 6;
constexpr uint8_t kMostCt2Dimensions = 4;

// Types by their numbers in the file.
constexpr at::ScalarType kCt2Types[] = {at::kFloat, at::kChar, at::kShort, at::kInt};

uint8_t ct2_type(at::ScalarType type) {
  for (uint8_t i = 0; i < std::size(kCt2Types); ++i) {
    if (kCt2Types[i] == type) return i;
  }
  throw Error(join_text("CTranslate2's files are not written with ", c10::toString(type)));
}

class Ct2Output {
 public:
  explicit Ct2Output(const fs::path& path) : file_(path) {}

  template <class T>
  void number(T value) {
    file_.write(&value, sizeof value);
  }
  void text(const std::string& value) {
    number(static_cast<uint16_t>(value.size() + 1));
    file_.write(value.c_str(), value.size() + 1);
  }
  void variable(const std::string& name, const Tensor& given) {
    const Tensor tensor = given.detach().cpu().contiguous();
    HS_CHECK(tensor.nbytes() <= std::numeric_limits<uint32_t>::max(), "'", name, "' has ", tensor.nbytes(),
             " bytes, and a variable of CTranslate2 has at most 4 GiB; write the model as GGUF or for transformers");
    text(name);
    number(static_cast<uint8_t>(tensor.dim()));
    for (const int64_t size : tensor.sizes()) number(static_cast<uint32_t>(size));
    number(ct2_type(tensor.scalar_type()));
    number(static_cast<uint32_t>(tensor.nbytes()));
    file_.write(tensor.const_data_ptr(), tensor.nbytes());
  }
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
};

class Ct2Input : public ByteReader {
 public:
  using ByteReader::ByteReader;

  std::string text() {
    const std::string_view all = take(number<uint16_t>());
    if (all.empty() || all.back() != '\0') fail("a name does not end");
    return std::string(all.substr(0, all.size() - 1));
  }
  Tensor tensor(const std::string& name) {
    const auto dimensions = number<uint8_t>();
    if (dimensions > kMostCt2Dimensions) fail(join_text(brief_text(name), " has ", int{dimensions}, " dimensions"));
    std::vector<int64_t> shape;
    uint64_t values = 1;
    for (uint8_t i = 0; i < dimensions; ++i) {
      shape.push_back(number<uint32_t>());
      const auto size = static_cast<uint64_t>(shape.back());
      if (size != 0 && values > (place() + left()) / size)
        fail(join_text(brief_text(name), " is larger than the file"));
      values *= size;
    }
    const auto type = number<uint8_t>();
    if (type >= std::size(kCt2Types)) fail(join_text(brief_text(name), " is of type ", int{type}));
    const auto bytes = number<uint32_t>();
    if (bytes != values * c10::elementSize(kCt2Types[type])) {
      fail(join_text(brief_text(name), " has ", bytes, " bytes, and its shape asks for others"));
    }
    const std::string_view data = take(bytes);
    Tensor tensor = at::empty(shape, kCt2Types[type]);
    if (bytes > 0) std::memcpy(tensor.mutable_data_ptr(), data.data(), bytes);
    return tensor;
  }
};

}  // namespace

const Tensor& Ct2File::variable(const std::string& name) const {
  const auto alias = aliases.find(name);
  const auto found = variables.find(alias == aliases.end() ? name : alias->second);
  HS_CHECK(found != variables.end(), "the CTranslate2 model has no variable '", name, "'");
  return found->second;
}

void write_ct2(const fs::path& path, const Ct2File& file) {
  Ct2Output out(path);
  out.number(kCt2Version);
  out.text(file.specification);
  out.number(file.revision);
  out.number(static_cast<uint32_t>(file.variables.size()));
  for (const auto& [name, tensor] : file.variables) out.variable(name, tensor);
  out.number(static_cast<uint32_t>(file.aliases.size()));
  for (const auto& [name, of] : file.aliases) {
    out.text(name);
    out.text(of);
  }
  out.commit();
}

Ct2File read_ct2(const fs::path& path) {
  const std::string content = read_file(path);
  Ct2Input input(content, path.string());
  const auto version = input.number<uint32_t>();
  if (version != kCt2Version) input.fail(join_text("it is no model of CTranslate2 of version ", kCt2Version));
  Ct2File file;
  file.specification = input.text();
  file.revision = input.number<uint32_t>();
  const auto variables = input.number<uint32_t>();
  for (uint32_t i = 0; i < variables; ++i) {
    const std::string name = input.text();
    if (!file.variables.emplace(name, input.tensor(name)).second) {
      input.fail(join_text("it has the variable ", brief_text(name), " twice"));
    }
  }
  const auto aliases = input.number<uint32_t>();
  for (uint32_t i = 0; i < aliases; ++i) {
    const std::string name = input.text();
    file.aliases.emplace(name, input.text());
  }
  return file;
}

}  // namespace headshare
