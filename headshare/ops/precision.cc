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
      "of matrix products and attention in training steps; parameters, norms, softmax and loss are fp32. A processor "
      "that multiplies bf16 no faster keeps bf16 and multiplies fp32. auto: bf16 where it is multiplied faster",
      names(), {.aliases = {"mixed-precision"}});
}

std::string precision_name(Precision precision) { return enum_name(names(), precision); }

bool gains_from_bf16(const std::string& cpuinfo) {
  bool intel = false;
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word == "GenuineIntel") intel = true;
      if (word == "amx_bf16" || word == "bf16" || (word == "avx512_bf16" && !intel)) return true;
    }
  }
  return false;
}

bool gains_from_bf16(c10::Device device) {
  if (device.is_cuda()) return true;
  static const bool found = [] {
    std::ostringstream text;
    text << std::ifstream("/proc/cpuinfo").rdbuf();
    return gains_from_bf16(text.str());
  }();
  return found;
}

namespace {

std::optional<bool>& forced() {
  static std::optional<bool> widened;
  return widened;
}

}  // namespace

bool widens_products(c10::Device device) { return device.is_cpu() && forced().value_or(!gains_from_bf16(device)); }

void force_widened_products(std::optional<bool> widened) { forced() = widened; }

Precision resolve_precision(Precision wanted, c10::Device device) {
  if (wanted != Precision::kAuto) return wanted;
  return gains_from_bf16(device) ? Precision::kBf16 : Precision::kFp32;
}

void warn_if_no_faster(Precision wanted, c10::Device device) {
  if (wanted != Precision::kBf16 || gains_from_bf16(device)) return;
  notice("this processor multiplies bf16 no faster than fp32: --precision bf16 saves memory, not time");
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
