#include "headshare/cli/machine.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <fstream>
#include <thread>

#include "commit.h"
#include "headshare/cli/runtime_options.h"
#include "headshare/kernels/tiles.h"
#include "headshare/models/size.h"
#include "headshare/ops/head_attention.h"

namespace headshare {
namespace {

// The number behind `key` in /proc/meminfo, in bytes; 0 when it cannot be read.
double memory_info(const std::string& key) {
  std::ifstream in("/proc/meminfo");
  for (std::string name, rest; in >> name; std::getline(in, rest)) {
    double kilobytes = 0;
    if (name == key + ":" && in >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

}  // namespace

nlohmann::ordered_json instruction_sets() {
  return {{"libtorch", at::get_cpu_capability()}, {"headshare", kernels::tiles_target()}};
}

nlohmann::ordered_json describe_machine() {
  nlohmann::ordered_json backends = nlohmann::ordered_json::array();
  for (const HeadBackend& backend : head_backends()) {
    backends.push_back({{"name", backend.name}, {"summary", backend.summary}});
  }
  return {{"headshare", HEADSHARE_VERSION},
          {"commit", HEADSHARE_COMMIT},
          {"torch", TORCH_VERSION},
          {"processor", processor_name()},
          {"cores", std::thread::hardware_concurrency()},
          {"threads", at::get_num_threads()},
          {"instructions", at::get_cpu_capability()},
          {"memory_bytes", memory_info("MemTotal")},
          {"memory_available_bytes", available_memory_bytes()},
          {"cuda_devices", cuda_devices()},
          {"attention_backends", backends}};
}

}  // namespace headshare
