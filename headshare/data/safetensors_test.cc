#include "headshare/data/safetensors.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "headshare/base/error.h"
#include "headshare/base/rng.h"
#include "headshare/data/test_support.h"

namespace headshare {
namespace {

using testing::HasSubstr;

using SafetensorsTest = DirectoryTest;

template <class T>
TensorView view(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  return {dtype, std::move(shape), reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)};
}

// Makes a file with the given header text and bytes of data.
std::string raw_file(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string content(8, '\0');
  std::memcpy(content.data(), &length, 8);
  return content + header + std::string(data_bytes, 'x');
}

const std::vector<float> kFloats = {1.5F, -2.0F, 0.0F, 3.25F, 1e30F, -0.0F};
const std::vector<uint8_t> kBytes = {1, 2, 255};
const std::vector<int64_t> kLongs = {-7};

TensorMap example() {
  return {{"bytes", view(DType::kU8, {3}, kBytes)},
          {"empty", {DType::kBF16, {0, 4}, nullptr, 0}},
          {"scalar", view(DType::kI64, {}, kLongs)},
          {"weight", view(DType::kF32, {2, 3}, kFloats)}};
}

TEST_F(SafetensorsTest, ReadsBackWhatItWrote) {
  const fs::path path = directory_ / "model.safetensors";
  write_safetensors(path, example(), {{"format", "pt"}, {"größe", "\"1\""}});
  const SafetensorsFile file(path);
  EXPECT_EQ(file.metadata(), (TensorMetadata{{"format", "pt"}, {"größe", "\"1\""}}));
  ASSERT_EQ(file.tensors().size(), 4u);
  for (const auto& [name, wanted] : example()) {
    const TensorView& got = file.at(name);
    EXPECT_EQ(got.dtype, wanted.dtype) << name;
    EXPECT_EQ(got.shape, wanted.shape) << name;
    ASSERT_EQ(got.bytes, wanted.bytes) << name;
    EXPECT_TRUE(std::equal(got.data, got.data + got.bytes, wanted.data)) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(got.data) % dtype_bytes(got.dtype), 0u) << name;
  }
  EXPECT_THAT(error_message([&] { file.at("wieght"); }), HasSubstr("did you mean 'weight'?"));
}

TEST_F(SafetensorsTest, EqualInputGivesEqualBytes) {
  write_safetensors(directory_ / "a", example(), {{"k", "v"}});
  write_safetensors(directory_ / "b", example(), {{"k", "v"}});
  EXPECT_EQ(read_file(directory_ / "a"), read_file(directory_ / "b"));
}

TEST_F(SafetensorsTest, EveryDTypeHasItsNameAndSize) {
  uint64_t begin = 0;
  std::string header = "{";
  for (int i = 0; i <= static_cast<int>(DType::kU64); ++i) {
    const auto dtype = static_cast<DType>(i);
    const uint64_t end = begin + 2 * dtype_bytes(dtype);
    header += join_text(i > 0 ? "," : "", "\"t", i, "\":{\"dtype\":\"", dtype_name(dtype),
                        "\",\"shape\":[2],\"data_offsets\":[", begin, ",", end, "]}");
    begin = end;
  }
  write_file(directory_ / "x", raw_file(header + "}", begin));
  const SafetensorsFile file(directory_ / "x");
  for (int i = 0; i <= static_cast<int>(DType::kU64); ++i) {
    EXPECT_EQ(file.at(join_text("t", i)).dtype, static_cast<DType>(i));
  }
}

struct BadHeader {
  const char* header;
  size_t data_bytes;
  const char* message;
};

