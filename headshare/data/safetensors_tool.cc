// This tool, for tests/oracles/test_safetensors.py only, lists or copies a safetensors file.
//   safetensors_tool list FILE       one JSON line per tensor: name, dtype, shape, values in hexadecimal
//   safetensors_tool copy FROM TO    reads and writes again
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "headshare/data/safetensors.h"

namespace {

std::string hexadecimal(const headshare::TensorView& tensor) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (uint64_t i = 0; i < tensor.bytes; ++i) {
    const auto byte = static_cast<unsigned>(tensor.data[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

void list(const headshare::SafetensorsFile& file) {
  for (const auto& [name, tensor] : file.tensors()) {
    const nlohmann::json line = {{"name", name},
                                 {"dtype", headshare::dtype_name(tensor.dtype)},
                                 {"shape", tensor.shape},
                                 {"data", hexadecimal(tensor)}};
    std::printf("%s\n", line.dump().c_str());
  }
  std::printf("%s\n", nlohmann::json{{"metadata", file.metadata()}}.dump().c_str());
}

}  // namespace

int main(int count, char** arguments) {
  const std::string verb = count > 1 ? arguments[1] : "";
  try {
    if (verb == "list" && count == 3) {
      list(headshare::SafetensorsFile(arguments[2]));
      return 0;
    }
    if (verb == "copy" && count == 4) {
      const headshare::SafetensorsFile file(arguments[2]);
      headshare::write_safetensors(arguments[3], file.tensors(), file.metadata());
      return 0;
    }
    std::fprintf(stderr, "usage: safetensors_tool list FILE | copy FROM TO\n");
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
