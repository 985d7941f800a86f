#include "headshare/host/runtime_options.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/version.h>

#include <cstdlib>

#include "headshare/base/error.h"
#include "headshare/ops/tensor_memory.h"

namespace headshare {

Fields fields(RuntimeOptions& options) {
  static const EnumNames<DeviceChoice> kDevices = {
      {DeviceChoice::kAuto, "auto"}, {DeviceChoice::kCpu, "cpu"}, {DeviceChoice::kCuda, "cuda"}};
  return {
      field("device", &options.device, "where to compute; auto: a CUDA device if there is one", kDevices),
      field("threads", &options.threads, "threads on the CPU; auto: $OMP_NUM_THREADS, else all cores",
            {.min = 1, .max = 1024, .aliases = {"num-threads"}}),
  };
}

int64_t cuda_devices() { return at::globalContext().hasCUDA() ? at::detail::getCUDAHooks().deviceCount() : 0; }

int64_t threads_in_use() { return at::get_num_threads(); }

c10::Device start_runtime(const RuntimeOptions& options) {
  if (options.keep_tensor_memory) keep_tensor_memory();
  if (options.threads) at::set_num_threads(static_cast<int>(*options.threads));
  const bool there = options.device != DeviceChoice::kCpu && cuda_devices() > 0;
  HS_CHECK(there || options.device != DeviceChoice::kCuda, "--device cuda: libtorch " TORCH_VERSION,
           at::globalContext().hasCUDA() ? " finds no CUDA device" : " was built without CUDA",
           "; use --device cpu, or auto");
  if (!there) return c10::Device(c10::kCPU);
  // Processes that torchrun started have chosen a device each, or found that they cannot (python/headshare/_group.py);
  // the first one is the default.
  const char* const shared = std::getenv("HEADSHARE_SHARED_GPU");
  HS_CHECK(shared == nullptr || *shared == 0, shared);
  return c10::impl::VirtualGuardImpl(c10::kCUDA).getDevice();
}

}  // namespace headshare
