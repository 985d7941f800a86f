#include "headshare/ops/precision.h"

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"

namespace headshare {
namespace {

EnumNames<Precision> with(EnumNames<Precision> names, Precision precision, const char* name) {
  names.emplace_back(precision, name);
  return names;
}

const EnumNames<Precision>& names() {
  static const EnumNames<Precision> names = with(product_precision_names(), Precision::kAuto, "auto");
  return names;
}

// Tells whether this thread multiplies floats as kBf16x3.
thread_local bool in_three = false;

}  // namespace

const EnumNames<Precision>& attention_precision_names() {
  static const EnumNames<Precision> names = {{Precision::kFp32, "fp32"}, {Precision::kBf16, "bf16"}};
  return names;
}

const EnumNames<Precision>& product_precision_names() {
  static const EnumNames<Precision> names = with(attention_precision_names(), Precision::kBf16x3, "bf16x3");
  return names;
}

Field precision_field(Precision* target) {
  return field(
      "precision", target,
      "of matrix products and attention in training steps; parameters, norms, softmax and loss are fp32. A processor "
      "that multiplies bf16 no faster keeps bf16 and multiplies fp32. bf16x3: fp32, but products as three of bf16 "
      "with 16 of fp32's 24 bits: faster where the processor has AMX, else fp32. auto: bf16 where it is multiplied "
      "faster",
      names(), {.aliases = {"mixed-precision"}});
}

std::string precision_name(Precision precision) { return enum_name(names(), precision); }

bool gains_from_bf16(const std::string& cpuinfo) {
  bool intel = false;
  std::istringstream words(cpuinfo);
  for (std::string word; words >> word;) {
    if (word == "GenuineIntel") intel = true;
    if (word == "amx_bf16" || word == "bf16" || (word == "avx512_bf16" && !intel)) return true;
  }
  return false;
}

bool gains_from_bf16x3(const std::string& cpuinfo) {
  std::istringstream words(cpuinfo);
  return std::find(std::istream_iterator<std::string>(words), {}, "amx_bf16") != std::istream_iterator<std::string>();
}

namespace {

std::string cpuinfo() {
  std::ostringstream text;
  text << std::ifstream("/proc/cpuinfo").rdbuf();
  return text.str();
}

// Returns what the driver says of the card; a card that it does not tell of counts as a recent one.
GraphicsCard card_of(c10::Device device) {
  const std::vector<GraphicsCard>& cards = cuda_driver().cards;
  const auto at = static_cast<size_t>(std::max<int>(device.index(), 0));
  return at < cards.size() ? cards[at] : GraphicsCard{.name = "the card", .major = 8};
}

}  // namespace

bool gains_from_bf16(c10::Device device) {
  static const bool found = gains_from_bf16(cpuinfo());
  return device.is_cuda() ? card_of(device).multiplies_bf16() : found;
}

bool gains_from_bf16x3(c10::Device device) {
  static const bool found = gains_from_bf16x3(cpuinfo());
  return device.is_cpu() && found;
}

namespace {

std::optional<bool>& forced() {
  static std::optional<bool> widened;
  return widened;
}

}  // namespace

bool widens_products(c10::Device device) { return device.is_cpu() && forced().value_or(!gains_from_bf16(device)); }

at::ScalarType product_type(const at::Tensor& x) {
  const auto device = x.device().type();
  if (!at::autocast::is_autocast_enabled(device)) return x.scalar_type();
  return widens_products(x.device()) ? at::kFloat : at::autocast::get_autocast_dtype(device);
}

void force_widened_products(std::optional<bool> widened) { forced() = widened; }

void check_bf16(Precision wanted, const GraphicsCard& card) {
  HS_CHECK(wanted != Precision::kBf16 || card.multiplies_bf16(), "--precision bf16: ", card.name,
           " has compute capability ", card.major, ".", card.minor,
           ", and cards multiply bf16 from 8.0 (Ampere); use --precision fp32, or another --device");
}

Precision resolve_precision(Precision wanted, c10::Device device) {
  if (device.is_cuda()) check_bf16(wanted, card_of(device));
  if (wanted == Precision::kBf16x3 && !gains_from_bf16x3(device)) return Precision::kFp32;
  if (wanted != Precision::kAuto) return wanted;
  return gains_from_bf16(device) ? Precision::kBf16 : Precision::kFp32;
}

void warn_if_no_faster(Precision wanted, c10::Device device) {
  if (wanted == Precision::kBf16x3 && !gains_from_bf16x3(device)) {
    notice("--precision bf16x3 is for processors with AMX: this computes in fp32");
  }
  if (wanted != Precision::kBf16 || gains_from_bf16(device)) return;
  notice("this processor multiplies bf16 no faster than fp32: --precision bf16 saves memory, not time");
}

ComputeIn::ComputeIn(Precision precision, c10::DeviceType device)
    : device_(device),
      enabled_before_(at::autocast::is_autocast_enabled(device)),
      cached_before_(at::autocast::is_autocast_cache_enabled()),
      in_three_before_(in_three),
      type_before_(at::autocast::get_autocast_dtype(device)) {
  in_three = precision == Precision::kBf16x3;
  at::autocast::set_autocast_enabled(device, precision == Precision::kBf16);
  at::autocast::set_autocast_dtype(device, at::kBFloat16);
  at::autocast::set_autocast_cache_enabled(false);
}

ComputeIn::~ComputeIn() {
  in_three = in_three_before_;
  at::autocast::set_autocast_enabled(device_, enabled_before_);
  at::autocast::set_autocast_dtype(device_, type_before_);
  at::autocast::set_autocast_cache_enabled(cached_before_);
}

Precision ComputeIn::current(c10::DeviceType device) {
  if (at::autocast::is_autocast_enabled(device)) return Precision::kBf16;
  return in_three ? Precision::kBf16x3 : Precision::kFp32;
}

}  // namespace headshare
