#include "headshare/host/model_input.h"

#include <algorithm>

#include "headshare/base/error.h"

namespace headshare {

LoadedModel load_model_on(const fs::path& path, c10::Device device) {
  LoadedModel loaded = load_model(path);
  loaded.model->to(device);
  return loaded;
}

void refuse_model_in_out(const std::string& option, const fs::path& model, const fs::path& out) {
  const fs::path from = fs::weakly_canonical(model);
  const fs::path to = fs::weakly_canonical(out);
  const auto [end, rest] = std::mismatch(to.begin(), to.end(), from.begin(), from.end());
  HS_CHECK(end != to.end(), "--", option, " ", model.string(), " lies in --out ", out.string(),
           ", which the new run replaces; choose another --out");
}

}  // namespace headshare
