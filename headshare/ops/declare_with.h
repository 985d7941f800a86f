// Modules can be made with parameters that belong to somebody else: to a Python program, whose autograd, optimizer and
// wrappers then see plain tensors of their own.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace headshare {

// Gives the parameter that a layer declares next, of these sizes.
using ParameterMaker = std::function<at::Tensor(at::IntArrayRef sizes)>;

// While one of these lives, this thread's layers get their parameters from `make`, in the order in which they declare
// them, and take them as they are: requires_grad stays what it is, and the tensor may be no leaf.
class DeclareWith {
 public:
  explicit DeclareWith(ParameterMaker make);
  ~DeclareWith();
  DeclareWith(const DeclareWith&) = delete;
  DeclareWith& operator=(const DeclareWith&) = delete;

 private:
  ParameterMaker before_;
};

}  // namespace headshare
