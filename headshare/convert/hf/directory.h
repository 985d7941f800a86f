// A model directory as Hugging Face transformers writes it: config.json, and the tensors in
// model.safetensors or in the shards that model.safetensors.index.json names. All of it is untrusted.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headshare/convert/foreign/foreign_model.h"
#include "headshare/convert/hf/config.h"
#include "headshare/data/safetensors.h"

namespace headshare {

class HfDirectory : public HfConfig {
 public:
  // Throws Error when there is no config.json, no safetensors file, or one of them is damaged.
  explicit HfDirectory(const ForeignSource& source);

  // Tensors by name, from all shards.
  const TensorMap& tensors() const { return tensors_; }
  // The values of one, in float32. Throws Error when it holds anything but finite floating-point numbers.
  Tensor read(const std::string& name) const;

  const fs::path& path() const { return path_; }
  // The tokenizer that the user names in place of the directory's; may be null.
  const std::shared_ptr<Tokenizer>& given_tokenizer() const { return given_tokenizer_; }

 private:
  void open_shards(const fs::path& index);

  fs::path path_;
  std::shared_ptr<Tokenizer> given_tokenizer_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  TensorMap tensors_;  // views into files_
};

}  // namespace headshare
