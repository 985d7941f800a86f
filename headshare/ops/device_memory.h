// Tells about the memory of a card: what a training took of it, and whether one will fit.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace headshare {

struct DeviceMemory {
  double free = 0;   // bytes that this process may still take, with what libtorch keeps for the next tensors
  double total = 0;  // bytes
};

// Returns nothing for the CPU, whose memory base/memory.h knows.
std::optional<DeviceMemory> device_memory(c10::Device device);

// Returns the most bytes that tensors of this process took on a card so far; 0 for the CPU.
int64_t peak_device_bytes(c10::Device device);

// Returns the most bytes that tensors of this process took on a card while the action ran, above those before.
int64_t device_bytes_of(c10::Device card, const std::function<void()>& action);

// Throws Error with all numbers when `needed` bytes for `what` do not fit into a card. `way_out` ends the sentence.
void check_device_memory(double needed, const DeviceMemory& memory, const std::string& device, const std::string& what,
                         const std::string& way_out);

// Does what check_memory() does, for the memory of this device.
void check_memory_of(c10::Device device, double needed, const std::string& what, const std::string& way_out);

}  // namespace headshare
