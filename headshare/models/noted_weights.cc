#include "headshare/models/noted_weights.h"

#include "headshare/base/error.h"
#include "headshare/data/hash.h"
#include "headshare/data/noted_fingerprint.h"

namespace headshare {

std::string weights_fingerprint(const fs::path& checkpoint) {
  return content_hash(read_file(checkpoint / "model.safetensors"));
}

void note_weights(const fs::path& directory, const fs::path& checkpoint, const char* file) {
  note_fingerprint(
      directory / file, weights_fingerprint(checkpoint),
      join_text("the weights in ", checkpoint.string(), " are not those that ", directory.string(),
                " was begun with: the model was trained again, or replaced; use another --out, or --overwrite"));
}

}  // namespace headshare
