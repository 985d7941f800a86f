#include "headshare/data/images/listed_images.h"

#include <algorithm>
#include <numeric>

#include "headshare/base/error.h"
#include "headshare/data/images/binary_images.h"
#include "headshare/data/images/open_images.h"

namespace headshare {

ListedImages::ListedImages(const std::vector<std::string>& paths, int64_t size, int64_t channels)
    : size_(size), channels_(channels) {
  for (const std::string& path : paths) {
    HS_CHECK(path_exists(path), path, " does not exist; name images, or folders of them");
    fs::is_directory(path) ? add_folder(path) : add(path);
  }
}

void ListedImages::add(const fs::path& path) {
  const std::string name = path.filename().string();
  Piece piece{.path = path};
  if (is_idx_images(name)) piece.many = read_idx_images(path);
  if (is_cifar10(name)) piece.many = read_cifar10({path});
  if (is_idx_images(name) || is_cifar10(name)) piece.count = piece.many.size();
  if (piece.count == 0) return;
  count_ += piece.count;
  pieces_.push_back(std::move(piece));
}

void ListedImages::add_folder(const fs::path& folder) {
  const int64_t before = count_;
  for (const fs::path& entry : visible_entries(folder)) {
    if (is_idx_labels(entry.filename().string())) continue;
    if (!fs::is_directory(entry)) {
      add(entry);
    } else if (!fs::is_symlink(entry)) {  // links may lead in a circle
      add_folder(entry);
    }
  }
  HS_CHECK(count_ > before, folder.string(), " has no image");
}

ReadImages ListedImages::some_of(const Piece& piece, int64_t most) {
  std::vector<int64_t> chosen(static_cast<size_t>(std::min(most, piece.count - within_)));
  std::iota(chosen.begin(), chosen.end(), within_);
  ReadImages read;
  for (const int64_t index : chosen) read.names.push_back(join_text(piece.path.string(), "[", index, "]"));
  read.set = fitted(subset(piece.many, chosen), size_, channels_, piece.path.string());
  within_ += static_cast<int64_t>(chosen.size());
  if (within_ == piece.count) {
    ++piece_;
    within_ = 0;
  }
  return read;
}

ReadImages ListedImages::next(int64_t most) {
  if (!ended() && !pieces_[piece_].many.empty()) return some_of(pieces_[piece_], most);
  std::vector<fs::path> files;
  while (!ended() && pieces_[piece_].many.empty() && static_cast<int64_t>(files.size()) < most) {
    files.push_back(pieces_[piece_++].path);
  }
  DecodedFiles decoded = decode_files(files, size_, channels_);
  ReadImages read;
  std::vector<int64_t> readable;
  for (size_t at = 0; at < files.size(); ++at) {
    if (!decoded.failures[at].empty()) {
      read.failures.push_back(decoded.failures[at]);
      continue;
    }
    readable.push_back(static_cast<int64_t>(at));
    read.names.push_back(files[at].string());
  }
  const ImageSet all{.height = size_,
                     .width = size_,
                     .channels = channels_,
                     .pixels = std::move(decoded.pixels),
                     .labels = std::vector<int64_t>(files.size(), 0)};
  read.set = subset(all, readable);
  return read;
}

}  // namespace headshare
