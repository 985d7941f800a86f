// These readers know two formats that hold many images in a file: IDX (MNIST and its kin) and the binary version of
// CIFAR-10. Both may be compressed by gzip, which their names then say.
#pragma once

#include "headshare/base/files/file.h"
#include "headshare/data/images/image_set.h"

namespace headshare {

// Reads a pair of IDX files of bytes: images [N, rows, columns] or [N, rows, columns, channels], labels [N]. Throws
// Error for other types or numbers of dimensions, for counts that differ, and for a file that is shorter or longer than
// its header says; memory grows with what is read, not with what the header promises.
ImageSet read_idx(const fs::path& images, const fs::path& labels);

// Reads the images of an IDX file without their labels, which are 0 here. Throws Error as read_idx does.
ImageSet read_idx_images(const fs::path& images);

// Reads files of CIFAR-10's binary version one after another: a byte of the class and 32 x 32 pixels, red first, a
// record. Throws Error for a file that does not end with a record, and for a class above 9.
ImageSet read_cifar10(const std::vector<fs::path>& files);

// Returns the names of CIFAR-10's classes.
const std::vector<std::string>& cifar10_classes();

// Returns the size of the images as the file's header says it, without labels and pixels.
ImageSet idx_shape(const fs::path& images);

}  // namespace headshare
