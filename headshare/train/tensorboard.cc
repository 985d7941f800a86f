#include "headshare/train/tensorboard.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>

#include "headshare/base/error.h"
#include "headshare/train/run_directory.h"

namespace headshare {
namespace {

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t remainder = i;
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ (remainder & 1 ? 0x82F63B78U : 0U);
    table[i] = remainder;
  }
  return table;
}();

template <class Unsigned>
std::string little_endian(Unsigned number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(Unsigned); ++i) bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}

// These are the wire types of protocol buffers. Field numbers are those of TensorFlow's event.proto and summary.proto.
enum class Wire : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes + static_cast<char>(number);
}

std::string key(uint64_t field_number, Wire wire) { return varint(field_number << 3 | static_cast<uint64_t>(wire)); }

std::string bytes_field(uint64_t field_number, std::string_view bytes) {
  return key(field_number, Wire::kBytes) + varint(bytes.size()).append(bytes);
}

// Builds an Event: wall_time = 1, step = 2, and `what`, one of file_version = 3, summary = 5, session_log = 7.
std::string event(int64_t step, std::string_view what) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  std::string bytes = key(1, Wire::kFixed64) + little_endian(std::bit_cast<uint64_t>(now.count()));
  bytes += key(2, Wire::kVarint) + varint(static_cast<uint64_t>(step));
  return bytes.append(what);
}

// Builds a Summary.Value: tag = 1, simple_value = 2.
std::string scalar(std::string_view tag, double value) {
  return bytes_field(1, tag) + key(2, Wire::kFixed32) +
         little_endian(std::bit_cast<uint32_t>(static_cast<float>(value)));
}

fs::path new_event_file(const fs::path& directory) {
  static std::atomic<int> counter = 0;
  make_directories(directory);
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"localhost"};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  const std::string_view begin = std::string_view(kEventFiles).substr(0, std::string_view(kEventFiles).size() - 1);
  return directory / join_text(begin, seconds, ".", host.data(), ".", ::getpid(), ".", counter++);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char c : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U; }

std::string tf_record(std::string_view data) {
  const std::string length = little_endian(static_cast<uint64_t>(data.size()));
  return length + little_endian(masked_crc32c(length)).append(data) + little_endian(masked_crc32c(data));
}

TensorBoardWriter::TensorBoardWriter(const fs::path& directory, std::optional<int64_t> resumed_after)
    : file_(new_event_file(directory)) {
  file_.append(tf_record(event(0, bytes_field(3, "brain.Event:2"))));
  if (!resumed_after) return;
  // This is SessionLog{status = 1: START}: readers forget this step and later ones.
  const std::string session_start = key(1, Wire::kVarint) + varint(1);
  file_.append(tf_record(event(*resumed_after + 1, bytes_field(7, session_start))));
}

void TensorBoardWriter::scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  for (const auto& [tag, value] : values) summary += bytes_field(1, scalar(tag, value));
  file_.append(tf_record(event(step, bytes_field(5, summary))));
}

}  // namespace headshare
