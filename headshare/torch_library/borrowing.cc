#include "headshare/torch_library/borrowing.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

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

// Makes buffers (sinusoids) what the parameters are.
void convert_buffers(torch::nn::Module* module, const at::TensorOptions& like) {
  for (const auto& buffer : module->named_buffers()) {
    if (at::isFloatingType(buffer.value().scalar_type())) buffer.value().set_data(buffer.value().to(like));
  }
}

bool all_leaves(const std::vector<Tensor>& parameters) {
  return std::all_of(parameters.begin(), parameters.end(), [](const Tensor& one) { return one.is_leaf(); });
}

bool same_options(const at::TensorOptions& a, const at::TensorOptions& b) {
  return a.device() == b.device() && a.dtype() == b.dtype();
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

void Borrowing::check(const std::vector<Tensor>& parameters) const {
  HS_CHECK(parameters.size() == declared_.size(), "this module has ", declared_.size(), " parameters, not ",
           parameters.size());
  for (size_t i = 0; i < declared_.size(); ++i) {
    HS_CHECK(parameters[i].sizes() == declared_[i].tensor.sizes(), "the parameter ", declared_[i].name,
             " must have the shape ", declared_[i].tensor.sizes(), ", not ", parameters[i].sizes());
    HS_CHECK(parameters[i].device() == parameters[0].device(), "the parameter ", declared_[i].name, " is on ",
             parameters[i].device(), ", the first one on ", parameters[0].device());
  }
}

Borrowing::Made Borrowing::around(const std::vector<Tensor>& parameters) const {
  check(parameters);
  const at::TensorOptions like = parameters.empty() ? at::TensorOptions(at::kFloat) : parameters.front().options();
  if (made_.module != nullptr && same_tensors(parameters, held_) && same_options(like, made_like_)) return made_;
  const c10::InferenceMode for_training_too(false);  // what is kept outlives the mode of its first call
  size_t next = 0;
  const DeclareWith given([&](at::IntArrayRef) { return parameters[next++]; });
  Made made = make_();
  convert_buffers(made.module.get(), like);
  // Tensors that are no leaves belong to a graph, which must not live as long as this.
  held_ = all_leaves(parameters) ? parameters : std::vector<Tensor>();
  made_ = held_.empty() ? Made() : made;
  made_like_ = like;
  return made;
}

}  // namespace headshare
