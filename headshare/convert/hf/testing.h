// For tests only: a small GPT-2, Llama, Qwen3, BERT, ModernBERT, MarianMT and so on as transformers would save them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "headshare/base/rng.h"
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

// The same for a LlamaForCausalLM, or its kin: 4 heads of width 6, 2 of keys.
struct FakeLlama {
  static constexpr int64_t kV = 11, kP = 8, kE = 12, kF = 10, kD = 6;

  nlohmann::json config;
  NamedTensors tensors;

  explicit FakeLlama(const std::string& type) {
    config = {{"model_type", type},        {"vocab_size", kV},        {"max_position_embeddings", kP},
              {"hidden_size", kE},         {"num_hidden_layers", 2},  {"num_attention_heads", 4},
              {"num_key_value_heads", 2},  {"intermediate_size", kF}, {"head_dim", kD},
              {"sliding_window", nullptr}, {"rms_norm_eps", 1e-6}};
    put("embed_tokens", {kV, kE});
    for (int64_t i = 0; i < 2; ++i) put_block(join_text("layers.", i, "."), type);
    put("norm", {kE});
    const bool tied = type == "gemma";
    if (!tied) tensors["lm_head.weight"] = random_tensor({kV, kE}, stream_key(1, "head"), at::kFloat, 0.3);
  }

  void put(const std::string& name, const std::vector<int64_t>& shape) {
    tensors["model." + name + ".weight"] = random_tensor(shape, stream_key(1, name), at::kFloat, 0.3);
  }
  Tensor& at(const std::string& name) { return tensors.at("model." + name + ".weight"); }

  void write(const fs::path& directory) const {
    make_directories(directory);
    write_file(directory / "config.json", config.dump());
    write_tensors(directory / "model.safetensors", tensors);
  }

 private:
  void put_block(const std::string& block, const std::string& type) {
    for (const auto& [part, rows] : {std::pair("q", 4 * kD), {"k", 2 * kD}, {"v", 2 * kD}}) {
      put(block + "self_attn." + part + "_proj", {rows, kE});
      const std::string bias = "model." + block + "self_attn." + part + "_proj.bias";
      if (type == "qwen2") tensors[bias] = random_tensor({rows}, stream_key(1, bias), at::kFloat, 0.3);
    }
    put(block + "self_attn.o_proj", {kE, 4 * kD});
    for (const char* norm : {"q_norm", "k_norm"}) {
      if (type == "qwen3") put(block + "self_attn." + norm, {kD});
    }
    for (const char* part : {"gate", "up"}) put(block + "mlp." + part + "_proj", {kF, kE});
    put(block + "mlp.down_proj", {kE, kF});
    for (const char* norm : {"input", "post_attention"}) put(block + norm + "_layernorm", {kE});
  }
};

// The same for a ModernBertForMaskedLM as transformers 4 saves it.
struct FakeModernBert {
  static constexpr int64_t kV = 11, kE = 12, kF = 10, kLayers = 4;

  nlohmann::json config = {{"model_type", "modernbert"}, {"architectures", {"ModernBertForMaskedLM"}},
                           {"vocab_size", kV},           {"hidden_size", kE},
                           {"intermediate_size", kF},    {"num_hidden_layers", kLayers},
                           {"num_attention_heads", 2},   {"max_position_embeddings", 20},
                           {"local_attention", 6},       {"global_attn_every_n_layers", 2}};
  NamedTensors tensors;

  FakeModernBert() {
    put("model.embeddings.tok_embeddings.weight", {kV, kE});
    put("model.embeddings.norm.weight", {kE});
    for (int64_t i = 0; i < kLayers; ++i) {
      const std::string layer = join_text("model.layers.", i, ".");
      if (i > 0) put(layer + "attn_norm.weight", {kE});
      put(layer + "attn.Wqkv.weight", {3 * kE, kE});
      put(layer + "attn.Wo.weight", {kE, kE});
      put(layer + "mlp_norm.weight", {kE});
      put(layer + "mlp.Wi.weight", {2 * kF, kE});
      put(layer + "mlp.Wo.weight", {kE, kF});
    }
    for (const char* name : {"model.final_norm.weight", "head.norm.weight"}) put(name, {kE});
    put("head.dense.weight", {kE, kE});
    put("decoder.bias", {kV});
  }

  void put(const std::string& name, const std::vector<int64_t>& shape) {
    tensors[name] = random_tensor(shape, stream_key(1, name), at::kFloat, 0.3);
  }

  void write(const fs::path& directory) const {
    make_directories(directory);
    write_file(directory / "config.json", config.dump());
    write_tensors(directory / "model.safetensors", tensors);
  }
};

