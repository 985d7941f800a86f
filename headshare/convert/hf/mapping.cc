#include "headshare/convert/hf/mapping.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
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

}  // namespace headshare
