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
  // "" where a model of these options has a place in the format; else a sentence that names the option and the way out.
  std::function<std::string(const ModelOptions&)> why_not_write = {};
  // Fills a directory that exists. Throws Error for values that are not finite, and for tokenizers that the format has
  // no place for.
  std::function<void(const ModelToWrite&, const fs::path& directory)> write = {};
};

}  // namespace headshare
