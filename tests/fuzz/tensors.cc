// These targets read safetensors files and the index of sharded ones.
#include "headshare/data/safetensors.h"
#include "tests/fuzz/driver.h"

namespace headshare::fuzz {
namespace {

constexpr const char* kFile = "model.safetensors";

void read_all(const SafetensorsFile& file) {
  for (const auto& [name, view] : file.tensors()) {
    uint64_t sum = name.size() + view.shape.size() + dtype_name(view.dtype).size();
    for (uint64_t at = 0; at < view.bytes; ++at) sum += static_cast<uint64_t>(view.data[at]);
    use(sum);
    use(file.at(name).bytes);
  }
}

void read_file_of_tensors(const fs::path& folder) { read_all(SafetensorsFile(folder / kFile)); }

void read_shards(const fs::path& folder) {
  const ShardIndex index = read_shard_index(folder / "model.safetensors.index.json");
  for (const fs::path& file : index.files) read_all(SafetensorsFile(file));
  for (const auto& [name, file] : index.file_of) use(name.size() + file.string().size());
}

const std::string kHeader =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},"c":{"dtype":"U8","shape":[],"data_offsets":[32,33]}})";

// Returns the header with its length before and 33 bytes of values behind it.
std::string with_values(const std::string& header) {
  std::string file;
  for (int byte = 0; byte < 8; ++byte) file += static_cast<char>(header.size() >> (8 * byte) & 0xFF);
  return file + header + std::string(33, 'v');
}

}  // namespace

std::vector<Target> targets() {
  const auto packed = [](const std::string& name, const std::string& text) {
    return name.ends_with(".safetensors") ? with_values(text) : text;
  };
  const std::string index =
      R"({"metadata":{"total_size":33},"weight_map":{"a":"x.safetensors","b":"x.safetensors","c":"y.safetensors"}})";
  return {
      {.name = "safetensors", .read = read_file_of_tensors, .seeds = {{{kFile, with_values(kHeader)}}}},
      {.name = "safetensors-header", .read = read_file_of_tensors, .seeds = {{{kFile, kHeader}}}, .packed = packed},
      {.name = "shards",
       .read = read_shards,
       .seeds = {{{"model.safetensors.index.json", index}, {"x.safetensors", kHeader}, {"y.safetensors", kHeader}}},
       .packed = packed},
  };
}

}  // namespace headshare::fuzz
