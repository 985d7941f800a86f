#include "headshare/models/teacher_output.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"

namespace headshare {

Tensor hidden_difference(const Tensor& student, const Tensor& teacher) {
  HS_CHECK(student.sizes() == teacher.sizes(), "the hidden states of a student, ", student.sizes(),
           ", and its teacher, ", teacher.sizes(), ", must be equally wide");
  const Tensor wanted = teacher.to(at::kFloat);
  const Tensor own = student.to(at::kFloat);
  if (student.size(0) == 0) return own.sum();
  const Tensor size = wanted.square().mean().clamp_min(1e-12);
  return (own - wanted).square().mean() / size;
}

}  // namespace headshare
