#include "headshare/models/noted_weights.h"

#include <nlohmann/json.hpp>

#include "headshare/base/error.h"
#include "headshare/data/hash.h"

namespace headshare {

void note_weights(const fs::path& directory, const fs::path& checkpoint) {
  const fs::path file = directory / kWeightsFile;
  const nlohmann::json found = {{"fingerprint", content_hash(read_file(checkpoint / "model.safetensors"))}};
  if (!fs::exists(file)) return write_file(file, found.dump(2) + "\n");
  HS_CHECK(nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false) == found, "the weights in ",
           checkpoint.string(), " are not those that ", directory.string(),
           " was begun with: the model was trained again, or replaced; use another --out, or --overwrite");
}

}  // namespace headshare
