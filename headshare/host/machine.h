// A Machine describes the computer and the libraries that a result is made with.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headshare/host/devices.h"

namespace headshare {

struct Machine {
  struct Backend {  // a backend of attention
    std::string name;
    std::string summary;
    std::string device;  // "cpu" where it runs there alone, "" where it runs on every device
  };

  std::string headshare;  // the version
  std::string commit;     // the commit that headshare was built from
  std::string torch;      // the version
  std::string processor;
  int64_t cores = 0;
  int64_t threads = 0;       // the threads that compute now
  std::string instructions;  // the set that libtorch's kernels chose: "AVX512"
  int64_t memory_bytes = 0;
  double memory_available_bytes = 0;
  int64_t cuda_devices = 0;  // that libtorch can use
  CudaFacts cuda;
  std::vector<Backend> attention_backends;  // the first choice first
};

Machine describe_machine();

nlohmann::ordered_json to_json(const Machine& machine);

// Kernels choose their instruction sets at run time: "AVX512".
struct InstructionSets {
  std::string libtorch;
  std::string headshare;
};

InstructionSets instruction_sets();

nlohmann::ordered_json to_json(const InstructionSets& sets);

}  // namespace headshare
