#include "headshare/host/machine.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "commit.h"
#include "headshare/base/memory.h"
#include "headshare/base/proc.h"
#include "headshare/host/runtime_options.h"
#include "headshare/kernels/tiles.h"
#include "headshare/ops/head_attention/head_attention.h"

namespace headshare {
namespace {

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

}  // namespace

InstructionSets instruction_sets() {
  return {.libtorch = at::get_cpu_capability(), .headshare = kernels::tiles_target()};
}

nlohmann::ordered_json to_json(const InstructionSets& sets) {
  return {{"libtorch", sets.libtorch}, {"headshare", sets.headshare}};
}

Machine describe_machine() {
  Machine machine{.headshare = HEADSHARE_VERSION,
                  .commit = HEADSHARE_COMMIT,
                  .torch = TORCH_VERSION,
                  .processor = processor_name(),
                  .cores = std::thread::hardware_concurrency(),
                  .threads = threads_in_use(),
                  .instructions = at::get_cpu_capability(),
                  .memory_bytes = proc_bytes("/proc/meminfo", "MemTotal").value_or(0),
                  .memory_available_bytes = available_memory_bytes(),
                  .cuda_devices = 0,
                  .cuda = cuda_facts(),
                  .attention_backends = {}};
  machine.cuda_devices = machine.cuda.usable;
  for (const HeadBackend& backend : head_backends()) {
    const std::string device = backend.device ? c10::DeviceTypeName(*backend.device, /*lower_case=*/true) : "";
    machine.attention_backends.push_back({std::string(backend.name), std::string(backend.summary), device});
  }
  return machine;
}

nlohmann::ordered_json to_json(const Machine& machine) {
  nlohmann::ordered_json backends = nlohmann::ordered_json::array();
  for (const Machine::Backend& backend : machine.attention_backends) {
    backends.push_back({{"name", backend.name}, {"summary", backend.summary}, {"device", backend.device}});
  }
  return {{"headshare", machine.headshare},
          {"commit", machine.commit},
          {"torch", machine.torch},
          {"processor", machine.processor},
          {"cores", machine.cores},
          {"threads", machine.threads},
          {"instructions", machine.instructions},
          {"memory_bytes", machine.memory_bytes},
          {"memory_available_bytes", machine.memory_available_bytes},
          {"cuda_devices", machine.cuda_devices},
          {"cuda", to_json(machine.cuda)},
          {"attention_backends", backends}};
}

}  // namespace headshare
