#include "headshare/host/devices.h"

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/strings/number.h"

namespace headshare {
namespace {

using Kind = DeviceChoice::Kind;

constexpr const char* kRange = "auto|cpu|cuda|cuda:N";
constexpr int64_t kMostCards = 1024;
constexpr const char* kWayOut = "; use --device cpu, or auto";

std::string minor_of(const std::string& version) {
  const size_t first = version.find('.');
  return first == std::string::npos ? version : version.substr(0, version.find('.', first + 1));
}

std::string card_list(const CudaFacts& facts) {
  std::string text;
  for (int64_t i = 0; i < facts.usable; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool known = at < facts.driver.cards.size();
    text += join_text(i == 0 ? "" : ", ", "cuda:", i, known ? " " + facts.driver.cards[at].name : "");
  }
  return text;
}

std::string name_of(c10::Device card, const std::vector<GraphicsCard>& cards) {
  const auto at = static_cast<size_t>(std::max<int>(card.index(), 0));
  return at < cards.size() && !cards[at].name.empty() ? cards[at].name : "GPU";
}

}  // namespace

DeviceChoice parse_device(const std::string& name, const std::string& text) {
  if (text == "auto") return {};
  if (text == "cpu") return {.kind = Kind::kCpu};
  if (text == "cuda") return {.kind = Kind::kCuda};
  constexpr std::string_view kCard = "cuda:";
  const bool card = text.starts_with(kCard);
  const std::optional<int64_t> index = card ? number_in<int64_t>(text.substr(kCard.size())) : std::nullopt;
  HS_CHECK(index && *index >= 0 && *index < kMostCards, name, " must be one of ", kRange, ", with N from 0, not ",
           brief_text(text));
  return {.kind = Kind::kCuda, .index = index};
}

std::string device_text(const DeviceChoice& choice) {
  if (choice.kind == Kind::kAuto) return "auto";
  if (choice.kind == Kind::kCpu) return "cpu";
  return choice.index ? join_text("cuda:", *choice.index) : "cuda";
}

Field device_field(std::string name, DeviceChoice* target, std::string help) {
  Field made;
  made.name = std::move(name);
  made.help = std::move(help);
  made.range = kRange;
  made.parse = [target, name = made.name](const std::string& text) { *target = parse_device(name, text); };
  made.value = [target] { return nlohmann::json(device_text(*target)); };
  return made;
}

CudaFacts cuda_facts() {
  const auto& hooks = at::detail::getCUDAHooks();
  CudaFacts facts{.torch = TORCH_VERSION, .built_for = 0, .cudnn = 0, .usable = 0, .driver = {}};
  if (!hooks.hasCUDART()) return facts;
  facts.built_for = hooks.versionCUDART();
  facts.driver = cuda_driver();
  // libtorch warns of what why_no_card() says better.
  if (facts.driver.cards.empty()) return facts;
  facts.usable = hooks.deviceCount();
  if (hooks.hasCuDNN()) facts.cudnn = hooks.versionRuntimeCuDNN();
  return facts;
}

std::string why_no_card(const CudaFacts& facts) {
  const std::string libtorch = "libtorch " + facts.torch;
  if (facts.usable > 0) return "";
  if (facts.built_for == 0) return libtorch + " was built without CUDA";
  const std::string built = join_text(libtorch, " was built for CUDA ", cuda_version_text(facts.built_for));
  if (facts.driver.cuda == 0) return built + ", and this machine has no NVIDIA driver";
  // Within a major version, older drivers run what was built for newer CUDA.
  if (facts.driver.cuda / 1000 < facts.built_for / 1000) {
    return join_text(built, ", and this machine's driver ", facts.driver.version, " runs CUDA ",
                     cuda_version_text(facts.driver.cuda),
                     " at most: update the driver, or install a torch that is built for that CUDA");
  }
  if (facts.driver.cards.empty()) {
    return join_text(libtorch, " finds no CUDA device (driver ", facts.driver.version,
                     "): look whether this machine has a card, and at CUDA_VISIBLE_DEVICES");
  }
  return join_text(libtorch, " can use none of this machine's ", facts.driver.cards.size(), " cards (",
                   facts.driver.cards[0].name, ", driver ", facts.driver.version,
                   "): look whether `python3 -c 'import torch; torch.ones(1).cuda()'` says why");
}

c10::Device resolve_device(const DeviceChoice& choice, const CudaFacts& facts, int64_t current) {
  if (choice.kind == Kind::kCpu) return c10::Device(c10::kCPU);
  const std::string reason = why_no_card(facts);
  if (!reason.empty()) {
    HS_CHECK(choice.kind == Kind::kAuto, "--device ", device_text(choice), ": ", reason, kWayOut);
    return c10::Device(c10::kCPU);
  }
  const int64_t index = choice.index.value_or(current);
  HS_CHECK(index < facts.usable, "--device ", device_text(choice), ": this machine has ", facts.usable, " of them (",
           card_list(facts), ")", kWayOut);
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
}

void check_libtorch(const std::string& built, const std::string& loaded) {
  HS_CHECK(loaded.empty() || minor_of(built) == minor_of(loaded), "headshare was built with libtorch ", built,
           " and runs with ", loaded, ", and each minor version needs a headshare of its own; install torch ",
           minor_of(built), ", or build headshare with the installed one");
}

std::string loaded_libtorch() {
  constexpr std::string_view kKey = "TORCH_VERSION=";
  const std::string config = at::show_config();
  const size_t begin = config.find(kKey);
  if (begin == std::string::npos) return "";
  const size_t first = begin + kKey.size();
  return config.substr(first, config.find_first_of(", \n", first) - first);
}

std::string cudnn_version_text(int64_t version) {
  return join_text(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

nlohmann::ordered_json to_json(const CudaFacts& facts) {
  const auto version = [](int64_t number) { return number == 0 ? std::string() : cuda_version_text(number); };
  nlohmann::ordered_json cards = nlohmann::ordered_json::array();
  for (const GraphicsCard& card : facts.driver.cards) {
    cards.push_back({{"name", card.name},
                     {"memory_bytes", card.memory_bytes},
                     {"capability", join_text(card.major, ".", card.minor)},
                     {"processors", card.processors}});
  }
  return {{"built_for", version(facts.built_for)},
          {"cudnn", facts.cudnn == 0 ? "" : cudnn_version_text(facts.cudnn)},
          {"driver", facts.driver.version},
          {"driver_cuda", version(facts.driver.cuda)},
          {"cards", cards}};
}

std::string card_in_words(c10::Device card, const CudaFacts& facts) {
  return join_text(name_of(card, facts.driver.cards), ", driver ", facts.driver.version, ", CUDA ",
                   cuda_version_text(facts.built_for),
                   facts.cudnn == 0 ? "" : ", cuDNN " + cudnn_version_text(facts.cudnn));
}

nlohmann::ordered_json to_json(c10::Device device, const CudaFacts& facts) {
  nlohmann::ordered_json object = {{"device", device.str()}};
  if (device.is_cpu()) return object;
  object.update({{"card", name_of(device, facts.driver.cards)},
                 {"driver", facts.driver.version},
                 {"cuda", cuda_version_text(facts.built_for)},
                 {"cudnn", facts.cudnn == 0 ? "" : cudnn_version_text(facts.cudnn)}});
  return object;
}

std::string device_name(c10::Device device) { return device.is_cpu() ? "cpu" : name_of(device, cuda_driver().cards); }

}  // namespace headshare
