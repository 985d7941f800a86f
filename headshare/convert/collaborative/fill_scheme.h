// Sets a scheme's parameters by their names.
#pragma once

#include <map>
#include <string>

#include "headshare/attention/scheme.h"

namespace headshare {

// A weight that is never set stays 0.
class SchemeFiller {
 public:
  explicit SchemeFiller(Scheme* scheme) {
    for (const Declared& one : declared_parameters(*scheme)) {
      one.tensor.zero_();
      parameters_.emplace(one.name, one.tensor);
    }
  }

  bool has(const std::string& name) const { return parameters_.count(name) > 0; }

  // `values` are as many as the parameter has, in its order.
  void set(const std::string& name, const Tensor& values) {
    const Tensor& parameter = parameters_.at(name);
    parameter.copy_(values.reshape(parameter.sizes()));
  }

 private:
  std::map<std::string, Tensor> parameters_;
};

}  // namespace headshare
