#include "headshare/convert/hf/directory.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/convert/hf/families/hashformer.h"
#include "headshare/models/checkpoint.h"

namespace headshare {
namespace {

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// config.json of a directory.
fs::path config_in(const fs::path& path) {
  std::error_code ignored;
  HS_CHECK(fs::is_directory(path, ignored), path.string(),
           " is not a directory; wanted is one with config.json and model.safetensors");
  const fs::path config = path / "config.json";
  HS_CHECK(is_file(config), path.string(), " has no config.json: it is not a Hugging Face model directory");
  return config;
}

// For a directory with pytorch_model.bin. transformers does not have the classes of HashFormers.
std::string way_to_safetensors(const HfDirectory& directory) {
  if (directory.architecture() == kThreeWayClass ||
      hashformer_embedding(directory, hashes_words(directory)) != TokenEmbeddingKind::kTable) {
    return "with torch, in that directory: python -c \"import torch, safetensors.torch as s; "
           "w = torch.load('pytorch_model.bin', weights_only=True); "
           "s.save_file({k: v.clone() for k, v in w.items()}, 'model.safetensors')\"";
  }
  return "with transformers: " + directory.architecture().value_or("AutoModel") +
         ".from_pretrained(DIR).save_pretrained(NEW_DIR)";
}

}  // namespace

HfDirectory::HfDirectory(const ForeignSource& source)
    : HfConfig(config_in(source.path)), path_(source.path), given_tokenizer_(source.tokenizer) {
  if (is_file(path_ / kWeights)) {
    files_.push_back(std::make_unique<SafetensorsFile>(path_ / kWeights));
    tensors_ = files_.back()->tensors();
    return;
  }
  HS_CHECK(is_file(path_ / kIndex), path_.string(), " has neither ", kWeights, " nor ", kIndex,
           "; weights in another form become safetensors ", way_to_safetensors(*this));
  open_shards(path_ / kIndex);
}

void HfDirectory::open_shards(const fs::path& index_path) {
  const ShardIndex index = read_shard_index(index_path);
  for (const fs::path& file : index.files) {
    files_.push_back(std::make_unique<SafetensorsFile>(file));
    for (const auto& [name, view] : files_.back()->tensors()) {
      const auto listed = index.file_of.find(name);
      HS_CHECK(listed != index.file_of.end() && listed->second == file, index_path.string(), ": ",
               file.filename().string(), " holds tensor '", name, "', which the index does not place there");
      tensors_.emplace(name, view);
    }
  }
  for (const auto& [name, file] : index.file_of) {
    HS_CHECK(tensors_.contains(name), index_path.string(), ": tensor '", name, "' is not in ",
             file.filename().string());
  }
}

Tensor HfDirectory::read(const std::string& name) const {
  const std::string where = join_text(path_.string(), ": tensor '", name, "'");
  const Tensor values = copy_tensor(tensors_.at(name), where);
  HS_CHECK(values.is_floating_point(), where, " has type ", dtype_name(tensors_.at(name).dtype),
           "; weights must be F32, F16, BF16 or F64: save the model without quantisation");
  const Tensor floats = values.to(at::kFloat);
  check_finite(floats, where, "the model is damaged: convert an earlier checkpoint of it");
  return floats;
}

}  // namespace headshare
