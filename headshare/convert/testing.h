// For tests only: a small GPT-2 as transformers would save it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "headshare/base/testing.h"
#include "headshare/models/checkpoint.h"
#include "headshare/ops/testing.h"

namespace headshare {

// A Hugging Face directory in memory; change it, then write it.
struct FakeGpt2 {
  static constexpr int64_t kV = 11, kP = 8, kE = 6, kF = 24, kLayers = 2;

  nlohmann::json config = {{"model_type", "gpt2"}, {"vocab_size", kV},  {"n_positions", kP},  {"n_embd", kE},
                           {"n_layer", kLayers},   {"n_head", 2},       {"resid_pdrop", 0.1}, {"embd_pdrop", 0.1},
                           {"attn_pdrop", 0.25},   {"n_inner", nullptr}};
  NamedTensors tensors;

  FakeGpt2() {
    put("wte.weight", {kV, kE});
    put("wpe.weight", {kP, kE});
    for (int64_t i = 0; i < kLayers; ++i) {
      const std::string block = join_text("h.", i, ".");
      put_pair(block + "ln_1", {kE});
      put_pair(block + "attn.c_attn", {kE, 3 * kE});
      put_pair(block + "attn.c_proj", {kE, kE});
      put_pair(block + "ln_2", {kE});
      put_pair(block + "mlp.c_fc", {kE, kF});
      put_pair(block + "mlp.c_proj", {kF, kE});
    }
    put_pair("ln_f", {kE});
  }

  void put(const std::string& name, const std::vector<int64_t>& shape) {
    tensors["transformer." + name] = random_tensor(shape, stream_key(1, name), at::kFloat, 0.3);
  }

  Tensor& at(const std::string& name) { return tensors.at("transformer." + name); }

  void write(const fs::path& directory) const {
    make_directories(directory);
    write_file(directory / "config.json", config.dump());
    write_tensors(directory / "model.safetensors", tensors);
  }

 private:
  void put_pair(const std::string& name, const std::vector<int64_t>& shape) {
    put(name + ".weight", shape);
    put(name + ".bias", {shape.back()});
  }
};

}  // namespace headshare