TEST_F(SafetensorsTest, BadHeadersAreRefusedByReason) {
  const std::vector<BadHeader> cases = {
      {"", 0, "does not begin with '{'"},
      {"[]", 0, "does not begin with '{'"},
      {"{", 0, "not a JSON document"},
      {"{}", 1, "the tensors take 0 bytes, but the file holds 1"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
       1, "'a' stands twice"},
      {R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1, "'dtype' stands twice"},
      {R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", 1, "dtype 'F4' is not one headshare reads"},
      {R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,1]}})", 1, "dtype must be text"},
      {R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1, "not -1"},
      {R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1, "shape must hold whole numbers"},
      {R"({"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})", 1, "shape must be a list"},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "more elements than 64 bits"},
      {R"({"a":{"dtype":"U8","shape":[0,9223372036854775807,2],"data_offsets":[0,0]}})", 0,
       "more elements than 64 bits"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0, "more bytes than 64 bits"},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,0]}})", 0, "shape must hold whole"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 1, "not within the file's 1 bytes"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1, "not within"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1, "must be two numbers, not 1"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,3]}})", 3, "span 3 bytes, but shape and dtype need 4"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, "tensors overlap"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       3, "leave a hole"},
      {R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1, "no dtype"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":1}})", 1, "there are 4 keys"},
      {R"({"a":[]})", 0, "an object with dtype"},
      {R"({"__metadata__":{"a":1}})", 0, "must hold texts"},
      {R"({"__metadata__":[]})", 0, "must be an object of texts"},
      {R"({"a":[[[[1]]]]})", 0, "an object with dtype"},
      {"{\"a\xFF\":1}", 0, "not UTF-8: byte 3"},
      {"{} x", 0, "not a JSON document"},
  };
  for (const BadHeader& bad : cases) {
    write_file(directory_ / "x", raw_file(bad.header, bad.data_bytes));
    const std::string text = error_message([&] { SafetensorsFile file(directory_ / "x"); });
    EXPECT_THAT(text, HasSubstr(bad.message)) << bad.header;
    EXPECT_THAT(text, HasSubstr((directory_ / "x").string())) << bad.header;
  }
}

TEST_F(SafetensorsTest, WrongLengthsAndBombsAreRefused) {
  const auto refusal = [&](const std::string& content) {
    write_file(directory_ / "x", content);
    return error_message([&] { SafetensorsFile file(directory_ / "x"); });
  };
  EXPECT_THAT(refusal(""), HasSubstr("0 bytes are too few"));
  EXPECT_THAT(refusal("1234567"), HasSubstr("7 bytes are too few"));
  EXPECT_THAT(refusal(std::string(8, '\xFF') + "{}"), HasSubstr("header of 18446744073709551615 bytes"));
  EXPECT_THAT(refusal(std::string("\x03\0\0\0\0\0\0\0{}", 10)), HasSubstr("only 2 follow"));
  EXPECT_THAT(refusal(raw_file(std::string("{}\0garbage", 10), 0)), HasSubstr("NUL byte"));
  EXPECT_THAT(refusal(raw_file("{\"a\":" + std::string(10'000'000, '['), 0)), HasSubstr("nested deeper"));
  EXPECT_EQ(refusal(raw_file("{}   ", 0)), "no error");  // padding is part of the format
  EXPECT_THAT(error_message([&] { SafetensorsFile file(directory_ / "none"); }), HasSubstr("No such file"));
  EXPECT_THAT(error_message([&] { SafetensorsFile file(directory_); }), HasSubstr("it is a directory"));
}

