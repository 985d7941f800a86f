#include "headshare/data/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/valid_utf8.h"

namespace headshare {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors values are little-endian");

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  uint64_t bytes;
};

// The types stand in the order of the enumeration.
constexpr std::array<DTypeInfo, 19> kDTypes = {{
    {DType::kBool, "BOOL", 1},
    {DType::kU8, "U8", 1},
    {DType::kI8, "I8", 1},
    {DType::kF8E5M2, "F8_E5M2", 1},
    {DType::kF8E4M3, "F8_E4M3", 1},
    {DType::kF8E8M0, "F8_E8M0", 1},
    {DType::kF8E4M3Fnuz, "F8_E4M3FNUZ", 1},
    {DType::kF8E5M2Fnuz, "F8_E5M2FNUZ", 1},
    {DType::kI16, "I16", 2},
    {DType::kU16, "U16", 2},
    {DType::kF16, "F16", 2},
    {DType::kBF16, "BF16", 2},
    {DType::kI32, "I32", 4},
    {DType::kU32, "U32", 4},
    {DType::kF32, "F32", 4},
    {DType::kC64, "C64", 8},
    {DType::kF64, "F64", 8},
    {DType::kI64, "I64", 8},
    {DType::kU64, "U64", 8},
}};

constexpr uint64_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

// Counts the bytes a tensor takes. Sizes of 0 count as 1 in the overflow check: strides are products too.
uint64_t tensor_bytes(DType dtype, const std::vector<int64_t>& shape, const std::string& where) {
  int64_t span = 1;
  bool empty = false;
  for (const int64_t size : shape) {
    HS_CHECK(size >= 0, where, ": a negative size, ", size, ", in the shape");
    HS_CHECK(!__builtin_mul_overflow(span, std::max<int64_t>(size, 1), &span), where,
             ": the shape has more elements than 64 bits can count");
    empty = empty || size == 0;
  }
  HS_CHECK(!__builtin_mul_overflow(span, static_cast<int64_t>(dtype_bytes(dtype)), &span), where,
           ": the tensor has more bytes than 64 bits can count");
  return empty ? 0 : static_cast<uint64_t>(span);
}

DType parse_dtype(const nlohmann::json& value, const std::string& where) {
  HS_CHECK(value.is_string(), where, ": dtype must be text, not ", brief_json(value));
  const auto& name = value.get_ref<const std::string&>();
  const auto found =
      std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeInfo& one) { return one.name == name; });
  HS_CHECK(found != kDTypes.end(), where, ": the dtype '", name, "' is not one headshare reads");
  return found->dtype;
}

// Parses a list of whole numbers from 0 to 2^63 - 1.
std::vector<int64_t> parse_counts(const nlohmann::json& list, const std::string& what, const std::string& where) {
  HS_CHECK(list.is_array(), where, ": ", what, " must be a list of whole numbers");
  std::vector<int64_t> counts;
  for (const nlohmann::json& value : list) {
    HS_CHECK(value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX, where, ": ", what,
             " must hold whole numbers from 0 to 2^63 - 1, not ", brief_json(value));
    counts.push_back(value.get<int64_t>());
  }
  return counts;
}

TensorMetadata parse_metadata(const nlohmann::json& object, const std::string& where) {
  HS_CHECK(object.is_object(), where, ": ", kMetadataKey, " must be an object of texts");
  TensorMetadata metadata;
  for (const auto& [key, value] : object.items()) {
    HS_CHECK(value.is_string(), where, ": ", kMetadataKey, " must hold texts, but '", key, "' is ", value.type_name());
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// Parses one tensor's entry; `data` and `data_bytes` are the part of the file after the header.
TensorView parse_tensor(const nlohmann::json& entry, const std::string& where, const std::byte* data,
                        uint64_t data_bytes) {
  HS_CHECK(entry.is_object(), where, ": an object with dtype, shape and data_offsets was expected");
  for (const char* key : {"dtype", "shape", "data_offsets"}) HS_CHECK(entry.contains(key), where, ": no ", key);
  HS_CHECK(entry.size() == 3, where, ": only dtype, shape and data_offsets were expected, but there are ", entry.size(),
           " keys");
  TensorView view;
  view.dtype = parse_dtype(entry["dtype"], where);
  view.shape = parse_counts(entry["shape"], "shape", where);
  view.bytes = tensor_bytes(view.dtype, view.shape, where);
  const std::vector<int64_t> offsets = parse_counts(entry["data_offsets"], "data_offsets", where);
  HS_CHECK(offsets.size() == 2, where, ": data_offsets must be two numbers, not ", offsets.size());
  const auto begin = static_cast<uint64_t>(offsets[0]);
  const auto end = static_cast<uint64_t>(offsets[1]);
  HS_CHECK(begin <= end && end <= data_bytes, where, ": data_offsets ", begin, " to ", end,
           " are not within the file's ", data_bytes, " bytes of data");
  HS_CHECK(end - begin == view.bytes, where, ": data_offsets span ", end - begin, " bytes, but shape and dtype need ",
           view.bytes);
  view.data = data + begin;
  return view;
}

// Tensors must tile the data: no overlap, no hole, nothing after the last one.
void check_tiling(const TensorMap& tensors, const std::byte* data, uint64_t data_bytes, const std::string& where) {
  std::vector<const TensorMap::value_type*> order;
  for (const auto& item : tensors) order.push_back(&item);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.data, a->second.bytes) < std::pair(b->second.data, b->second.bytes);
  });
  uint64_t filled = 0;
  for (const auto* item : order) {
    const auto begin = static_cast<uint64_t>(item->second.data - data);
    HS_CHECK(begin == filled, where, ": tensor '", item->first, "' begins at byte ", begin, " of the data, but ",
             filled, " bytes come before it: tensors ", begin < filled ? "overlap" : "leave a hole");
    filled += item->second.bytes;
  }
  HS_CHECK(filled == data_bytes, where, ": the tensors take ", filled, " bytes, but the file holds ", data_bytes);
}

