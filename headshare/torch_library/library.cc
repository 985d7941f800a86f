// The operations of libheadshare_ops.so, in pairs of passes: forward returns what backward needs.
#include <ATen/Parallel.h>
#include <pthread.h>
#include <torch/library.h>

#include "headshare/base/rng.h"
#include "headshare/ops/parallel.h"

// The package reads this line in the file before it loads it: a library that another torch was built with does not
// load.
extern "C" {
extern const char headshare_built_with_torch[];
__attribute__((used)) const char headshare_built_with_torch[] = "HEADSHARE_BUILT_WITH_TORCH=" HEADSHARE_TORCH_VERSION;
}

namespace headshare::torch_library {
namespace {

// A child of a process whose threads have worked has none of them, and libgomp would wait for them for ever.
void compute_alone_after_fork() {
  if (torch_threads_were_used()) at::set_num_threads(1);
}

}  // namespace

TORCH_LIBRARY(headshare, m) {
  pthread_atfork(nullptr, nullptr, compute_alone_after_fork);
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
#define HS_PROBLEM_SCHEMA                                                                                   \
  "Tensor query, Tensor key, Tensor value, int heads, Tensor? query_shift, Tensor? key_bias, float scale, " \
  "bool causal, Tensor? visible_keys, Tensor? alibi_slopes, float dropout, Tensor? dropout_key, bool shared_dropout"
  m.def("attention_forward(" HS_PROBLEM_SCHEMA
        ", bool gradients) -> (Tensor out, Tensor lse, Tensor m, Tensor by_head, Tensor backend)",
        tags);
  m.def("attention_backward(" HS_PROBLEM_SCHEMA
        ", Tensor out, Tensor lse, Tensor m, Tensor by_head, Tensor backend, Tensor gradient) -> "
        "(Tensor query, Tensor key, Tensor value, Tensor query_shift, Tensor key_bias)",
        tags);
  m.def("attention_backend(" HS_PROBLEM_SCHEMA ", bool gradients) -> str[]");
#undef HS_PROBLEM_SCHEMA
  m.def(
      "cross_entropy_forward(Tensor hidden, Tensor embedding, Tensor targets, Tensor? bias, int ignored, "
      "ScalarType? products, bool hidden_wanted, bool embedding_wanted, bool bias_wanted) -> "
      "(Tensor loss, Tensor hidden, Tensor embedding, Tensor bias)",
      tags);
  m.def(
      "cross_entropy_backward(Tensor gradient, Tensor hidden, Tensor embedding, Tensor? bias, Tensor hidden_gradient, "
      "Tensor embedding_gradient, Tensor bias_gradient) -> (Tensor hidden, Tensor embedding, Tensor bias)",
      tags);
  m.def("dropout(Tensor x, float p, Tensor key) -> Tensor", tags);
  m.def("gelu(Tensor x, str approximate) -> Tensor", tags);
  m.def("gelu_backward(Tensor gradient, Tensor x, str approximate) -> Tensor", tags);
  m.def("linear(Tensor x, Tensor weight, Tensor? bias, str? gelu) -> Tensor", tags);
  m.def(
      "linear_backward(Tensor gradient, Tensor x, Tensor weight, str? gelu, bool x_wanted, bool weight_wanted, "
      "bool bias_wanted) -> (Tensor x, Tensor weight, Tensor bias)",
      tags);
  m.def("rms_norm_forward(Tensor x, Tensor weight, float eps) -> (Tensor y, Tensor inverse)", tags);
  m.def(
      "rms_norm_backward(Tensor gradient, Tensor x, Tensor weight, Tensor inverse, float eps) -> "
      "(Tensor x, Tensor weight)",
      tags);
  m.def("stream_key(int seed, str name) -> int", [](int64_t seed, std::string name) {
    return static_cast<int64_t>(stream_key(static_cast<uint64_t>(seed), name));
  });
  m.def("rotate(Tensor x, SymInt first, float base, int width, int period, bool back) -> Tensor", tags);
}

}  // namespace headshare::torch_library
