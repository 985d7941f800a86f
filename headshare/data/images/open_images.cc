#include "headshare/data/images/open_images.h"

#include <algorithm>
#include <optional>

#include "headshare/base/error.h"
#include "headshare/base/files/list_folder.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/data/images/binary_images.h"

namespace headshare {
namespace {

constexpr int64_t kIdxClasses = 10;  // until the labels are read: MNIST's and its kin's

enum class ImagePart { kTrain, kValidation, kTest };

// Lists the files of each part.
struct PartFiles {
  std::vector<fs::path> train = {}, validation = {}, test = {};

  std::vector<fs::path>& of(ImagePart part) {
    return part == ImagePart::kTrain ? train : part == ImagePart::kValidation ? validation : test;
  }
  bool empty() const { return train.empty() && validation.empty() && test.empty(); }
};

bool holds(const std::string& name, const char* word) { return name.find(word) != std::string::npos; }

ImagePart part_of(const std::string& name) {
  if (holds(name, "test") || holds(name, "t10k")) return ImagePart::kTest;
  return name.starts_with("val") || name.starts_with("dev") ? ImagePart::kValidation : ImagePart::kTrain;
}

// A Found directory has exactly one of these.
struct FoundImages {
  PartFiles idx = {};  // images; their labels lie beside them
  PartFiles cifar = {};
  PartFiles folders = {};  // one of each part
};

void add_folders(const fs::path& directory, FoundImages* found) {
  for (const std::string& name : class_folders(directory)) {
    const bool is_part = name == "train" || name == "training" || name == "test" || name == "validation" ||
                         name == "valid" || name == "val" || name == "dev";
    if (is_part) found->folders.of(part_of(name)).push_back(directory / name);
  }
  if (!found->folders.train.empty()) return;
  found->folders = {.train = {directory}};
}

FoundImages find_images(const std::string& directory) {
  HS_CHECK(!directory.empty(), "there are no images to learn from: give --images DIR");
  HS_CHECK(fs::is_directory(directory), "--images ", directory, " is no directory");
  FoundImages found;
  std::error_code code;
  std::vector<fs::path> entries = list_folder(directory, code);
  HS_CHECK(!code, "cannot list ", directory, ": ", code.message());
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) {
    const std::string name = entry.filename().string();
    if (is_idx_images(name)) found.idx.of(part_of(name)).push_back(entry);
    if (is_cifar10(name)) found.cifar.of(part_of(name)).push_back(entry);
  }
  HS_CHECK(found.idx.empty() || found.cifar.empty(), directory,
           " has images as IDX and as CIFAR-10; give each data set a directory of its own");
  if (found.idx.empty() && found.cifar.empty()) add_folders(directory, &found);
  return found;
}

// Returns the file of labels that belongs to a file of images.
fs::path labels_of(const fs::path& images) {
  std::string name = images.filename().string();
  name.replace(name.find("images"), 6, "labels");
  name.replace(name.find("idx3"), 4, "idx1");
  return images.parent_path() / name;
}

const fs::path& only(const std::vector<fs::path>& files) {
  HS_CHECK(files.size() == 1, files[0].string(), " and ", files[1].string(),
           " are of the same part; give each data set a directory of its own");
  return files[0];
}

class Opening {
 public:
  Opening(const ImageDataOptions& options, int64_t size, int64_t channels, ImageProgress progress)
      : options_(options),
        found_(find_images(options.images)),
        size_(size),
        channels_(channels),
        progress_(std::move(progress)) {}

  ImageData read() {
    ImageData data;
    if (!found_.folders.empty()) {
      HS_CHECK(!found_.folders.train.empty(), options_.images, " has no training images");
      data.classes = class_folders(only(found_.folders.train));
    }
    if (!found_.cifar.empty()) data.classes = cifar10_classes();
    data.train = part(ImagePart::kTrain, data.classes);
    HS_CHECK(!data.train.empty(), options_.images, " has no training images");
    if (!found_.idx.empty()) name_by_number(data.train, &data.classes);
    data.validation = part(ImagePart::kValidation, data.classes);
    data.test = part(ImagePart::kTest, data.classes);
    check_labels(data);
    if (data.validation.empty()) hold_out(&data);
    return data;
  }

