// libtorch has several kernels behind scaled_dot_product_attention and chooses among them. Here one can be forced, so
// that each is a contender of its own.
#pragma once

#include <ATen/SDPBackend.h>
#include <c10/core/Device.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace headshare {

struct SdpaKernel {
  std::string name;  // "flash"
  at::SDPBackend backend;
};

// Lists the kernels that are worth forcing on a device: flash, efficient, cudnn and math on a card. None on the CPU,
// which has one fused kernel and takes it where it can.
std::vector<SdpaKernel> sdpa_kernels(c10::Device device);

// While one of these lives, libtorch chooses from this kernel alone; without a kernel, as it likes.
class OnlySdpaKernel {
 public:
  explicit OnlySdpaKernel(const std::optional<SdpaKernel>& kernel);
  ~OnlySdpaKernel();
  OnlySdpaKernel(const OnlySdpaKernel&) = delete;
  OnlySdpaKernel& operator=(const OnlySdpaKernel&) = delete;

 private:
  std::array<bool, 4> before_;  // flash, efficient, cudnn, math
};

// Returns the kernel that libtorch's dispatcher takes, which `choose` asks; nothing where it refuses to take any. Its
// warnings on why are not passed on.
std::optional<at::SDPBackend> chosen_sdpa(const std::function<int64_t()>& choose);

}  // namespace headshare
