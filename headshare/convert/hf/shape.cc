#include "headshare/convert/hf/shape.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/convert/hf/model_types.h"

namespace headshare {

std::vector<std::string> shape_types() {
  std::vector<std::string> types;
  for (const HfModelType& type : hf_model_types()) types.push_back(type.name);
  std::sort(types.begin(), types.end());
  return types;
}

HfShape read_hf_shape(const fs::path& path) {
  HS_CHECK(path_exists(path), "no model at ", path.string(), ": it does not exist");
  const bool directory = fs::is_directory(path);
  const fs::path file = directory ? path / "config.json" : path;
  HS_CHECK(path_exists(file), path.string(), " has no config.json: it is not the directory of a model");
  const HfConfig config(file);
  const nlohmann::json value = model_type_of(config);
  const std::string where = config.config_key("model_type");
  const std::vector<std::string> known = shape_types();
  HS_CHECK(!value.is_null(), where, " is missing: this is not the configuration of a Hugging Face model; known are ",
           list_text(known));
  const std::string& name = json_string(value, where);
  for (const HfModelType& type : hf_model_types()) {
    if (type.name == name) return type.shape(config, name);
  }
  const std::string reason = why_type_is_missing(name);
  throw Error(join_text(where, " is ", brief_text(name), reason.empty() ? did_you_mean(name, known) : reason,
                        "; headshare knows ", list_text(known)));
}

}  // namespace headshare
