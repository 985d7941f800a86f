// Says where a program computes: what --device asks for, what this machine and its libtorch have, and what becomes of
// the two. Functions that decide take the facts, so that every machine can be tested on any.
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>

#include "headshare/base/cuda_driver.h"
#include "headshare/base/options/field.h"

namespace headshare {

struct DeviceChoice {
  enum class Kind { kAuto, kCpu, kCuda };

  Kind kind = Kind::kAuto;
  std::optional<int64_t> index = {};  // of the card; nothing: the one that the process uses already, else the first

  bool may_be_cuda() const { return kind != Kind::kCpu; }
  bool operator==(const DeviceChoice&) const = default;
};

// Reads "auto", "cpu", "cuda" or "cuda:1"; `name` is the option's. Throws Error.
DeviceChoice parse_device(const std::string& name, const std::string& text);
std::string device_text(const DeviceChoice& choice);  // the way back

Field device_field(std::string name, DeviceChoice* target, std::string help);

// These are the facts that decide whether a program can compute on a card.
struct CudaFacts {
  std::string torch;      // the version of libtorch: "2.13.0"
  int64_t built_for = 0;  // the CUDA that libtorch was built for, as in CudaDriver::cuda; 0: none
  int64_t cudnn = 0;      // the version of cuDNN in one number: 91900 for 9.19.0; 0: none
  int64_t usable = 0;     // how many cards libtorch can use
  CudaDriver driver;
};

// Asks libtorch, and the driver where libtorch has CUDA.
CudaFacts cuda_facts();

// Returns a sentence on why no card can be used, with what to do about it; "" where some can.
std::string why_no_card(const CudaFacts& facts);

// Returns the device that the choice stands for. `current` is the number of the card that the process uses already.
// Throws Error where the choice names a card that cannot be used.
c10::Device resolve_device(const DeviceChoice& choice, const CudaFacts& facts, int64_t current);

// Throws Error where the libtorch that was loaded is of another minor version than the one that headshare was built
// with, whose binary interface it needs. Versions are "2.13.0" or "2.13.0+cpu".
void check_libtorch(const std::string& built, const std::string& loaded);

// Returns the version of the libtorch that was loaded; "" where it does not tell.
std::string loaded_libtorch();

// Returns "9.19.0" for 91900.
std::string cudnn_version_text(int64_t version);

// Returns {"built_for", "cudnn", "driver", "driver_cuda", "cards": [{"name", "memory_bytes", "capability",
// "processors"}]}; versions are texts, "" where there is none.
nlohmann::ordered_json to_json(const CudaFacts& facts);

// Returns "NVIDIA H100 80GB HBM3, driver 580.95.05, CUDA 13.0, cuDNN 9.19.0": the card, and what computes on it.
std::string card_in_words(c10::Device card, const CudaFacts& facts);

// Returns {"device"}, on a card with {"card", "driver", "cuda", "cudnn"}, for the rows of measurements.
nlohmann::ordered_json to_json(c10::Device device, const CudaFacts& facts);

// Returns the model of the card that a device is, as the driver names it; "cpu" for the CPU.
std::string device_name(c10::Device device);

}  // namespace headshare
