#include "headshare/convert/gguf/gguf_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/base/error.h"
#include "headshare/base/testing.h"
#include "headshare/convert/foreign/damage_testing.h"

namespace headshare {
namespace gguf_file_test {

using testing::HasSubstr;

GgufFile small_file() {
  GgufFile file;
  file.values = {{"general.architecture", std::string("gpt2")},
                 {"count", uint32_t{7}},
                 {"share", 0.5F},
                 {"flag", true},
                 {"words", std::vector<std::string>{"a", "", "\xC4\xA0"}},
                 {"kinds", std::vector<int32_t>{1, -2}},
                 {"scores", std::vector<float>{0.25F}}};
  file.tensors = {{"a.weight", at::arange(6, at::kFloat).view({2, 3})}, {"b.bias", at::arange(5, at::kFloat)}};
  return file;
}

TEST(GgufFile, GivesBackWhatItWasGiven) {
  const TemporaryDirectory folder;
  const GgufFile file = small_file();
  write_gguf(folder.path() / "x.gguf", file);
  const GgufFile back = read_gguf(folder.path() / "x.gguf");
  EXPECT_EQ(back.values, file.values);
  ASSERT_EQ(back.tensors.size(), file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) EXPECT_TRUE(at::equal(back.tensors.at(name), tensor)) << name;
}

// The layout that ggml specifies, byte by byte where it is easy to get wrong.
TEST(GgufFile, HasTheLayoutOfTheDocument) {
  const TemporaryDirectory folder;
  write_gguf(folder.path() / "x.gguf", {.values = {{"k", uint32_t{7}}}, .tensors = {{"t", at::ones({1, 2})}}});
  const std::string bytes = read_file(folder.path() / "x.gguf");
  const std::string header = std::string("GGUF\3\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 24) +
                             std::string("\1\0\0\0\0\0\0\0k\4\0\0\0\7\0\0\0", 17) +
                             std::string("\1\0\0\0\0\0\0\0t\2\0\0\0", 13) +
                             std::string("\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16) + std::string(12, '\0');
  EXPECT_EQ(bytes.substr(0, header.size()), header);
  EXPECT_EQ(bytes.size(), 96U + 32U) << "data begins at a multiple of 32 and is filled up to one";
  EXPECT_EQ(bytes.substr(96, 8), std::string("\0\0\x80\x3f\0\0\x80\x3f", 8));
}

TEST(GgufFile, DamagedFilesAreRefused) {
  const TemporaryDirectory folder;
  const fs::path path = folder.path() / "x.gguf";
  write_gguf(path, small_file());
  const std::string whole = read_file(path);
  const auto refusal = [&](const std::string& bytes) {
    write_file(path, bytes);
    return error_message([&] { read_gguf(path); });
  };
  EXPECT_THAT(refusal("GGUX" + whole.substr(4)), HasSubstr("it is no GGUF file"));
  EXPECT_THAT(refusal(std::string(whole).replace(4, 1, "\2")), HasSubstr("it is of version 2 of GGUF"));
  for (size_t length = 0; length + 32 < whole.size(); length += 3) {
    EXPECT_THAT(refusal(whole.substr(0, length)), HasSubstr("x.gguf")) << length;
  }
  expect_changed_bytes_are_named(whole, "x.gguf", refusal);
}

TEST(GgufFile, ValuesAreAskedForByNameAndType) {
  const GgufFile file = small_file();
  EXPECT_EQ(file.get<uint32_t>("count"), 7U);
  EXPECT_THAT(error_message([&] { file.get<uint32_t>("absent"); }), HasSubstr("has no 'absent'"));
  EXPECT_THAT(error_message([&] { file.get<std::string>("count"); }),
              HasSubstr("'count' of the GGUF file is of another"));
}

}  // namespace gguf_file_test
}  // namespace headshare