// The test reads thousands of damaged files: each loads or throws Error; a loaded file can be read to the last byte.
TEST_F(SafetensorsTest, MutatedFilesLoadOrThrowError) {
  const fs::path path = directory_ / "x";
  write_safetensors(path, example(), {{"format", "pt"}});
  const std::string whole = read_file(path);
  const std::string tokens = "{}[]\",:0129-.eE\\u null\xFF\x80";
  int loaded = 0;
  for (uint64_t round = 0; round < 6000; ++round) {
    Philox random(stream_key(1, round));
    std::string content = whole;
    for (uint64_t edits = 1 + random.below(4); edits > 0 && !content.empty(); --edits) {
      const uint64_t at = random.below(content.size());
      switch (random.below(5)) {
        case 0:
          content[at] = static_cast<char>(random.next_word());
          break;
        case 1:
          content[at] = tokens[random.below(tokens.size())];
          break;
        case 2:
          content.insert(at, 1, tokens[random.below(tokens.size())]);
          break;
        case 3:
          content.erase(at, 1 + random.below(8));
          break;
        case 4:
          content.resize(random.below(8) == 0 ? at : content.size() + random.below(3));
          break;
      }
    }
    fs::remove(path);  // overwriting a file makes some file systems flush it: a hundred times slower
    std::ofstream(path, std::ios::binary) << content;
    try {
      const SafetensorsFile file(path);
      unsigned sum = 0;
      for (const auto& [name, tensor] : file.tensors()) {
        for (uint64_t i = 0; i < tensor.bytes; ++i) sum += static_cast<unsigned>(tensor.data[i]);
      }
      loaded += sum > 0 ? 1 : 0;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(loaded, 100);  // damage to the values alone is not detectable
  EXPECT_LT(loaded, 5000);
}

TEST_F(SafetensorsTest, WritingRefusesWhatCouldNotBeRead) {
  const fs::path path = directory_ / "x";
  const auto refusal = [&](const std::string& name, const TensorView& tensor, const TensorMetadata& metadata = {}) {
    return error_message([&] { write_safetensors(path, {{name, tensor}}, metadata); });
  };
  EXPECT_THAT(refusal("a", view(DType::kU8, {4}, kBytes)), HasSubstr("3 bytes were given, but shape and dtype need 4"));
  EXPECT_THAT(refusal("a", view(DType::kU8, {-3}, kBytes)), HasSubstr("negative size, -3"));
  EXPECT_THAT(refusal("a", {DType::kU8, {3}, nullptr, 3}), HasSubstr("tensor 'a'"));
  EXPECT_THAT(refusal("", view(DType::kU8, {3}, kBytes)), HasSubstr("cannot be written"));
  EXPECT_THAT(refusal("__metadata__", view(DType::kU8, {3}, kBytes)), HasSubstr("cannot be written"));
  EXPECT_THAT(refusal("a\xFF", view(DType::kU8, {3}, kBytes)), HasSubstr("not UTF-8"));
  EXPECT_THAT(refusal("a", view(DType::kU8, {3}, kBytes), {{"k", "\xC0"}}), HasSubstr("not UTF-8"));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(SafetensorsTest, AFullDiskLeavesNothing) {
  const std::vector<float> large(10'000);
  const FileSizeLimit limit(5000);
  const TensorMap tensors = {{"w", view(DType::kF32, {10'000}, large)}};
  EXPECT_THAT(error_message([&] { write_safetensors(directory_ / "x", tensors); }), HasSubstr("after 5000 bytes"));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(SafetensorsTest, ShardIndexListsItsFiles) {
  write_safetensors(directory_ / "a.safetensors", example());
  write_safetensors(directory_ / "b.safetensors", example());
  const fs::path index = directory_ / "model.safetensors.index.json";
  write_file(index, R"({"metadata":{"total_size":1},
                        "weight_map":{"x":"b.safetensors","y":"a.safetensors","z":"b.safetensors"}})");
  const ShardIndex shards = read_shard_index(index);
  EXPECT_THAT(shards.files, testing::ElementsAre(directory_ / "a.safetensors", directory_ / "b.safetensors"));
  EXPECT_EQ(shards.file_of.at("z"), directory_ / "b.safetensors");

  const auto refusal = [&](const std::string& content) {
    write_file(index, content);
    return error_message([&] { read_shard_index(index); });
  };
  EXPECT_THAT(refusal("{}"), HasSubstr("weight_map"));
  EXPECT_THAT(refusal(R"({"weight_map":{}})"), HasSubstr("empty"));
  EXPECT_THAT(refusal(R"({"weight_map":{"x":1}})"), HasSubstr("must be text"));
  EXPECT_THAT(refusal(R"({"weight_map":{"x":"../a.safetensors"}})"), HasSubstr("plain file name"));
  EXPECT_THAT(refusal(R"({"weight_map":{"x":".."}})"), HasSubstr("plain file name"));
  EXPECT_THAT(refusal(R"({"weight_map":{"x":"c.safetensors"}})"), HasSubstr("c.safetensors: No such file"));
}

}  // namespace
}  // namespace headshare
