// A format of another program says how its models are read and how ours are written. headshare/convert/formats.h lists
// the formats.
#pragma once

#include <functional>
#include <string>

#include "headshare/convert/foreign/foreign_model.h"
#include "headshare/convert/foreign/model_to_write.h"
#include "headshare/convert/output/output_directory.h"

namespace headshare {

struct ForeignFormat {
  std::string name;  // for --from and --to
  std::string help;  // what is read: "a directory of ..."

  // Throws Error, naming the file and the way out, for whatever is damaged or has no place in ours. Null: the format is
  // only written.
  std::function<ForeignModel(const ForeignSource&)> open = {};

  // The rest is empty where the format is only read.
  std::string written = {};  // what is written: "an encoder of ... becomes ..."
  OutputKind output = {};    // the directories that may be replaced
  // These may stand behind the name in --to, "gpt2" of hf:gpt2: kinds of model in the format. The functions below get
  // one of these, or "" for the first that has a place for the model.
  std::vector<std::string> forms = {};
  // "" where a model of these options has a place in the format; else a sentence that names the option and the way out.
  std::function<std::string(const ModelOptions&, const std::string& form)> why_not_write = {};
  // These sentences say what programs that run the model keep for each token, and what else they lose or need.
  std::function<std::vector<std::string>(const ModelOptions&, const std::string& form)> losses = {};
  // Fills a directory that exists. Throws Error for values that are not finite, and for tokenizers that the format has
  // no place for.
  std::function<void(const ModelToWrite&, const std::string& form, const fs::path& directory)> write = {};
  // Reads what write() wrote, to check it.
  std::function<ForeignModel(const fs::path& directory)> read_back = {};
};

}  // namespace headshare
