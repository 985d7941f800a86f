#include "headshare/data/images/image_folder.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "headshare/base/error.h"
#include "headshare/base/files/list_folder.h"
#include "headshare/base/memory.h"
#include "headshare/base/notice.h"
#include "headshare/data/images/decode_image.h"
#include "headshare/data/images/resize.h"

namespace headshare {
namespace {

constexpr size_t kNamed = 3;  // of the images that cannot be read

struct LabelledFile {
  fs::path path;
  int64_t label = 0;
};

// Returns what stands in a folder and is not hidden, in the order of names.
std::vector<fs::path> visible_entries(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> entries = list_folder(folder, code);
  HS_CHECK(!code, "cannot list ", folder.string(), ": ", code.message());
  std::erase_if(entries, [](const fs::path& entry) { return entry.filename().string().starts_with('.'); });
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::vector<LabelledFile> files_of(const fs::path& folder, const std::vector<std::string>& classes) {
  for (const std::string& found : class_folders(folder)) {
    HS_CHECK(std::find(classes.begin(), classes.end(), found) != classes.end(), (folder / found).string(),
             " is no class of the training images; move it away, or add training images of it");
  }
  std::vector<LabelledFile> files;
  for (size_t label = 0; label < classes.size(); ++label) {
    const size_t before = files.size();
    const fs::path home = folder / classes[label];
    for (const fs::path& entry : fs::is_directory(home) ? visible_entries(home) : std::vector<fs::path>()) {
      if (fs::is_regular_file(entry)) files.push_back({.path = entry, .label = static_cast<int64_t>(label)});
    }
    HS_CHECK(files.size() > before, "the class ", classes[label], " has no image in ", home.string(),
             "; add images, or take the class out of all parts");
  }
  return files;
}

// A Decoding shares the files of a folder among threads. Each image has its place, so that the result is the same
// whatever thread makes it.
class Decoding {
 public:
  Decoding(const std::vector<LabelledFile>& files, const ImageFolderOptions& options, ImageProgress progress)
      : files_(files),
        options_(options),
        progress_(std::move(progress)),
        pixels_(files.size() * image_bytes(options.size, options.size, options.channels)),
        failures_(files.size()) {}

  void run() {
    const size_t most = std::max<size_t>(std::thread::hardware_concurrency(), 1);
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < std::min(most, files_.size()); ++i) threads.emplace_back([this] { work(); });
    work();
    threads.clear();
    if (stopped_by_) std::rethrow_exception(stopped_by_);
  }

  std::vector<uint8_t>& pixels() { return pixels_; }
  // Returns why each image could not be read; "" where it was.
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  void work() {
    for (size_t at = next_++; at < files_.size(); at = next_++) {
      read_one(at);
      const std::lock_guard lock(mutex_);
      ++done_;
      if (!progress_ || stopped_by_) continue;
      try {
        progress_(done_, static_cast<int64_t>(files_.size()));
      } catch (...) {
        stopped_by_ = std::current_exception();
        next_ = files_.size();
      }
    }
  }

  void read_one(size_t at) {
    const fs::path& path = files_[at].path;
    try {
      Image image = with_channels(read_image(path), options_.channels, path.string());
      image = squared(std::move(image), options_.size);
      std::copy(image.pixels.begin(), image.pixels.end(), pixels_.begin() + place(at));
    } catch (const Error& error) {
      failures_[at] = error.what();
    }
  }

  std::ptrdiff_t place(size_t at) const {
    return static_cast<std::ptrdiff_t>(at * image_bytes(options_.size, options_.size, options_.channels));
  }

  const std::vector<LabelledFile>& files_;
  ImageFolderOptions options_;
  ImageProgress progress_;
  std::vector<uint8_t> pixels_;
  std::vector<std::string> failures_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  int64_t done_ = 0;
  std::exception_ptr stopped_by_;
};

// Says how many images cannot be read, and of the first ones why.
void judge_failures(const fs::path& folder, const std::vector<std::string>& failures, double allowed) {
  std::string named;
  size_t count = 0;
  for (const std::string& failure : failures) {
    if (failure.empty()) continue;
    if (++count <= kNamed) named += "\n  " + failure;
  }
  if (count == 0) return;
  if (count > kNamed) named += join_text("\n  and ", count - kNamed, " more");
  const std::string text = join_text(count, " of ", failures.size(), " images in ", folder.string(), " cannot be read");
  HS_CHECK(static_cast<double>(count) <= allowed * static_cast<double>(failures.size()), text,
           ", more than --unreadable-fraction ", allowed, " allows:", named);
  notice(text + " and are left out:" + named);
}

}  // namespace

std::vector<std::string> class_folders(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& entry : visible_entries(folder)) {
    if (fs::is_directory(entry)) names.push_back(entry.filename().string());
  }
  HS_CHECK(!names.empty(), folder.string(), " has no folder of images: each class needs one");
  return names;
}

ImageSet read_image_folder(const fs::path& folder, const std::vector<std::string>& classes,
                           const ImageFolderOptions& options, const ImageProgress& progress) {
  const std::vector<LabelledFile> files = files_of(folder, classes);
  const auto bytes = static_cast<double>(image_bytes(options.size, options.size, options.channels));
  check_memory(bytes * static_cast<double>(files.size()),
               join_text("holding ", files.size(), " images of ", options.size, " x ", options.size, " pixels"),
               "use a smaller --image-size, or fewer images");
  Decoding decoding(files, options, progress);
  decoding.run();
  judge_failures(folder, decoding.failures(), options.unreadable_fraction);
  ImageSet set{.height = options.size, .width = options.size, .channels = options.channels};
  std::vector<int64_t> readable;
  for (size_t at = 0; at < files.size(); ++at) {
    set.labels.push_back(files[at].label);
    if (decoding.failures()[at].empty()) readable.push_back(static_cast<int64_t>(at));
  }
  set.pixels = std::move(decoding.pixels());
  return readable.size() == files.size() ? std::move(set) : subset(set, readable);
}

}  // namespace headshare
