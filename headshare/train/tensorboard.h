// This header writes scalars for TensorBoard, without its library: events as protocol buffers inside TFRecords.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headshare/train/append_file.h"

namespace headshare {

// Computes CRC-32C (Castagnoli, reflected polynomial 0x82F63B78) of RFC 3720.
uint32_t crc32c(std::string_view bytes);

// Computes TFRecord's checksum: the CRC rotated right by 15 bits, plus 0xA282EAD8.
uint32_t masked_crc32c(std::string_view bytes);

// Builds one TFRecord: u64 length, u32 masked CRC of the length, the data, u32 masked CRC of the data; little-endian.
std::string tf_record(std::string_view data);

// A writer keeps an event file in a run's folder, named as TensorBoard looks for them:
// events.out.tfevents.headshare.SECONDS.HOST.PID.COUNTER. Each call is one record in one write: TensorBoard can follow,
// and a crash loses nothing that was written.
class TensorBoardWriter {
 public:
  // Creates the folder and a new file in it; earlier files stay. With `resumed_after`, the step of the
  // checkpoint the run goes on from, TensorBoard drops what earlier files say of later steps.
  // Throws Error naming the path.
  explicit TensorBoardWriter(const fs::path& directory, std::optional<int64_t> resumed_after = std::nullopt);

  // Writes the values of one step, stored as float32. A '/' in a tag makes a group: "train/loss".
  void scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values);

  void sync() { file_.sync(); }
  const fs::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace headshare
