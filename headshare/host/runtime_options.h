// These options say where, and with how many threads, a program computes.
#pragma once

#include <c10/core/Device.h>

#include <optional>

#include "headshare/base/field.h"

namespace headshare {

enum class DeviceChoice { kAuto, kCpu, kCuda };

struct RuntimeOptions {
  DeviceChoice device = DeviceChoice::kAuto;
  std::optional<int64_t> threads = {};  // default: libtorch's choice, the cores ($OMP_NUM_THREADS)
  bool keep_tensor_memory = true;       // no user's option: for the next step, instead of giving it to the system
};

Fields fields(RuntimeOptions& options);

// Sets the number of threads and how memory is kept, and returns the device; throws Error when there is no such device.
c10::Device start_runtime(const RuntimeOptions& options);

// The threads that compute on the CPU now.
int64_t threads_in_use();

// How many CUDA devices libtorch can use.
int64_t cuda_devices();

}  // namespace headshare
