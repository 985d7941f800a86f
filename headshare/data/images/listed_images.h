// Images are listed by a user as files and folders, and read a few at a time: data without labels.
#pragma once

#include <string>
#include <vector>

#include "headshare/data/images/decode_files.h"
#include "headshare/data/images/image_set.h"

namespace headshare {

// A ReadImages holds some of the listed images: those that could be read, and the reasons of the others.
struct ReadImages {
  ImageSet set = {};                       // squares of one size; every label is 0
  std::vector<std::string> names = {};     // of each image of `set`: its path, or "PATH[7]" within a file of many
  std::vector<std::string> failures = {};  // of the images that cannot be read: a sentence with the name each
};

class ListedImages {
 public:
  // Lists PNG and JPEG files, IDX files of images and files of CIFAR-10's binary version, told apart by their names as
  // open_images() tells them, and all of these in folders and the folders inside, in the order of names; files of IDX
  // labels and hidden ones are passed over there. Files that hold many images are read at once. Images become squares
  // of `size` pixels a side with `channels` channels. Throws Error for a path that does not exist, for a folder without
  // a file, and for a file of many that cannot be read.
  ListedImages(const std::vector<std::string>& paths, int64_t size, int64_t channels);

  int64_t count() const { return count_; }

  // Reads the next images, at most `most`; there are none at the end, which read() or failed for all of them.
  ReadImages next(int64_t most);
  bool ended() const { return piece_ == pieces_.size(); }

 private:
  // A piece is one file: an image, or a set of many.
  struct Piece {
    fs::path path;
    ImageSet many = {};
    int64_t count = 1;
  };
  void add(const fs::path& path);
  void add_folder(const fs::path& folder);
  ReadImages some_of(const Piece& piece, int64_t most);

  int64_t size_, channels_;
  std::vector<Piece> pieces_;
  int64_t count_ = 0;
  size_t piece_ = 0;    // the next image is of this piece,
  int64_t within_ = 0;  // and this one of it
};

}  // namespace headshare
