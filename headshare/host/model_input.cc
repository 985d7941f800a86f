#include "headshare/host/model_input.h"

#include "headshare/base/error.h"
#include "headshare/base/files/input_paths.h"

namespace headshare {

LoadedModel load_model_on(const fs::path& path, c10::Device device) {
  LoadedModel loaded = load_model(path);
  loaded.model->to(device);
  return loaded;
}

void refuse_model_in_out(const std::string& option, const fs::path& model, const fs::path& out) {
  HS_CHECK(!reads_within({model.string()}, out), "--", option, " ", model.string(), " lies in --out ", out.string(),
           ", which the new run replaces; choose another --out");
}

}  // namespace headshare
