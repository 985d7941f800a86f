// These options say where, and with how many threads, a program computes.
#pragma once

#include <c10/core/Device.h>

#include <optional>

#include "headshare/host/devices.h"

namespace headshare {

struct RuntimeOptions {
  DeviceChoice device = {};
  std::optional<int64_t> threads = {};  // default: libtorch's choice, the cores ($OMP_NUM_THREADS)
  bool deterministic = false;           // on a card, too
  bool keep_tensor_memory = true;       // keeps it for the next step; users cannot set this
};

Fields fields(RuntimeOptions& options);

// Sets the number of threads and how memory is kept, and returns the device; throws Error when there is no such device.
c10::Device start_runtime(const RuntimeOptions& options);

// Returns the number of threads that compute on the CPU now.
int64_t threads_in_use();

// Returns how many CUDA devices libtorch can use.
int64_t cuda_devices();

}  // namespace headshare
