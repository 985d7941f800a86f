#include "headshare/data/noted_fingerprint.h"

#include <nlohmann/json.hpp>

#include "headshare/base/error.h"

namespace headshare {

void note_fingerprint(const fs::path& file, const std::string& fingerprint, const std::string& changed) {
  const nlohmann::json found = {{"fingerprint", fingerprint}};
  if (!fs::exists(file)) return write_file(file, found.dump(2) + "\n");
  HS_CHECK(nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false) == found, changed);
}

}  // namespace headshare