// Returns the length of the JSON header, checked against the file.
uint64_t header_length(const MappedFile& file, const std::string& where) {
  HS_CHECK(file.size() >= kLengthBytes, where, ": not a safetensors file: ", file.size(),
           " bytes are too few for the header's length");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  HS_CHECK(length <= kMostHeaderBytes, where, ": not a safetensors file: a header of ", length,
           " bytes was announced, at most ", kMostHeaderBytes, " are allowed");
  HS_CHECK(length <= file.size() - kLengthBytes, where, ": a header of ", length, " bytes was announced, but only ",
           file.size() - kLengthBytes, " follow: the file is cut short or not a safetensors file");
  return length;
}

// Returns tensors in the order they are written.
std::vector<const TensorMap::value_type*> writing_order(const TensorMap& tensors) {
  std::vector<const TensorMap::value_type*> order;
  for (const auto& item : tensors) order.push_back(&item);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return dtype_bytes(a->second.dtype) > dtype_bytes(b->second.dtype);
  });
  return order;
}

std::string make_header(const std::vector<const TensorMap::value_type*>& order, const TensorMetadata& metadata,
                        const std::string& where) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header[std::string(kMetadataKey)] = metadata;
  uint64_t begin = 0;
  for (const auto* item : order) {
    const auto& [name, view] = *item;
    const std::string tensor = join_text(where, ": tensor '", name, "'");
    HS_CHECK(!name.empty() && name != kMetadataKey, tensor, ": this name cannot be written");
    const uint64_t bytes = tensor_bytes(view.dtype, view.shape, tensor);
    HS_CHECK(bytes == view.bytes && (bytes == 0 || view.data != nullptr), tensor, ": ", view.bytes,
             " bytes were given, but shape and dtype need ", bytes);
    header[name] = {{"dtype", dtype_name(view.dtype)}, {"shape", view.shape}, {"data_offsets", {begin, begin + bytes}}};
    begin += bytes;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception& error) {
    throw Error(join_text("cannot write ", where, ": a name or metadata is not UTF-8: ", error.what()));
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  HS_CHECK(text.size() <= kMostHeaderBytes, "cannot write ", where, ": its header would take ", text.size(),
           " bytes, at most ", kMostHeaderBytes, " are allowed; shorten the metadata");
  return text;
}

}  // namespace

std::string_view dtype_name(DType dtype) { return info(dtype).name; }

uint64_t dtype_bytes(DType dtype) { return info(dtype).bytes; }

SafetensorsFile::SafetensorsFile(const fs::path& path) : path_(path), mapped_(path) {
  const std::string where = path.string();
  const uint64_t length = header_length(mapped_, where);
  const std::string_view text(reinterpret_cast<const char*>(mapped_.data()) + kLengthBytes, length);
  HS_CHECK(text.starts_with('{'), where, ": not a safetensors file: its header does not begin with '{'");
  // This is checked here because the parser's messages quote the bytes they complain about.
  const size_t valid = valid_utf8_prefix(text);
  HS_CHECK(valid == text.size(), where, ": the header is not UTF-8: byte ", valid);
  // The parser would take a NUL byte for the end of its input.
  HS_CHECK(text.find('\0') == std::string_view::npos, where, ": a NUL byte in the header");
  const nlohmann::json header = parse_json_input(text, where + ": header");
  const std::byte* data = mapped_.data() + kLengthBytes + length;
  const uint64_t data_bytes = mapped_.size() - kLengthBytes - length;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadataKey) {
      metadata_ = parse_metadata(entry, where);
    } else {
      tensors_[name] = parse_tensor(entry, join_text(where, ": tensor '", name, "'"), data, data_bytes);
    }
  }
  check_tiling(tensors_, data, data_bytes, where);
}

const TensorView& SafetensorsFile::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& item : tensors_) known.push_back(item.first);
  throw Error(
      join_text(path_.string(), " has no tensor '", name, "' among its ", known.size(), did_you_mean(name, known)));
}

void write_safetensors(const fs::path& path, const TensorMap& tensors, const TensorMetadata& metadata) {
  const auto order = writing_order(tensors);
  const std::string header = make_header(order, metadata, path.string());
  const uint64_t length = header.size();
  AtomicFile file(path);
  file.write(&length, sizeof length);
  file.write(header);
  for (const auto* item : order) file.write(item->second.data, item->second.bytes);
  file.commit();
}

ShardIndex read_shard_index(const fs::path& path) {
  const std::string where = path.string();
  const nlohmann::json index = read_json_input(path, kMostHeaderBytes);
  HS_CHECK(index.is_object() && index.contains("weight_map") && index["weight_map"].is_object(), where,
           ": an object with a weight_map {tensor: file} was expected");
  ShardIndex shards;
  std::set<fs::path> files;
  for (const auto& [tensor, value] : index["weight_map"].items()) {
    HS_CHECK(value.is_string(), where, ": the file of tensor '", tensor, "' must be text, not ", brief_json(value));
    const fs::path name = value.get<std::string>();
    HS_CHECK(!name.empty() && name.filename() == name && name != "." && name != "..", where, ": the file of tensor '",
             tensor, "' must be a plain file name beside the index, not '", name.string(), "'");
    shards.file_of[tensor] = path.parent_path() / name;
    files.insert(path.parent_path() / name);
  }
  HS_CHECK(!files.empty(), where, ": its weight_map is empty");
  for (const fs::path& file : files) check_readable(file);
  shards.files.assign(files.begin(), files.end());
  return shards;
}

}  // namespace headshare
