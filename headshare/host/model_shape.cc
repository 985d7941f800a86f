#include "headshare/host/model_shape.h"

#include "headshare/models/checkpoint.h"

namespace headshare {
namespace {

// Tells whether `path` is a model of ours; else only its config.json is meant.
bool is_headshare_model(const fs::path& path) {
  const fs::path config = fs::is_directory(path) ? path / "config.json" : path;
  if (!path_exists(config)) return path_exists(path / "checkpoints");
  return HfConfig(config).value("format").is_string();  // a config.json of Hugging Face has no such key
}

}  // namespace

HfShape read_shape(const fs::path& path) {
  if (!is_headshare_model(path)) return read_hf_shape(path);
  const fs::path directory = fs::is_directory(path) ? path : fs::absolute(path).parent_path();
  return {.options = read_options(find_checkpoint(directory)), .model_type = "headshare"};
}

void take_shape(const HfShape& shape, CostOptions* options) {
  options->counts = shape.counts;
  take_model(shape.options, options);
}

}  // namespace headshare
