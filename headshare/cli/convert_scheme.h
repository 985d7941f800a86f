// headshare convert MODEL OUT --to SCHEME: a trained model whose heads are made to share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/convert/output.h"
#include "headshare/convert/reparametrise/compress_model.h"

namespace headshare {

struct SharingOptions {
  CompressionOptions compression;
  std::vector<std::string> sample_text;
  int64_t sample_tokens = 20000;
  bool json = false;
};

Fields fields(SharingOptions& options);

// The schemes that --to takes.
std::vector<std::string> sharing_schemes();

// Converts the model at `source`, a checkpoint or run directory, and writes it to `out`, with a table of the layers or
// one JSON object on standard output. The source is not touched. Asked to stop, it writes what it has, a whole model,
// and answers kInterrupted. Throws UsageError for options that exclude each other.
int convert_scheme(const std::string& source, const std::string& out, Overwrite overwrite, SharingOptions options);

}  // namespace headshare
