#include "headshare/data/images/image_folder.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/memory.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/valid_utf8.h"

namespace headshare {
namespace {

constexpr size_t kNamed = 3;  // of the images that cannot be read

struct LabelledFile {
  fs::path path;
  int64_t label = 0;
};

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

// Says how many images cannot be read, and of the first ones why.
void judge_failures(const fs::path& folder, const std::vector<std::string>& failures, double allowed) {
  std::string named;
  size_t count = 0;
  for (const std::string& failure : failures) {
    if (failure.empty()) continue;
    if (++count <= kNamed) named += (count == 1 ? " " : "; ") + failure;
  }
  if (count == 0) return;
  if (count > kNamed) named += join_text("; and ", count - kNamed, " more");
  const std::string text = join_text(count, " of ", failures.size(), " images in ", folder.string(), " cannot be read");
  HS_CHECK(static_cast<double>(count) <= allowed * static_cast<double>(failures.size()), text,
           ", more than --unreadable-fraction ", allowed, " allows:", named);
  notice(text + " and are left out:" + named);
}

}  // namespace

std::vector<std::string> class_folders(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& entry : visible_entries(folder)) {
    if (!fs::is_directory(entry)) continue;
    names.push_back(entry.filename().string());
    HS_CHECK(valid_utf8_prefix(names.back()) == names.back().size(), folder.string(), ": the name of the folder ",
             brief_text(names.back()), " is not UTF-8, and a class is named by it; rename the folder");
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
  std::vector<fs::path> paths;
  for (const LabelledFile& file : files) paths.push_back(file.path);
  DecodedFiles decoded = decode_files(paths, options.size, options.channels, progress);
  judge_failures(folder, decoded.failures, options.unreadable_fraction);
  ImageSet set{.height = options.size, .width = options.size, .channels = options.channels};
  std::vector<int64_t> readable;
  for (size_t at = 0; at < files.size(); ++at) {
    set.labels.push_back(files[at].label);
    if (decoded.failures[at].empty()) readable.push_back(static_cast<int64_t>(at));
  }
  set.pixels = std::move(decoded.pixels);
  return readable.size() == files.size() ? std::move(set) : subset(set, readable);
}

}  // namespace headshare
