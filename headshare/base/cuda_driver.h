// Asks NVIDIA's driver about the graphics cards of this machine. The driver's library is loaded when it is asked, so
// that neither CUDA's toolkit nor its headers are needed, and a machine without a driver answers that it has none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headshare {

struct GraphicsCard {
  std::string name;          // "NVIDIA H100 80GB HBM3"
  int64_t memory_bytes = 0;  // all of it
  int major = 0, minor = 0;  // the compute capability, 9.0 for an H100
  int processors = 0;        // its streaming multiprocessors

  // Tensor cores multiply bfloat16 since 8.0 (Ampere).
  bool multiplies_bf16() const { return major >= 8; }
};

struct CudaDriver {
  std::string version;              // "580.95.05"; "" where it does not tell
  int cuda = 0;                     // the newest CUDA that it runs, 1000 * major + 10 * minor; 0: there is no driver
  std::vector<GraphicsCard> cards;  // those that this process may use ($CUDA_VISIBLE_DEVICES), in libtorch's order
};

// Asks once in the life of the process. Throws nothing; creates no context on a card.
const CudaDriver& cuda_driver();

// Returns "13.0" for 13000, the way CUDA writes its version in one number.
std::string cuda_version_text(int64_t version);

// Returns the version in a text of /proc/driver/nvidia/version; "" where there is none.
std::string driver_version_in(const std::string& text);

}  // namespace headshare
