#include "headshare/bench/sdpa_kernel.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>

namespace headshare {
namespace {

std::array<bool, 4> allowed() {
  const at::Context& libtorch = at::globalContext();
  return {libtorch.userEnabledFlashSDP(), libtorch.userEnabledMemEfficientSDP(), libtorch.userEnabledCuDNNSDP(),
          libtorch.userEnabledMathSDP()};
}

void allow(const std::array<bool, 4>& kernels) {
  at::Context& libtorch = at::globalContext();
  libtorch.setSDPUseFlash(kernels[0]);
  libtorch.setSDPUseMemEfficient(kernels[1]);
  libtorch.setSDPUseCuDNN(kernels[2]);
  libtorch.setSDPUseMath(kernels[3]);
}

class Silence : public c10::WarningHandler {
 public:
  void process(const c10::Warning& /*warning*/) override {}
};

}  // namespace

std::vector<SdpaKernel> sdpa_kernels(c10::Device device) {
  if (device.is_cpu()) return {};
  return {{"flash", at::SDPBackend::flash_attention},
          {"efficient", at::SDPBackend::efficient_attention},
          {"cudnn", at::SDPBackend::cudnn_attention},
          {"math", at::SDPBackend::math}};
}

OnlySdpaKernel::OnlySdpaKernel(const std::optional<SdpaKernel>& kernel) : before_(allowed()) {
  if (!kernel) return;
  const auto is = [&](at::SDPBackend backend) { return kernel->backend == backend; };
  allow({is(at::SDPBackend::flash_attention), is(at::SDPBackend::efficient_attention),
         is(at::SDPBackend::cudnn_attention), is(at::SDPBackend::math)});
}

OnlySdpaKernel::~OnlySdpaKernel() { allow(before_); }

std::optional<at::SDPBackend> chosen_sdpa(const std::function<int64_t()>& choose) {
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard quiet(&silence);
  try {
    const auto choice = static_cast<at::SDPBackend>(choose());
    return choice == at::SDPBackend::error ? std::nullopt : std::optional(choice);
  } catch (const c10::Error&) {  // no kernel is left that takes the problem
    return std::nullopt;
  }
}

}  // namespace headshare
