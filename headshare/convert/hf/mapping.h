// Which tensor of a Hugging Face directory becomes which of ours, with account of those not yet mapped.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headshare/convert/hf/directory.h"

namespace headshare {

class HfMapping {
 public:
  // `plain_name` gives the names by which tensors are asked for: without the prefix that some checkpoints have. Throws
  // Error where two tensors have the same.
  HfMapping(std::shared_ptr<const HfDirectory> directory,
            const std::function<std::string(const std::string&)>& plain_name);

  bool has(const std::string& name) const { return left_.contains(name); }

  // Ticks a tensor off after checking its shape; returns its full name. Throws Error when it is not there.
  std::string take(const std::string& name, const std::vector<int64_t>& shape);

  // Ours is the foreign tensor as it stands.
  void copy(const std::string& name, const std::vector<int64_t>& shape, const std::string& target);

  // Ours is made from the tensor that take() gave; `taken` says how.
  void add(const std::string& full, const std::string& taken, const std::string& target, std::function<Tensor()> read);

  // Sets aside a tensor that says nothing new, if it is there.
  void leave_out(const std::string& name);

  // Sets aside the tensor that take() gave, which says nothing new.
  void put_aside(const std::string& full) { unused_.push_back(full); }

  // Sets aside a second copy of the tensor `of` (a full name). Throws Error where it differs; `way_out` ends the
  // sentence.
  void leave_out_copy(const std::string& name, const std::vector<int64_t>& shape, const std::string& of,
                      const std::string& way_out);

  // Hands over what was mapped. Throws Error when tensors are left; `what` names the model they are no part of.
  void finish(const std::string& what, ForeignModel* foreign);

  const HfDirectory& directory() const { return *directory_; }
  const std::shared_ptr<const HfDirectory>& shared_directory() const { return directory_; }
  std::string where() const { return directory_->path().string(); }

 private:
  std::shared_ptr<const HfDirectory> directory_;
  std::map<std::string, std::string> left_;  // plain name -> full name, of tensors not yet mapped
  std::vector<MappedTensor> mapped_;
  std::vector<std::string> unused_;
};

}  // namespace headshare
