#include "headshare/ops/precision.h"

#include <ATen/autocast_mode.h>

#include <fstream>
#include <sstream>

#include "headshare/base/notice.h"

namespace headshare {
namespace {

const EnumNames<Precision>& names() {
  static const EnumNames<Precision> names = [] {
    EnumNames<Precision> all = computed_precision_names();
    all.emplace_back(Precision::kAuto, "auto");
    return all;
  }();
  return names;
}

}  // namespace

const EnumNames<Precision>& computed_precision_names() {
  static const EnumNames<Precision> names = {{Precision::kFp32, "fp32"}, {Precision::kBf16, "bf16"}};
  return names;
}

Field precision_field(Precision* target) {
  return field(
      "precision", target,
      "of matrix products and attention in training steps; parameters, norms, softmax and loss are fp32. auto: "
      "bf16 where the processor has instructions for it",
      names(), {.aliases = {"mixed-precision"}});
}

std::string precision_name(Precision precision) {
  for (const auto& [value, name] : names()) {
    if (value == precision) return name;
  }
  return "";
}

bool has_bf16_instructions(c10::Device device) {
  if (device.is_cuda()) return true;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word == "avx512_bf16" || word == "amx_bf16" || word == "bf16") return true;
    }
    return false;
  }
  return false;
}

Precision resolve_precision(Precision wanted, c10::Device device) {
  if (wanted != Precision::kAuto) return wanted;
  return has_bf16_instructions(device) ? Precision::kBf16 : Precision::kFp32;
}

void warn_if_slow(Precision wanted, c10::Device device) {
  if (wanted != Precision::kBf16 || has_bf16_instructions(device)) return;
  notice("this processor has no bf16 instructions: --precision bf16 will be slower than fp32");
}

ComputeIn::ComputeIn(Precision precision, c10::DeviceType device)
    : device_(device),
      enabled_before_(at::autocast::is_autocast_enabled(device)),
      cached_before_(at::autocast::is_autocast_cache_enabled()),
      type_before_(at::autocast::get_autocast_dtype(device)) {
  at::autocast::set_autocast_enabled(device, precision == Precision::kBf16);
  at::autocast::set_autocast_dtype(device, at::kBFloat16);
  at::autocast::set_autocast_cache_enabled(false);
}

ComputeIn::~ComputeIn() {
  at::autocast::set_autocast_enabled(device_, enabled_before_);
  at::autocast::set_autocast_dtype(device_, type_before_);
  at::autocast::set_autocast_cache_enabled(cached_before_);
}

Precision ComputeIn::current(c10::DeviceType device) {
  return at::autocast::is_autocast_enabled(device) ? Precision::kBf16 : Precision::kFp32;
}

}  // namespace headshare