// The same for a BertForMaskedLM.
struct FakeBert {
  static constexpr int64_t kV = 11, kP = 8, kE = 6, kF = 10, kLayers = 2;

  nlohmann::json config = {{"model_type", "bert"},          {"vocab_size", kV},
                           {"max_position_embeddings", kP}, {"hidden_size", kE},
                           {"num_hidden_layers", kLayers},  {"num_attention_heads", 2},
                           {"intermediate_size", kF},       {"type_vocab_size", 3},
                           {"hidden_dropout_prob", 0.2},    {"attention_probs_dropout_prob", 0.25}};
  NamedTensors tensors;

  FakeBert() {
    put("bert.embeddings.word_embeddings.weight", {kV, kE});
    put("bert.embeddings.position_embeddings.weight", {kP, kE});
    put("bert.embeddings.token_type_embeddings.weight", {3, kE});
    put_pair("bert.embeddings.LayerNorm", {kE});
    for (int64_t i = 0; i < kLayers; ++i) {
      const std::string block = join_text("bert.encoder.layer.", i, ".");
      for (const char* part : {"self.query", "self.key", "self.value", "output.dense"}) {
        put_pair(block + "attention." + part, {kE, kE});
      }
      put_pair(block + "attention.output.LayerNorm", {kE});
      put_pair(block + "intermediate.dense", {kF, kE});
      put_pair(block + "output.dense", {kE, kF});
      put_pair(block + "output.LayerNorm", {kE});
    }
    put_pair("cls.predictions.transform.dense", {kE, kE});
    put_pair("cls.predictions.transform.LayerNorm", {kE});
    put("cls.predictions.bias", {kV});
  }

  void put(const std::string& name, const std::vector<int64_t>& shape) {
    tensors[name] = random_tensor(shape, stream_key(1, name), at::kFloat, 0.3);
  }
  void put_pair(const std::string& name, const std::vector<int64_t>& shape) {
    put(name + ".weight", shape);
    put(name + ".bias", {shape.front()});
  }

  void write(const fs::path& directory) const {
    make_directories(directory);
    write_file(directory / "config.json", config.dump());
    write_tensors(directory / "model.safetensors", tensors);
  }
};

// The same for a MarianMTModel, or a (M)BartForConditionalGeneration: 2 + 1 layers.
struct FakeTranslator {
  static constexpr int64_t kV = 11, kP = 8, kE = 6, kF = 10;

  nlohmann::json config;
  NamedTensors tensors;

  explicit FakeTranslator(const std::string& type) {
    config = {{"model_type", type},
              {"vocab_size", kV},
              {"max_position_embeddings", kP},
              {"d_model", kE},
              {"encoder_layers", 2},
              {"decoder_layers", 1},
              {"encoder_attention_heads", 2},
              {"encoder_ffn_dim", kF},
              {"decoder_attention_heads", 2},
              {"decoder_ffn_dim", kF},
              {"dropout", 0.2},
              {"attention_dropout", 0.25},
              {"decoder_start_token_id", 10},
              {"eos_token_id", 0}};
    put("model.shared.weight", {kV, kE});
    put("final_logits_bias", {1, kV});
    for (const std::string side : {"encoder", "decoder"}) {
      if (type != "marian") {
        put("model." + side + ".embed_positions.weight", {kP + 2, kE});
        put_pair("model." + side + ".layernorm_embedding", {kE});
      }
      if (type == "mbart") put_pair("model." + side + ".layer_norm", {kE});
      const int64_t layers = side == "encoder" ? 2 : 1;
      for (int64_t i = 0; i < layers; ++i) put_block(join_text("model.", side, ".layers.", i, "."), side == "decoder");
    }
  }

  void put(const std::string& name, const std::vector<int64_t>& shape) {
    tensors[name] = random_tensor(shape, stream_key(1, name), at::kFloat, 0.3);
  }
  void put_pair(const std::string& name, const std::vector<int64_t>& shape) {
    put(name + ".weight", shape);
    put(name + ".bias", {shape.front()});
  }

  void write(const fs::path& directory) const {
    make_directories(directory);
    write_file(directory / "config.json", config.dump());
    write_tensors(directory / "model.safetensors", tensors);
  }

 private:
  void put_block(const std::string& block, bool with_cross) {
    for (const std::string attention : {"self_attn", "encoder_attn"}) {
      if (attention == "encoder_attn" && !with_cross) continue;
      for (const char* part : {"q", "k", "v", "out"}) put_pair(block + attention + "." + part + "_proj", {kE, kE});
      put_pair(block + attention + "_layer_norm", {kE});
    }
    put_pair(block + "fc1", {kF, kE});
    put_pair(block + "fc2", {kE, kF});
    put_pair(block + "final_layer_norm", {kE});
  }
};

}  // namespace headshare
