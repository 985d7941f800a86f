// headshare convert MODEL OUT --to FORMAT writes a model as another program reads it.
#pragma once

#include <string>

#include "headshare/base/files/output_file.h"
#include "headshare/models/model_options.h"

namespace headshare {

struct ExportCall {
  std::string source, out;
  std::string to;     // a format, "hf", or one of its forms, "hf:gpt2"
  std::string words;  // a file, of encoders that hash words
  Overwrite overwrite = Overwrite::kNo;
  bool dry_run = false;
  bool verify = false;
};

// Writes the checkpoint or run directory `source`. What is lost is said before. Throws UsageError for an unknown
// format.
int convert_export(const ExportCall& call);

// "4 layers, d-model 256, ...": a model in a line.
std::string model_summary(const ModelOptions& options);

}  // namespace headshare
