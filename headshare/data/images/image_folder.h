// These functions read images that lie in a folder for each class.
#pragma once

#include <string>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/data/images/decode_files.h"
#include "headshare/data/images/image_set.h"

namespace headshare {

// A folder's images that cannot be read are left out while they are no more than `unreadable_fraction` of them.
struct ImageFolderOptions {
  int64_t size = 0;      // pixels a side that images are made to have
  int64_t channels = 3;  // likewise
  double unreadable_fraction = 0.01;
};

// Returns the names of the folders in `folder`, in the order of their bytes; hidden ones are no classes. Throws Error
// where there is none.
std::vector<std::string> class_folders(const fs::path& folder);

// Reads folder/CLASS/* for each of these classes on all cores: every file that is not hidden is an image, whatever its
// name ends in. The order is that of the classes, then of the names. Images that cannot be read are counted and named
// in a notice. Throws Error where they are more than the options allow, for a class without an image, for a folder that
// is no class, and before anything is decoded where the images would not fit into memory.
ImageSet read_image_folder(const fs::path& folder, const std::vector<std::string>& classes,
                           const ImageFolderOptions& options, const ImageProgress& progress);

}  // namespace headshare
