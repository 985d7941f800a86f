// A mapping says which tensor of a Hugging Face directory becomes which of ours, and accounts for those not yet mapped.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headshare/convert/hf/directory.h"

namespace headshare {

// The advice says what may be wrong where the weights of an output layer are missing.
inline constexpr const char* kUntiedAdvice =
    "; config.json says that it is not the embedding: if it is, set tie_word_embeddings to true there";

// Gives the names without a prefix that some checkpoints have: that of the model within its output layer.
std::function<std::string(const std::string&)> without_prefix(const std::string& prefix);

class HfMapping {
 public:
  // `plain_name` gives the names by which tensors are asked for: without the prefix that some checkpoints have. Throws
  // Error where two tensors have the same.
  HfMapping(std::shared_ptr<const HfDirectory> directory,
            const std::function<std::string(const std::string&)>& plain_name);

  bool has(const std::string& name) const { return left_.contains(name); }
  // A tensor that is not yet mapped, by its name in the directory.
  std::optional<std::string> full_name(const std::string& name) const;

  // Advises where an embedding is missing and a separate output layer is there: they may be one; "" where there is no
  // such layer.
  std::string tied_advice(const std::string& output_layer) const;

  // Ticks a tensor off after checking its shape; returns its full name. One that is not there is "" and noted:
  // finish(), which knows what was there instead, refuses it, with `advice` (a sentence that goes on: "; ...").
  std::string take(const std::string& name, const std::vector<int64_t>& shape, const std::string& advice = "");

  // Ours is made from the one tensor that stands under some of these names; the first one counts, and the others must
  // be equal. Returns the full name of that.
  struct Made {
    std::string target, taken;  // as in MappedTensor
    std::function<Tensor(const Tensor&)> made;
  };
  std::string copy_tied(const std::vector<std::string>& names, const std::vector<int64_t>& shape, const Made& ours);

  // Ours is made from the tensor that take() gave; `taken` says how.
  void add(const std::string& full, const std::string& taken, const std::string& target, std::function<Tensor()> read);

  // Sets aside a tensor that says nothing new, if it is there.
  void leave_out(const std::string& name);

  // Sets aside the tensor that take() gave, which says nothing new.
  void put_aside(const std::string& full) { unused_.push_back(full); }

  // Sets aside a second copy of the tensor `of` (a full name) which config.json ties to it. Throws Error where it
  // differs.
  void leave_out_copy(const std::string& name, const std::vector<int64_t>& shape, const std::string& of);

  // Hands over what was mapped. Throws Error for tensors that were missing and for those that are left; `what` names
  // the model: "GPT-2".
  void finish(const std::string& what, ForeignModel* foreign);

  const HfDirectory& directory() const { return *directory_; }
  const std::shared_ptr<const HfDirectory>& shared_directory() const { return directory_; }
  std::string where() const { return directory_->path().string(); }

 private:
  struct Missing {
    std::string name, advice;
  };

  std::string missing_text(const std::string& what) const;
  // Names the tensor that stands in place of a missing one.
  std::string instead_of(const std::string& name) const;

  std::shared_ptr<const HfDirectory> directory_;
  std::map<std::string, std::string> left_;  // plain name -> full name, of tensors not yet mapped
  std::vector<Missing> missing_;
  std::vector<MappedTensor> mapped_;
  std::vector<std::string> unused_;
};

}  // namespace headshare
