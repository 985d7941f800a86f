#include "headshare/convert/hf/mapping.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/base/nearest.h"

namespace headshare {

HfMapping::HfMapping(std::shared_ptr<const HfDirectory> directory,
                     const std::function<std::string(const std::string&)>& plain_name)
    : directory_(std::move(directory)) {
  for (const auto& [full, view] : directory_->tensors()) {
    const std::string name = plain_name(full);
    const auto [found, fresh] = left_.emplace(name, full);
    HS_CHECK(fresh, where(), ": tensor '", name, "' stands twice, as '", found->second, "' and as '", full, "'");
  }
}

std::string HfMapping::take(const std::string& name, const std::vector<int64_t>& shape) {
  const auto found = left_.find(name);
  if (found == left_.end()) {
    std::vector<std::string> names;
    for (const auto& item : left_) names.push_back(item.first);
    throw Error(join_text(where(), ": tensor '", name, "' is missing", did_you_mean(name, names)));
  }
  const std::string full = found->second;
  left_.erase(found);
  const std::vector<int64_t>& actual = directory_->tensors().at(full).shape;
  HS_CHECK(actual == shape, where(), ": tensor '", full, "' has shape ", at::IntArrayRef(actual),
           ", the configuration asks for ", at::IntArrayRef(shape));
  return full;
}

void HfMapping::copy(const std::string& name, const std::vector<int64_t>& shape, const std::string& target) {
  const std::string full = take(name, shape);
  add(full, "", target, [from = directory_, full] { return from->read(full); });
}

void HfMapping::add(const std::string& full, const std::string& taken, const std::string& target,
                    std::function<Tensor()> read) {
  mapped_.push_back({full, taken, target, std::move(read)});
}

void HfMapping::leave_out(const std::string& name) {
  const auto found = left_.find(name);
  if (found == left_.end()) return;
  unused_.push_back(found->second);
  left_.erase(found);
}

void HfMapping::leave_out_copy(const std::string& name, const std::vector<int64_t>& shape, const std::string& of,
                               const std::string& way_out) {
  if (!has(name)) return;
  const std::string full = take(name, shape);
  HS_CHECK(at::equal(directory_->read(full), directory_->read(of)), where(), ": tensor '", full, "' differs from '", of,
           "', ", way_out);
  unused_.push_back(full);
}

void HfMapping::finish(const std::string& what, ForeignModel* foreign) {
  HS_CHECK(left_.empty(), where(), ": ", left_.size(), " tensors are not part of the ", what,
           " that config.json describes, the first is '", left_.begin()->second, "'");
  foreign->tensors = std::move(mapped_);
  foreign->unused = std::move(unused_);
}

ActivationKind read_activation(const HfDirectory& directory, const std::string& key, ActivationKind otherwise) {
  static const std::map<std::string, ActivationKind> kKnown = {{"gelu_new", ActivationKind::kGeluTanh},
                                                               {"gelu_pytorch_tanh", ActivationKind::kGeluTanh},
                                                               {"gelu_python_tanh", ActivationKind::kGeluTanh},
                                                               {"gelu_fast", ActivationKind::kGeluTanh},
                                                               {"gelu", ActivationKind::kGeluErf},
                                                               {"gelu_python", ActivationKind::kGeluErf},
                                                               {"relu", ActivationKind::kRelu}};
  const nlohmann::json& value = directory.value(key);
  if (value.is_null()) return otherwise;
  const std::string where = directory.config_key(key);
  const auto found = kKnown.find(json_string(value, where));
  HS_CHECK(found != kKnown.end(), where, " is ", brief_json(value),
           ", which headshare does not have; it reads gelu_new, gelu_pytorch_tanh, gelu_fast, gelu and relu");
  return found->second;
}

void refuse_other_classes(const HfDirectory& directory, const std::vector<std::string>& known) {
  const std::optional<std::string> name = directory.architecture();
  if (!name || std::find(known.begin(), known.end(), *name) != known.end()) return;
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
  throw Error(join_text(directory.config_key("architectures"), " names ", brief_text(*name),
                        ", which headshare cannot reproduce", did_you_mean(*name, known), "; it reads ", list,
                        ". To convert the model without its head, save that with transformers: "
                        "AutoModel.from_pretrained(DIR).save_pretrained(NEW_DIR)"));
}

void refuse_what_we_lack(const HfDirectory& directory) {
  HS_CHECK(!directory.flag("add_cross_attention", false), directory.config_key("add_cross_attention"),
           " is true: a model of one text has nothing else to attend to; convert a model without it");
  const nlohmann::json& quantized = directory.value("quantization_config");
  HS_CHECK(quantized.is_null(), directory.config_key("quantization_config"),
           " is set: headshare reads float weights; save the model without quantisation");
  const nlohmann::json& pruned = directory.value("pruned_heads");
  HS_CHECK(pruned.is_null() || pruned.empty(), directory.config_key("pruned_heads"),
           " is not empty: every layer must have all of its heads; convert the model before pruning");
}

}  // namespace headshare
