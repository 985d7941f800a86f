#include "headshare/torch_library/borrowing.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/ops/declare_with.h"

namespace headshare {
namespace {

// Lists the declared parameters in the order in which making the module declares them.
std::vector<Declared> declared_in_order(const Borrowing::Make& make) {
  std::vector<Tensor> made;
  const DeclareWith recorded([&](at::IntArrayRef sizes) {
    made.push_back(at::empty(sizes, at::device(at::kMeta)));
    return made.back();
  });
  const Borrowing::Made example = make();
  std::vector<Declared> declared = declared_parameters(*example.module);
  const auto place = [&](const Declared& one) {
    return std::find_if(made.begin(), made.end(), [&](const Tensor& tensor) { return tensor.is_same(one.tensor); });
  };
  std::sort(declared.begin(), declared.end(),
            [&](const Declared& a, const Declared& b) { return place(a) < place(b); });
  return declared;
}

bool same_tensors(const std::vector<Tensor>& some, const std::vector<Tensor>& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                    [](const Tensor& a, const Tensor& b) { return a.is_same(b); });
}

// Brings buffers (sinusoids) to where the parameters are.
void move_buffers(torch::nn::Module* module, const Tensor& like) {
  for (const auto& buffer : module->named_buffers()) {
    if (buffer.value().device() != like.device()) buffer.value().set_data(buffer.value().to(like.device()));
  }
}

}  // namespace

Borrowing::Borrowing(Make make) : make_(std::move(make)), declared_(declared_in_order(make_)) {}

std::vector<ParameterDescription> Borrowing::parameters() const {
  std::vector<ParameterDescription> all;
  for (const Declared& one : declared_) {
    all.emplace_back(one.name, one.tensor.sizes().vec(), one.init.mean, one.init.deviation, one.decay == Decay::kYes,
                     one.role == Role::kLearned);
  }
  return all;
}

Borrowing::Made Borrowing::around(const std::vector<Tensor>& parameters) const {
  if (made_.module != nullptr && same_tensors(parameters, held_)) return made_;
  HS_CHECK(parameters.size() == declared_.size(), "this module has ", declared_.size(), " parameters, not ",
           parameters.size());
  for (size_t i = 0; i < declared_.size(); ++i) {
    HS_CHECK(parameters[i].sizes() == declared_[i].tensor.sizes(), declared_[i].name, " has the shape ",
             declared_[i].tensor.sizes(), ", not ", parameters[i].sizes());
  }
  size_t next = 0;
  const DeclareWith given([&](at::IntArrayRef) { return parameters[next++]; });
  Made made = make_();
  if (!parameters.empty()) move_buffers(made.module.get(), parameters.front());
  held_ = parameters;
  made_ = made;
  return made;
}

}  // namespace headshare
