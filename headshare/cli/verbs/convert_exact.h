// headshare convert MODEL OUT --to SCHEME --exact rewrites a model's heads without changing what it computes.
#pragma once

#include <string>

#include "headshare/base/files/output_file.h"
#include "headshare/cli/arguments/args.h"

namespace headshare {

// Throws Error for options about approximations.
void check_exact_options(const Arguments& arguments);

// Rewrites the model at `source`, a checkpoint or run directory, as the scheme that `to` names ("mqa", "gqa:4") and
// writes it to `out`, with what was proved on standard output. Throws UsageError for another scheme.
int convert_exact(const std::string& source, const std::string& out, const std::string& to, Overwrite overwrite,
                  bool json);

}  // namespace headshare
