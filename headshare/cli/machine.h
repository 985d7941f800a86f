// The machine and the libraries a result was made with.
#pragma once

#include <nlohmann/json.hpp>

namespace headshare {

// Versions, processor, threads, instruction set, memory, CUDA devices, attention backends.
nlohmann::ordered_json describe_machine();

// The instruction sets that kernels chose at run time, by whose kernels: {"libtorch": "AVX512", "headshare": "AVX3"}.
nlohmann::ordered_json instruction_sets();

}  // namespace headshare
