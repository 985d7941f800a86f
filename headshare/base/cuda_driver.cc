#include "headshare/base/cuda_driver.h"

#include <dlfcn.h>

#include <array>
#include <fstream>
#include <sstream>

namespace headshare {
namespace {

// These are functions of the driver's C interface, which NVIDIA keeps compatible; 0 is success.
using Init = int (*)(unsigned flags);
using Number = int (*)(int* number);
using DeviceAt = int (*)(int* device, int index);
using DeviceName = int (*)(char* name, int length, int device);
using DeviceMemory = int (*)(size_t* bytes, int device);
using DeviceAttribute = int (*)(int* value, int attribute, int device);

// Their numbers are those of the enumeration CUdevice_attribute.
constexpr int kProcessors = 16, kMajor = 75, kMinor = 76;

class Library {
 public:
  Library() : handle_(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {}

  // Returns null where the library, or the function in it, is missing.
  template <class Function>
  Function find(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(handle_, name));
  }

 private:
  void* handle_;  // it stays loaded: libtorch uses it, too
};

GraphicsCard card_at(const Library& library, int index) {
  GraphicsCard card;
  int device = 0;
  const auto device_at = library.find<DeviceAt>("cuDeviceGet");
  if (device_at == nullptr || device_at(&device, index) != 0) return card;
  std::array<char, 256> name = {};
  const auto device_name = library.find<DeviceName>("cuDeviceGetName");
  if (device_name != nullptr && device_name(name.data(), static_cast<int>(name.size()) - 1, device) == 0) {
    card.name = name.data();
  }
  size_t bytes = 0;
  const auto memory = library.find<DeviceMemory>("cuDeviceTotalMem_v2");
  if (memory != nullptr && memory(&bytes, device) == 0) card.memory_bytes = static_cast<int64_t>(bytes);
  const auto attribute = library.find<DeviceAttribute>("cuDeviceGetAttribute");
  if (attribute == nullptr) return card;
  attribute(&card.major, kMajor, device);
  attribute(&card.minor, kMinor, device);
  attribute(&card.processors, kProcessors, device);
  return card;
}

std::string text_of(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

CudaDriver ask() {
  CudaDriver driver{.version = driver_version_in(text_of("/proc/driver/nvidia/version")), .cuda = 0, .cards = {}};
  const Library library;
  const auto version = library.find<Number>("cuDriverGetVersion");
  if (version == nullptr || version(&driver.cuda) != 0) return driver;
  const auto init = library.find<Init>("cuInit");
  const auto count = library.find<Number>("cuDeviceGetCount");
  int cards = 0;
  if (init == nullptr || init(0) != 0 || count == nullptr || count(&cards) != 0) return driver;
  for (int i = 0; i < cards; ++i) driver.cards.push_back(card_at(library, i));
  return driver;
}

}  // namespace

const CudaDriver& cuda_driver() {
  static const CudaDriver driver = ask();
  return driver;
}

std::string cuda_version_text(int64_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string driver_version_in(const std::string& text) {
  // The version is the first word of digits and points: "NVRM version: NVIDIA UNIX ... Module  580.95.05  Tue ...".
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  }
  return "";
}

}  // namespace headshare
