#include "headshare/ops/precision.h"

#include <gmock/gmock.h>

#include "headshare/base/notice.h"
#include "headshare/base/testing.h"
#include "headshare/ops/recompute.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

const c10::Device kCpu(at::kCPU);

TEST(Precision, ProductsAreBf16AndTheRestIsNot) {
  const Tensor weight = random_tensor({4, 8}, 1, at::kFloat).requires_grad_();
  const Tensor x = random_tensor({3, 8}, 2, at::kFloat);
  {
    const ComputeIn bf16(Precision::kBf16, at::kCPU);
    EXPECT_EQ(ComputeIn::current(at::kCPU), Precision::kBf16);
    const Tensor y = at::linear(x, weight);
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    EXPECT_EQ((x.sum() + y.sum()).scalar_type(), at::kFloat);
    EXPECT_EQ(at::layer_norm(x, {8}).scalar_type(), at::kFloat);
    y.sum().backward();
    const ComputeIn fp32(Precision::kFp32, at::kCPU);
    EXPECT_EQ(at::linear(x, weight).scalar_type(), at::kFloat);
  }
  EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
  EXPECT_EQ(ComputeIn::current(at::kCPU), Precision::kFp32);
  EXPECT_EQ(at::linear(x, weight).scalar_type(), at::kFloat);
}

TEST(Precision, AutoIsWhatTheProcessorIsGoodAt) {
  const bool fast = gains_from_bf16(kCpu);
  EXPECT_EQ(resolve_precision(Precision::kAuto, kCpu), fast ? Precision::kBf16 : Precision::kFp32);
  EXPECT_EQ(resolve_precision(Precision::kFp32, kCpu), Precision::kFp32);
  std::string said;
  const NoticeHandler before = set_notice_handler([&](const std::string& sentence) { said += sentence; });
  EXPECT_EQ(resolve_precision(Precision::kBf16, kCpu), Precision::kBf16);
  warn_if_no_faster(Precision::kBf16, kCpu);
  set_notice_handler(before);
  EXPECT_EQ(said.find("multiplies bf16 no faster") == std::string::npos, fast);
  EXPECT_EQ(widens_products(kCpu), !fast);
}

TEST(Precision, CardsWithoutProductsOfBf16AreRefused) {
  const GraphicsCard old{.name = "Tesla T4", .major = 7, .minor = 5};
  const std::string refused = error_message([&] { check_bf16(Precision::kBf16, old); });
  EXPECT_THAT(refused, testing::HasSubstr("Tesla T4 has compute capability 7.5"));
  EXPECT_THAT(refused, testing::HasSubstr("--precision fp32"));
  EXPECT_EQ(error_message([&] { check_bf16(Precision::kFp32, old); }), "no error");
  EXPECT_EQ(error_message([&] { check_bf16(Precision::kBf16, GraphicsCard{.major = 8}); }), "no error");
}

TEST(Precision, ThreeProductsAreForAmx) {
  const bool fast = gains_from_bf16x3(kCpu);
  EXPECT_EQ(resolve_precision(Precision::kBf16x3, kCpu), fast ? Precision::kBf16x3 : Precision::kFp32);
  EXPECT_EQ(resolve_precision(Precision::kBf16x3, c10::Device("cuda:0")), Precision::kFp32);
  std::string said;
  const NoticeHandler before = set_notice_handler([&](const std::string& sentence) { said += sentence; });
  warn_if_no_faster(Precision::kBf16x3, kCpu);
  set_notice_handler(before);
  EXPECT_EQ(said.find("AMX") == std::string::npos, fast);
  EXPECT_TRUE(gains_from_bf16x3(std::string("flags\t\t: fpu avx512_bf16 amx_bf16\n")));
  EXPECT_FALSE(gains_from_bf16x3(std::string("flags\t\t: fpu avx512_bf16 amx_int8\n")));
}

TEST(Precision, OfAThreadEndsWithItsGuard) {
  const auto now = [] { return ComputeIn::current(at::kCPU); };
  {
    const ComputeIn halves(Precision::kBf16x3, at::kCPU);
    EXPECT_EQ(now(), Precision::kBf16x3);
    EXPECT_EQ(at::linear(at::ones({2, 2}), at::ones({2, 2})).scalar_type(), at::kFloat);
    {
      const ComputeIn bf16(Precision::kBf16, at::kCPU);
      EXPECT_EQ(now(), Precision::kBf16);
    }
    EXPECT_EQ(now(), Precision::kBf16x3);
    const ComputeIn fp32(Precision::kFp32, at::kCPU);
    EXPECT_EQ(now(), Precision::kFp32);
  }
  EXPECT_EQ(now(), Precision::kFp32);
}

TEST(Precision, InstructionsThatGainNothingDoNotCount) {
  const auto cpu = [](const std::string& vendor, const std::string& flags) {
    return "processor\t: 0\nvendor_id\t: " + vendor + "\nflags\t\t: fpu avx512f " + flags + " sse2\n\nprocessor\t: 1\n";
  };
  EXPECT_TRUE(gains_from_bf16(cpu("AuthenticAMD", "avx512_bf16")));
  EXPECT_FALSE(gains_from_bf16(cpu("AuthenticAMD", "")));
  EXPECT_FALSE(gains_from_bf16(cpu("GenuineIntel", "avx512_bf16")));
  EXPECT_TRUE(gains_from_bf16(cpu("GenuineIntel", "avx512_bf16 amx_bf16")));
  EXPECT_TRUE(gains_from_bf16(std::string("Features\t: fp asimd bf16 i8mm\n")));
  EXPECT_FALSE(gains_from_bf16(std::string()));
}

// The second run happens in the backward pass, outside the guard of the first.
TEST(Precision, RecomputedPiecesRunTwiceInTheSame) {
  const Tensor weight = random_tensor({4, 4}, 1, at::kFloat).requires_grad_();
  std::vector<at::ScalarType> types;
  const auto piece = [&](const Tensor& in) {
    const Tensor out = at::linear(in, weight);
    types.push_back(out.scalar_type());
    return out.to(at::kFloat);
  };
  const Tensor x = random_tensor({3, 4}, 2, at::kFloat).requires_grad_();
  Tensor sum;
  {
    const ComputeIn bf16(Precision::kBf16, at::kCPU);
    sum = recomputed(piece, x).sum();
  }
  sum.backward();
  EXPECT_THAT(types, testing::ElementsAre(at::kBFloat16, at::kBFloat16));
}

}  // namespace
}  // namespace headshare
