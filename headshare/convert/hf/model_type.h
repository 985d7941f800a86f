// A model type of Hugging Face transformers: what config.json calls "model_type", and all that headshare knows of it.
// Each family's file makes its rows; hf/model_types.h lists them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headshare/convert/foreign/foreign_model.h"
#include "headshare/convert/foreign/model_to_write.h"
#include "headshare/convert/hf/directory.h"
#include "headshare/convert/hf/shape.h"

namespace headshare {

// A directory has files with this content.
struct HfContent {
  nlohmann::json config = {};
  NamedTensors tensors = {};
  nlohmann::json generation = {};    // generation_config.json; null: there is none
  nlohmann::json preprocessor = {};  // preprocessor_config.json, likewise
};

struct HfModelType {
  std::string name;                 // "gpt2"
  std::vector<std::string> models;  // what people call the models of this type: "GPT-2"
  std::string kind;                 // of our models: ModelKind::name()

  // Reads the shape from a configuration alone. Throws Error, naming the key, for one that we cannot reproduce.
  HfShape (*shape)(const HfConfig& config, const std::string& type);

  // Maps the tensors of a directory. Throws Error for those that are missing, unknown or of another shape. Null: only
  // what such a model costs is known.
  ForeignModel (*open)(const std::shared_ptr<const HfDirectory>& directory) = nullptr;

  // Reads a directory that content() filled, for checks; null: open() does.
  ForeignModel (*read_back)(const std::shared_ptr<const HfDirectory>& directory) = nullptr;

  // The sentences say what keeps a model of the row's kind out of such tensors, and name the option and the way out;
  // none where the model has a place there. Null: no model is written as this type.
  std::vector<std::string> (*objections)(const ModelOptions& options) = nullptr;

  // Another row holds whatever this one does: it is written only where it is asked for by its name.
  bool only_by_name = false;

  // The files of a model that objections() has none against. transformers computes the same from them.
  HfContent (*content)(const ModelToWrite& model) = nullptr;
};

}  // namespace headshare
