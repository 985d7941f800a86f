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
  return {
      device_field("device", &options.device,
                   "where to compute; auto: a CUDA device if there is one; cuda:1 is the second one"),
      field("threads", &options.threads, "threads on the CPU; auto: $OMP_NUM_THREADS, else all cores",
            {.min = 1, .max = 1024, .aliases = {"num-threads"}}),
      field("deterministic", &options.deterministic,
            "on a CUDA device, compute with operations that give the same bits each time: equal runs end equal, and a "
            "resumed one as if it had not been stopped. On the CPU they do anyway"),
  };
}

int64_t cuda_devices() { return cuda_facts().usable; }

int64_t threads_in_use() { return at::get_num_threads(); }

namespace {

// Lets libtorch choose deterministic operations, and throw an error for one that it has none for.
void compute_deterministically() {
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);  // cuBLAS reads it when it is first used
  at::Context& libtorch = at::globalContext();
  libtorch.setDeterministicAlgorithms(true, /*warn_only=*/false);
  libtorch.setDeterministicFillUninitializedMemory(false);  // headshare reads no memory that it has not written
  libtorch.setDeterministicCuDNN(true);
  libtorch.setBenchmarkCuDNN(false);
}

}  // namespace

c10::Device start_runtime(const RuntimeOptions& options) {
  if (options.keep_tensor_memory) keep_tensor_memory();
  if (options.threads) at::set_num_threads(static_cast<int>(*options.threads));
  check_libtorch(TORCH_VERSION, loaded_libtorch());
  if (!options.device.may_be_cuda()) return c10::Device(c10::kCPU);
  const CudaFacts facts = cuda_facts();
  const auto cards = [] { return c10::impl::VirtualGuardImpl(c10::kCUDA); };
  const c10::Device device = resolve_device(options.device, facts, facts.usable > 0 ? cards().getDevice().index() : 0);
  if (device.is_cpu()) return device;
  // Processes that torchrun started have chosen a device each, or found that they cannot (python/headshare/_group.py);
  // the first one is the default.
  const char* const shared = std::getenv("HEADSHARE_SHARED_GPU");
  HS_CHECK(shared == nullptr || *shared == 0, shared);
  if (options.deterministic) compute_deterministically();
  cards().setDevice(device);  // so that tensors "on CUDA" are on this card
  return device;
}

}  // namespace headshare