 private:
  ImageSet part(ImagePart which, const std::vector<std::string>& classes) {
    if (const auto& files = found_.idx.of(which); !files.empty()) {
      return fitted(read_idx(only(files), labels_of(only(files))), size_, channels_, only(files).string());
    }
    if (const auto& files = found_.cifar.of(which); !files.empty()) {
      return fitted(read_cifar10(files), size_, channels_, files.front().string());
    }
    if (const auto& folders = found_.folders.of(which); !folders.empty()) {
      return read_image_folder(
          only(folders), classes,
          {.size = size_, .channels = channels_, .unreadable_fraction = options_.unreadable_fraction}, progress_);
    }
    return {};
  }

  static void name_by_number(const ImageSet& train, std::vector<std::string>* classes) {
    const int64_t most = *std::max_element(train.labels.begin(), train.labels.end());
    for (int64_t label = 0; label <= most; ++label) classes->push_back(std::to_string(label));
  }

  void check_labels(const ImageData& data) const {
    HS_CHECK(data.classes.size() > 1, options_.images, " has images of one class, ", data.classes.front(),
             "; there is nothing to tell apart");
    std::vector<int64_t> counts(data.classes.size());
    for (const int64_t label : data.train.labels) ++counts[static_cast<size_t>(label)];
    for (size_t label = 0; label < counts.size(); ++label) {
      HS_CHECK(counts[label] > 0, "the class ", data.classes[label], " has no training image in ", options_.images,
               "; a model cannot learn it");
    }
    for (const ImageSet* set : {&data.validation, &data.test}) {
      for (const int64_t label : set->labels) {
        HS_CHECK(label < static_cast<int64_t>(counts.size()), options_.images, " has an image of class ", label,
                 " to judge models by, and its training images have ", counts.size(), " classes");
      }
    }
  }

  void hold_out(ImageData* data) const {
    TwoSets sets = held_out(data->train, options_.image_validation_fraction);
    HS_CHECK(!sets.second.empty(), "--image-validation-fraction ", options_.image_validation_fraction, " of ",
             data->train.size(), " images leaves none to validate on; raise it, or give more images");
    data->train = std::move(sets.first);
    data->validation = std::move(sets.second);
  }

  const ImageDataOptions& options_;
  FoundImages found_;
  int64_t size_, channels_;
  ImageProgress progress_;
};

}  // namespace

bool is_idx_images(const std::string& name) { return holds(name, "images") && holds(name, "idx3"); }
bool is_idx_labels(const std::string& name) { return holds(name, "labels") && holds(name, "idx1"); }
bool is_cifar10(const std::string& name) { return name.ends_with(".bin") || name.ends_with(".bin.gz"); }

Fields fields(ImageDataOptions& options) {
  const double most = 0.9;
  return {
      naming_directory(
          field("images", &options.images,
                "images: a directory with IDX files (MNIST), CIFAR-10's binary files, or a folder of PNG and "
                "JPEG files for each class, also below train, validation and test",
                {.aliases = {"image-dir", "data-dir"}})),
      field("image-validation-fraction", &options.image_validation_fraction,
            "part of the training images of each class that is held out for validation, where the data has none",
            {.min = 0.001, .max = most}),
      field("unreadable-fraction", &options.unreadable_fraction,
            "part of a folder's images that may be unreadable: they are named and left out", {.min = 0, .max = most}),
  };
}

ImageShape image_shape(const ImageDataOptions& options) {
  FoundImages found = find_images(options.images);
  for (const auto* files : {&found.idx.train, &found.idx.test}) {
    if (files->empty()) continue;
    const ImageSet shape = idx_shape(files->front());
    return {.size = std::min(shape.height, shape.width), .channels = shape.channels, .classes = kIdxClasses};
  }
  if (!found.cifar.empty()) {
    return {.size = 32, .channels = 3, .classes = static_cast<int64_t>(cifar10_classes().size())};
  }
  HS_CHECK(!found.folders.train.empty(), options.images, " has no training images");
  return {.size = 0, .channels = 3, .classes = static_cast<int64_t>(class_folders(found.folders.train[0]).size())};
}

ImageData open_images(const ImageDataOptions& options, int64_t size, int64_t channels, const ImageProgress& progress) {
  return Opening(options, size, channels, progress).read();
}

}  // namespace headshare
