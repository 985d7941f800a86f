// The machine and the libraries that a result is made with.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headshare {

struct Machine {
  struct Backend {  // of attention
    std::string name;
    std::string summary;
  };

  std::string headshare;  // the version
  std::string commit;     // that headshare was built from
  std::string torch;      // the version
  std::string processor;
  int64_t cores = 0;
  int64_t threads = 0;       // that compute now
  std::string instructions;  // that libtorch's kernels chose: "AVX512"
  int64_t memory_bytes = 0;
  double memory_available_bytes = 0;
  int64_t cuda_devices = 0;
  std::vector<Backend> attention_backends;  // the first choice first
};

Machine describe_machine();

nlohmann::ordered_json to_json(const Machine& machine);

// The instruction sets that kernels chose at run time: "AVX512".
struct InstructionSets {
  std::string libtorch;
  std::string headshare;
};

InstructionSets instruction_sets();

nlohmann::ordered_json to_json(const InstructionSets& sets);

}  // namespace headshare
