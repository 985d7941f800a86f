#include "headshare/data/images/decode_files.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "headshare/base/error.h"
#include "headshare/base/files/list_folder.h"
#include "headshare/data/images/decode_image.h"
#include "headshare/data/images/resize.h"

namespace headshare {
namespace {

// A Decoding shares files among threads, and stops all of them at what one throws. Each image has its place, so that
// the result is the same whatever thread makes it.
class Decoding {
 public:
  Decoding(const std::vector<fs::path>& files, int64_t size, int64_t channels, const ImageProgress& progress)
      : files_(files), size_(size), channels_(channels), progress_(progress) {
    decoded_.pixels.resize(files.size() * image_bytes(size, size, channels));
    decoded_.failures.resize(files.size());
  }

  DecodedFiles run() {
    const size_t most = std::max<size_t>(std::thread::hardware_concurrency(), 1);
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < std::min(most, files_.size()); ++i) threads.emplace_back([this] { work(); });
    work();
    threads.clear();
    if (stopped_by_) std::rethrow_exception(stopped_by_);
    return std::move(decoded_);
  }

 private:
  void work() {
    try {
      for (size_t at = next_++; at < files_.size(); at = next_++) {
        read_one(at);
        const std::lock_guard lock(mutex_);
        ++done_;
        if (progress_ && !stopped_by_) progress_(done_, static_cast<int64_t>(files_.size()));
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!stopped_by_) stopped_by_ = std::current_exception();
      next_ = files_.size();
    }
  }

  void read_one(size_t at) {
    const fs::path& path = files_[at];
    try {
      const Image image = squared(with_channels(read_image(path), channels_, path.string()), size_);
      const size_t place = at * image_bytes(size_, size_, channels_);
      std::copy(image.pixels.begin(), image.pixels.end(), decoded_.pixels.begin() + static_cast<std::ptrdiff_t>(place));
    } catch (const Error& error) {
      decoded_.failures[at] = error.what();
    }
  }

  const std::vector<fs::path>& files_;
  int64_t size_, channels_;
  const ImageProgress& progress_;
  DecodedFiles decoded_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;  // guards the two below
  int64_t done_ = 0;
  std::exception_ptr stopped_by_;
};

}  // namespace

DecodedFiles decode_files(const std::vector<fs::path>& files, int64_t size, int64_t channels,
                          const ImageProgress& progress) {
  return Decoding(files, size, channels, progress).run();
}

std::vector<fs::path> visible_entries(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> entries = list_folder(folder, code);
  HS_CHECK(!code, "cannot list ", folder.string(), ": ", code.message());
  std::erase_if(entries, [](const fs::path& entry) { return entry.filename().string().starts_with('.'); });
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace headshare
