#include "headshare/host/devices.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const GraphicsCard kH100{.name = "NVIDIA H100", .memory_bytes = int64_t{80} << 30, .major = 9, .minor = 0};

// A machine with these cards, whose driver and libtorch fit.
CudaFacts machine_with(std::vector<GraphicsCard> cards) {
  const auto count = static_cast<int64_t>(cards.size());
  return {.torch = "2.11.0",
          .built_for = 13000,
          .cudnn = 91900,
          .usable = count,
          .driver = {.version = "580.95.05", .cuda = 13000, .cards = std::move(cards)}};
}

c10::Device resolved(const std::string& text, const CudaFacts& facts, int64_t current = 0) {
  return resolve_device(parse_device("device", text), facts, current);
}

std::string refusal(const std::string& text, const CudaFacts& facts) {
  return error_message([&] { resolved(text, facts); });
}

TEST(Devices, AreReadAndWrittenAlike) {
  for (const char* text : {"auto", "cpu", "cuda", "cuda:0", "cuda:7"}) {
    EXPECT_EQ(device_text(parse_device("device", text)), text);
  }
  EXPECT_EQ(parse_device("device", "cuda:1"), (DeviceChoice{.kind = DeviceChoice::Kind::kCuda, .index = 1}));
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda: 1", "cuda:1,cuda:2", "cuda:99999", "CPU "}) {
    EXPECT_THAT(error_message([&] { parse_device("device", text); }), HasSubstr("auto|cpu|cuda|cuda:N")) << text;
  }
}

TEST(Devices, TheChoiceStandsForADevice) {
  const CudaFacts two = machine_with({kH100, kH100});
  EXPECT_TRUE(resolved("cpu", two).is_cpu());
  EXPECT_EQ(resolved("auto", two).str(), "cuda:0");
  EXPECT_EQ(resolved("cuda", two, /*current=*/1).str(), "cuda:1");
  EXPECT_EQ(resolved("cuda:1", two).str(), "cuda:1");
  EXPECT_THAT(refusal("cuda:2", two),
              AllOf(HasSubstr("--device cuda:2: this machine has 2"), HasSubstr("cuda:1 NVIDIA H100")));
}

TEST(Devices, AMachineWithoutACardSaysWhy) {
  CudaFacts facts = machine_with({});
  facts.driver = {};
  EXPECT_THAT(refusal("cuda", facts), AllOf(HasSubstr("--device cuda: libtorch 2.11.0 was built for CUDA 13.0"),
                                            HasSubstr("no NVIDIA driver"), HasSubstr("--device cpu")));
  EXPECT_TRUE(resolved("auto", facts).is_cpu());
  facts.built_for = 0;
  EXPECT_THAT(refusal("cuda:0", facts), HasSubstr("was built without CUDA"));
  EXPECT_THAT(refusal("cuda", machine_with({})), HasSubstr("finds no CUDA device (driver 580.95.05)"));
}

TEST(Devices, ADriverThatIsTooOldIsNamed) {
  CudaFacts facts = machine_with({kH100});
  facts.usable = 0;
  facts.driver.version = "535.104.05";
  facts.driver.cuda = 12020;
  EXPECT_THAT(refusal("cuda", facts), AllOf(HasSubstr("built for CUDA 13.0"), HasSubstr("driver 535.104.05"),
                                            HasSubstr("runs CUDA 12.2 at most"), HasSubstr("update the driver")));
  facts.driver.cuda = 13000;
  EXPECT_THAT(refusal("cuda", facts), HasSubstr("can use none of this machine's 1 cards (NVIDIA H100"));
}

TEST(Devices, MeasurementsNameTheCard) {
  GraphicsCard other = kH100;
  other.name = "NVIDIA A100";
  CudaFacts facts = machine_with({kH100, other});
  EXPECT_EQ(card_in_words(c10::Device("cuda:1"), facts), "NVIDIA A100, driver 580.95.05, CUDA 13.0, cuDNN 9.19.0");
  EXPECT_EQ(to_json(c10::Device("cuda:0"), facts).dump(),
            R"({"device":"cuda:0","card":"NVIDIA H100","driver":"580.95.05","cuda":"13.0","cudnn":"9.19.0"})");
  EXPECT_EQ(to_json(c10::Device("cpu"), facts).dump(), R"({"device":"cpu"})");
  facts.cudnn = 0;
  EXPECT_EQ(card_in_words(c10::Device("cuda:7"), facts), "GPU, driver 580.95.05, CUDA 13.0");
}

TEST(Devices, AnotherLibtorchThanTheBuildsIsRefused) {
  EXPECT_EQ(error_message([] { check_libtorch("2.11.0", "2.11.1+cu130"); }), "no error");
  EXPECT_EQ(error_message([] { check_libtorch("2.11.0", ""); }), "no error");
  EXPECT_THAT(
      error_message([] { check_libtorch("2.11.0", "2.13.0"); }),
      AllOf(HasSubstr("built with libtorch 2.11.0"), HasSubstr("runs with 2.13.0"), HasSubstr("install torch 2.11")));
  EXPECT_THAT(loaded_libtorch(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+.*"));
}

TEST(Devices, VersionsOfCudnnAreText) { EXPECT_EQ(cudnn_version_text(91900), "9.19.0"); }

TEST(Devices, TheCpuHasItsOwnName) { EXPECT_EQ(device_name(c10::Device(c10::kCPU)), "cpu"); }

}  // namespace
}  // namespace headshare
