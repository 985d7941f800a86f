#include "headshare/convert/ctranslate2/ct2_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/base/error.h"
#include "headshare/base/testing.h"
#include "headshare/convert/foreign/damage_testing.h"

namespace headshare {
namespace ct2_file_test {

using testing::HasSubstr;

Ct2File small_file() {
  Ct2File file{.specification = "TransformerDecoderSpec", .revision = 8};
  file.variables = {{"decoder/w", at::arange(6, at::kFloat).view({2, 3})},
                    {"decoder/n", at::scalar_tensor(-3, at::kShort)},
                    {"decoder/flag", at::scalar_tensor(1, at::kChar)},
                    {"decoder/count", at::scalar_tensor(70000, at::kInt)}};
  file.aliases = {{"decoder/same", "decoder/w"}};
  return file;
}

TEST(Ct2File, GivesBackWhatItWasGiven) {
  const TemporaryDirectory folder;
  const Ct2File file = small_file();
  write_ct2(folder.path() / "model.bin", file);
  const Ct2File back = read_ct2(folder.path() / "model.bin");
  EXPECT_EQ(back.specification, file.specification);
  EXPECT_EQ(back.revision, 8U);
  EXPECT_EQ(back.aliases, file.aliases);
  for (const auto& [name, tensor] : file.variables) {
    EXPECT_EQ(back.variable(name).scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(at::equal(back.variable(name), tensor)) << name;
  }
  EXPECT_TRUE(at::equal(back.variable("decoder/same"), file.variable("decoder/w")));
  EXPECT_THAT(error_message([&] { back.variable("decoder/x"); }), HasSubstr("has no variable 'decoder/x'"));
}

TEST(Ct2File, HasTheLayoutOfModelSpec) {
  const TemporaryDirectory folder;
  write_ct2(folder.path() / "model.bin",
            {.specification = "S", .revision = 8, .variables = {{"v", at::scalar_tensor(2, at::kShort)}}});
  EXPECT_EQ(read_file(folder.path() / "model.bin"),
            std::string("\6\0\0\0\2\0S\0\x08\0\0\0\1\0\0\0\2\0v\0\0\2\2\0\0\0\2\0\0\0\0\0", 32));
}

TEST(Ct2File, DamagedFilesAreRefused) {
  const TemporaryDirectory folder;
  const fs::path path = folder.path() / "model.bin";
  write_ct2(path, small_file());
  const std::string whole = read_file(path);
  const auto refusal = [&](const std::string& bytes) {
    write_file(path, bytes);
    return error_message([&] { read_ct2(path); });
  };
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(refusal(whole.substr(0, length)), HasSubstr("model.bin: it ends early")) << length;
  }
  expect_changed_bytes_are_named(whole, "model.bin", refusal);
}

}  // namespace ct2_file_test
}  // namespace headshare
