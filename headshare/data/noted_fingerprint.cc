#include "headshare/data/noted_fingerprint.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_text.h"

namespace headshare {

void note_fingerprint(const fs::path& file, const std::string& fingerprint, const std::string& changed) {
  const nlohmann::json found = {{"fingerprint", fingerprint}};
  if (!fs::exists(file)) return write_file(file, json_text(found, 2) + "\n");
  HS_CHECK(json_or_discarded(read_file(file)) == found, changed);
}

}  // namespace headshare
