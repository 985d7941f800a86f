// These functions decode many image files at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headshare/base/files/file.h"

namespace headshare {

// Is called with the images done and in all, by one thread at a time; it may throw to stop.
using ImageProgress = std::function<void(int64_t done, int64_t total)>;

// DecodedFiles holds the pixels of files as squares of one size, each in its place.
struct DecodedFiles {
  std::vector<uint8_t> pixels = {};        // [files, size, size, channels]; of a file that cannot be read, zeros
  std::vector<std::string> failures = {};  // why each file cannot be read; "" where it was
};

// Decodes the files on all cores, makes squares of `size` pixels a side (resize.h) and `channels` channels of them. The
// result is the same whatever the number of cores. A file that cannot be read stops nothing.
DecodedFiles decode_files(const std::vector<fs::path>& files, int64_t size, int64_t channels,
                          const ImageProgress& progress = {});

// Returns what stands in a folder and is not hidden, in the order of names. Throws Error where it cannot be listed.
std::vector<fs::path> visible_entries(const fs::path& folder);

}  // namespace headshare
