#include "headshare/convert/hf/mapping.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"

namespace headshare {
namespace {

std::string counted_tensors(size_t tensors) { return join_text(tensors, tensors == 1 ? " tensor is" : " tensors are"); }

}  // namespace

std::function<std::string(const std::string&)> without_prefix(const std::string& prefix) {
  return [prefix](const std::string& full) { return full.starts_with(prefix) ? full.substr(prefix.size()) : full; };
}

HfMapping::HfMapping(std::shared_ptr<const HfDirectory> directory,
                     const std::function<std::string(const std::string&)>& plain_name)
    : directory_(std::move(directory)) {
  for (const auto& [full, view] : directory_->tensors()) {
    const std::string name = plain_name(full);
    const auto [found, fresh] = left_.emplace(name, full);
    HS_CHECK(fresh, where(), ": tensor '", name, "' stands twice, as '", found->second, "' and as '", full, "'");
  }
}

std::optional<std::string> HfMapping::full_name(const std::string& name) const {
  const auto found = left_.find(name);
  return found == left_.end() ? std::nullopt : std::optional(found->second);
}

std::string HfMapping::tied_advice(const std::string& output_layer) const {
  if (!has(output_layer)) return "";
  return join_text("; ", output_layer,
                   " is there, and config.json says that it is not the embedding: if it is, set "
                   "tie_word_embeddings to true there");
}

std::string HfMapping::take(const std::string& name, const std::vector<int64_t>& shape, const std::string& advice) {
  const auto found = left_.find(name);
  if (found == left_.end()) {
    missing_.push_back({name, advice});
    return "";
  }
  const std::string full = found->second;
  left_.erase(found);
  const std::vector<int64_t>& actual = directory_->tensors().at(full).shape;
  HS_CHECK(actual == shape, where(), ": tensor '", full, "' has shape ", at::IntArrayRef(actual),
           ", the configuration asks for ", at::IntArrayRef(shape));
  return full;
}

std::string HfMapping::copy_tied(const std::vector<std::string>& names, const std::vector<int64_t>& shape,
                                 const Made& ours) {
  const auto is_here = [&](const std::string& name) { return has(name); };
  const auto found = std::find_if(names.begin(), names.end(), is_here);
  const std::vector<std::string> copies(names.begin() + 1, names.end());
  const std::string advice = copies.empty() ? "" : "; nor is there a copy of it, " + list_text(copies, "or");
  const std::string full = take(found == names.end() ? names.front() : *found, shape, advice);
  add(full, ours.taken, ours.target, [from = directory_, full, made = ours.made] { return made(from->read(full)); });
  for (const std::string& name : names) leave_out_copy(name, shape, full);
  return full;
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

void HfMapping::leave_out_copy(const std::string& name, const std::vector<int64_t>& shape, const std::string& of) {
  if (!has(name)) return;
  const std::string full = take(name, shape);
  HS_CHECK(of.empty() || at::equal(directory_->read(full), directory_->read(of)), where(), ": tensor '", full,
           "' differs from '", of, "', but config.json ties them; set tie_word_embeddings to false there");
  unused_.push_back(full);
}

std::string HfMapping::instead_of(const std::string& name) const {
  if (left_.empty()) return "; config.json and the weights must be of one model";
  for (const auto& [plain, full] : left_) {
    if (!full.ends_with("." + name)) continue;
    const std::string prefix = full.substr(0, full.size() - name.size());
    return join_text("; it stands there as '", full, "': save the model without the prefix '", prefix, "'");
  }
  std::vector<std::string> names;
  for (const auto& item : left_) names.push_back(item.first);
  if (const std::string near = nearest_name(name, names); !near.empty()) {
    return join_text("; instead there is '", left_.at(near), "'");
  }
  return join_text("; ", counted_tensors(left_.size()), " there that it has not, the first is '", left_.begin()->second,
                   "'");
}

std::string HfMapping::missing_text(const std::string& what) const {
  const Missing& first = missing_.front();
  const size_t others = missing_.size() - 1;
  return join_text(where(), ": tensor '", first.name, "' is missing",
                   others == 0 ? "" : join_text(" (and ", others, others == 1 ? " other" : " others", ")"),
                   ", which the ", what, " that config.json describes has", first.advice,
                   first.advice.empty() || !left_.empty() ? instead_of(first.name) : "");
}

void HfMapping::finish(const std::string& what, ForeignModel* foreign) {
  HS_CHECK(missing_.empty(), missing_text(what));
  HS_CHECK(left_.empty(), where(), ": ", counted_tensors(left_.size()), " not part of the ", what,
           " that config.json describes, the first is '", left_.begin()->second, "'");
  foreign->tensors = std::move(mapped_);
  foreign->unused = std::move(unused_);
}

}  // namespace headshare
