#include "headshare/bench/sdpa_kernel.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/bench/attention_bench.h"

namespace headshare {
namespace {

using testing::ElementsAre;

// The CPU has two of the kernels, so that forcing one can be tried there.
const SdpaKernel kFlash{"flash", at::SDPBackend::flash_attention};
const SdpaKernel kMath{"math", at::SDPBackend::math};
const SdpaKernel kCudnn{"cudnn", at::SDPBackend::cudnn_attention};

int64_t choice() {
  const Tensor x = at::zeros({1, 2, 8, 16});
  return at::_fused_sdp_choice(x, x, x, /*attn_mask=*/{}, /*dropout_p=*/0, /*is_causal=*/false, /*scale=*/1.0,
                               /*enable_gqa=*/false);
}

TEST(SdpaKernels, AreForcedOnACardAlone) {
  EXPECT_TRUE(sdpa_kernels(c10::Device(c10::kCPU)).empty());
  std::vector<std::string> names;
  for (const SdpaKernel& one : sdpa_kernels(c10::Device("cuda:1"))) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre("flash", "efficient", "cudnn", "math"));
}

TEST(SdpaKernels, OneIsForcedWhileTheGuardLives) {
  EXPECT_EQ(chosen_sdpa(choice), at::SDPBackend::flash_attention);
  for (const SdpaKernel& kernel : {kFlash, kMath}) {
    const OnlySdpaKernel only(kernel);
    EXPECT_EQ(chosen_sdpa(choice), kernel.backend);
  }
  EXPECT_EQ(chosen_sdpa(choice), at::SDPBackend::flash_attention);
  const OnlySdpaKernel any(std::nullopt);
  EXPECT_EQ(chosen_sdpa(choice), at::SDPBackend::flash_attention);
}

TEST(SdpaKernels, ARefusalIsNoChoiceAndNoNoise) {
  EXPECT_FALSE(chosen_sdpa([]() -> int64_t {
                 TORCH_WARN("why not");
                 TORCH_CHECK(false, "no kernel");
               }).has_value());
  EXPECT_FALSE(chosen_sdpa([] { return int64_t{-1}; }).has_value());
  const OnlySdpaKernel only(kCudnn);  // which the CPU does not have
  EXPECT_NE(chosen_sdpa(choice), at::SDPBackend::cudnn_attention);
}

TEST(SdpaKernels, EachIsAContenderOfItsOwn) {
  AttentionBenchOptions options{.turns = {.least_rounds = 1, .most_rounds = 1}, .small_roofs = true};
  options.contenders = [](const CaseInputs& in) { return make_contenders(in, {kFlash, kMath, kCudnn}); };
  const AttentionCase one{.scheme = "mqa", .batch = 2, .heads = 4, .head_width = 8, .queries = 70, .keys = 70};
  std::vector<std::pair<std::string, std::string>> found;
  for (const AttentionRow& row : bench_attention({one}, options)) {
    EXPECT_EQ(row.refused, "") << row.contender;
    found.emplace_back(row.contender, row.backend);
  }
  using Row = std::pair<std::string, std::string>;
  EXPECT_THAT(found, ElementsAre(testing::_, Row("torch_sdpa", "fused"), Row("torch_sdpa_expanded", "fused"),
                                 Row("torch_sdpa_gqa", "fused"), Row("torch_sdpa_flash", "flash"),
                                 Row("torch_sdpa_expanded_flash", "flash"), Row("torch_sdpa_gqa_flash", "flash"),
                                 Row("torch_sdpa_math", "math"), Row("torch_sdpa_expanded_math", "math"),
                                 Row("torch_sdpa_gqa_math", "math")));
}

}  // namespace
}  // namespace headshare
