#include "headshare/cli/hash_tokenizers.h"

#include "headshare/base/error.h"
#include "headshare/text/train_tokenizer.h"

namespace headshare {

std::unique_ptr<Tokenizer> make_hash_tokenizer(const std::string& name, const std::string& merges) {
  HS_CHECK(merges.empty() || name == "hash-lsh", "--hash-merges is for --tokenizer hash-lsh");
  TokenizerOptions options{.hash_merges = merges};
  if (name == "hash-md") {
    options.kind = TokenizerKind::kHashMd;
  } else if (name == "hash-lsh") {
    options.kind = TokenizerKind::kHashLsh;
  } else {
    return nullptr;
  }
  return train_tokenizer(options, [](std::string*) { return false; });
}

}  // namespace headshare
