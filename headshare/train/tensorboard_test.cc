#include "headshare/train/tensorboard.h"

#include <gmock/gmock.h>

#include <cstring>

#include "headshare/base/error.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

// The answers are those of RFC 3720, appendix B.4, and the usual check value.
TEST(TensorBoardTest, Crc32cKnownAnswers) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
}

// This is LevelDB's mask of the same value: ((crc >> 15) | (crc << 17)) + 0xa282ead8.
TEST(TensorBoardTest, MaskedCrc) { EXPECT_EQ(masked_crc32c("123456789"), 0xC78AB0E5u); }

TEST(TensorBoardTest, ARecordIsFramed) {
  const std::string record = tf_record("123456789");
  ASSERT_EQ(record.size(), 8 + 4 + 9 + 4u);
  EXPECT_EQ(record.substr(0, 8), std::string("\x09\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(8, 4), std::string("\x37\xF9\x71\x39", 4));  // as tensorboard 2.21.0 computes it
  EXPECT_EQ(record.substr(12, 9), "123456789");
  EXPECT_EQ(record.substr(21), std::string("\xE5\xB0\x8A\xC7", 4));
}

// Returns the data of each record of a file; every checksum is verified.
std::vector<std::string> records(const fs::path& path) {
  const std::string bytes = read_file(path);
  std::vector<std::string> result;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    result.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(bytes.substr(at, 12 + length + 4), tf_record(result.back()));
    at += 12 + length + 4;
  }
  return result;
}

// The first 9 bytes of an event are its wall time.
TEST(TensorBoardTest, EventsHaveTheirExactBytes) {
  const TemporaryDirectory directory;
  TensorBoardWriter writer(directory / "new", 299);
  writer.scalars(300, {{"a", 1.0}, {"b", -2.0}});
  writer.scalars(128, {});
  const std::vector<std::string> events = records(writer.path());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].substr(9), std::string("\x10\x00\x1A\x0D"
                                             "brain.Event:2",
                                             17));
  EXPECT_EQ(events[1].substr(9), "\x10\xAC\x02\x3A\x02\x08\x01");
  EXPECT_EQ(events[2].substr(9), std::string("\x10\xAC\x02\x2A\x14"
                                             "\x0A\x08\x0A\x01"
                                             "a\x15\x00\x00\x80\x3F"
                                             "\x0A\x08\x0A\x01"
                                             "b\x15\x00\x00\x00\xC0",
                                             25));
  EXPECT_EQ(events[3].substr(9), std::string("\x10\x80\x01\x2A\x00", 5));  // 128 takes two bytes
}

TEST(TensorBoardTest, EveryWriterHasItsOwnFile) {
  const TemporaryDirectory directory;
  TensorBoardWriter first(directory.path());
  TensorBoardWriter second(directory.path());
  EXPECT_NE(first.path(), second.path());
  EXPECT_TRUE(first.path().filename().string().starts_with("events.out.tfevents."));
  EXPECT_EQ(records(first.path()).size(), 1u);
}

TEST(TensorBoardTest, AFolderThatCannotBeMadeIsNamed) {
  const TemporaryDirectory directory;
  write_file(directory / "file", "x");
  try {
    TensorBoardWriter writer(directory / "file");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr((directory / "file").string()));
  }
}

}  // namespace
}  // namespace headshare
