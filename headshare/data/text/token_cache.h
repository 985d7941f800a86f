// This cache tokenises a text once and maps the result from its directory ever after.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/data/text/data_options.h"
#include "headshare/data/text/token_data.h"

namespace headshare {

struct DataProgress {
  std::string_view stage;         // "training a tokenizer", "reading" (looking for a cached copy), "tokenising"
  uint64_t done = 0;              // bytes of the inputs as stored
  std::optional<uint64_t> total;  // unknown for standard input
};

// This is called about once per MiB. It may throw (Interrupted) to stop: no partial file is left.
using Progress = std::function<void(const DataProgress&)>;

// Returns $HEADSHARE_CACHE, else $XDG_CACHE_HOME/headshare, else $HOME/.cache/headshare. Throws Error when none of
// these variables is set.
fs::path default_cache_directory();

// Returns how TextSource is to read `inputs` for this tokenizer: byte tokenizers take any bytes.
TextSourceOptions source_options(const std::vector<std::string>& inputs, const DataOptions& options,
                                 const Tokenizer& tokenizer);

// Opens the tokens of `inputs` (see TextSource; DataOptions::text and its siblings are not looked at). Memory is
// constant in the size of the text. The cache file is named by the content of the inputs, how they are read, and the
// tokenizer, so that moving or renaming a corpus does not matter and any change is seen; several processes and threads
// may call this at once. A damaged cache file is rebuilt with a notice. Standard input and pipes are tokenised each
// time, into a file that is deleted at once. Throws Error as TextSource does, when an input changes while it is read,
// and when the cache cannot be written.
TokenData open_tokens(const std::vector<std::string>& inputs, const DataOptions& options, const Tokenizer& tokenizer,
                      const Progress& progress = {});

}  // namespace headshare
