#include "headshare/ops/device_memory.h"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "headshare/base/error.h"
#include "headshare/base/memory.h"
#include "headshare/base/strings/format.h"

namespace headshare {
namespace {

c10::DeviceAllocator& allocator_of(c10::Device device) {
  at::globalContext().lazyInitDevice(device.type());  // the allocator of cards knows no card before
  return *c10::getDeviceAllocator(device.type());
}

constexpr size_t kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

}  // namespace

std::optional<DeviceMemory> device_memory(c10::Device device) {
  if (device.is_cpu()) return std::nullopt;
  c10::DeviceAllocator& allocator = allocator_of(device);
  const auto [free, total] = allocator.getMemoryInfo(device.index());
  const auto stats = allocator.getDeviceStats(device.index());
  const auto kept = static_cast<double>(stats.reserved_bytes[kAll].current - stats.allocated_bytes[kAll].current);
  return DeviceMemory{.free = static_cast<double>(free) + kept, .total = static_cast<double>(total)};
}

int64_t peak_device_bytes(c10::Device device) {
  return device.is_cpu() ? 0 : allocator_of(device).getDeviceStats(device.index()).allocated_bytes[kAll].peak;
}

int64_t device_bytes_of(c10::Device card, const std::function<void()>& action) {
  c10::DeviceAllocator& allocator = allocator_of(card);
  allocator.resetPeakStats(card.index());
  const int64_t before = allocator.getDeviceStats(card.index()).allocated_bytes[kAll].current;
  action();  // memory is counted when it is asked for: nobody waits for the card
  return allocator.getDeviceStats(card.index()).allocated_bytes[kAll].peak - before;
}

void check_device_memory(double needed, const DeviceMemory& memory, const std::string& device, const std::string& what,
                         const std::string& way_out) {
  HS_CHECK(needed <= memory.free, what, " needs about ", format_bytes(needed), " of the memory of ", device, ", and ",
           format_bytes(memory.free), " of its ", format_bytes(memory.total), " are free; ", way_out);
}

void check_memory_of(c10::Device device, double needed, const std::string& what, const std::string& way_out) {
  if (const auto memory = device_memory(device)) {
    check_device_memory(needed, *memory, device.str(), what, way_out);
  } else {
    check_memory(needed, what, way_out);
  }
}

}  // namespace headshare
