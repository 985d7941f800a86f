#include "headshare/bench/attention_case.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/attention/scheme_record.h"
#include "headshare/attention/schemes/mhe_options.h"
#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr double kEmbeddingDeviation = 0.5;

std::shared_ptr<Scheme> make_scheme_of(const AttentionCase& one, at::ScalarType type) {
  AttentionOptions options = {.scheme = one.scheme,
                              .d_model = one.heads * one.head_width,
                              .heads = one.heads,
                              .own = MheOptions{.deviation = kEmbeddingDeviation}};
  if (scheme_record(one.scheme).shares_key_width) options.key_width = one.key_width;
  std::shared_ptr<Scheme> scheme = make_scheme(resolve(options));
  attach(*scheme, std::make_shared<DropoutClock>(DropoutClock{.seed = 1}));
  initialise(*scheme, /*seed=*/1);
  scheme->to(one.device);
  scheme->to(type);
  scheme->train(one.dropout > 0);
  return scheme;
}

class Filler {
 public:
  Filler(Fill fill, at::TensorOptions options) : fill_(fill), options_(options) {}

  // Returns a leaf of the shape of `like`, [B, heads, length, width].
  Tensor operator()(const Tensor& like, double uniform) {
    const auto& s = like.sizes();
    const Tensor flat = at::empty({s[0], s[2], s[1], s[3]}, at::kFloat);
    if (fill_ == Fill::kNormal) {
      flat.normal_(0, 1, generator_);
    } else {
      flat.fill_(uniform);
    }
    return flat.to(options_).transpose(1, 2).requires_grad_();
  }

 private:
  Fill fill_;
  at::TensorOptions options_;
  at::Generator generator_ = keyed_generator(at::kCPU, /*key=*/23);
};

// These are the tensors that the scheme's projections would give, as shapes only: one token of one sequence is enough.
struct Shapes {
  Tensor queries;
  Memory memory;
};

Shapes shapes_of(const Scheme& scheme, const AttentionCase& one, at::TensorOptions options) {
  const at::NoGradGuard no_grad;
  const Tensor token = at::zeros({1, 1, one.heads * one.head_width}, options);
  const auto longer = [&](const Tensor& x, int64_t length) {
    return x.expand({one.batch, x.size(1), length, x.size(3)});
  };
  Shapes shapes{longer(scheme.project_queries(token, 0), one.queries), {}};
  for (const Tensor& part : scheme.remember(token, 0)) shapes.memory.push_back(longer(part, one.keys));
  return shapes;
}

}  // namespace

bool is_decoding(const AttentionCase& one) { return one.pass == Pass::kForward && one.queries == 1; }

const EnumNames<Pass>& pass_names() {
  static const EnumNames<Pass> names = {{Pass::kForward, "forward"}, {Pass::kTraining, "training"}};
  return names;
}

std::string pass_name(Pass pass) { return enum_name(pass_names(), pass); }

std::string case_name(const AttentionCase& one) {
  std::string name = join_text(one.scheme, " ", pass_name(one.pass), one.causal ? " causal" : "", " B", one.batch, " H",
                               one.heads, " T", one.queries);
  if (one.keys != one.queries) name += join_text(" S", one.keys);
  name += join_text(" D", one.head_width);
  if (scheme_record(one.scheme).shares_key_width) name += join_text(" R", one.key_width);
  const bool shared = one.dropout_mask == DropoutMaskKind::kShared;
  if (one.dropout > 0) name += join_text(" dropout ", one.dropout, shared ? " shared" : "");
  if (one.precision != Precision::kFp32) name += join_text(" ", precision_name(one.precision));
  if (!one.device.is_cpu()) name += join_text(" ", one.device.str());
  return name;
}

double operations_of(const AttentionCase& one, const HeadProblem& problem) {
  const auto compared = static_cast<double>(problem.key.size(3)), found = static_cast<double>(problem.value.size(3));
  // Forward: the scores and the heads. Backward: the scores again, and gradients of queries, keys, weights and values.
  const double widths = one.pass == Pass::kForward ? compared + found : 4 * compared + 3 * found;
  const auto T = static_cast<double>(one.queries), S = static_cast<double>(one.keys);
  const double hidden = one.causal ? T * (T - 1) / 2 : 0;  // pairs of a query and a key that it does not see
  return 2 * static_cast<double>(one.batch * problem.heads) * (T * S - hidden) * widths;
}

std::optional<int64_t> values_in_keys(const HeadProblem& p) {
  const Tensor &keys = p.key, &values = p.value;
  const bool alike = values.is_alias_of(keys) && values.size(1) == keys.size(1) && values.strides() == keys.strides();
  const int64_t first = alike ? values.storage_offset() - keys.storage_offset() : -1;
  if (first < 0 || first + values.size(3) > keys.size(3)) return std::nullopt;
  return first;
}

CaseInputs make_inputs(const AttentionCase& one, Fill fill) {
  const auto type = one.precision == Precision::kBf16 ? at::kBFloat16 : at::kFloat;
  const auto like = at::TensorOptions(one.device).dtype(type);
  CaseInputs in{.scheme = make_scheme_of(one, type)};
  const Shapes shapes = shapes_of(*in.scheme, one, like);
  Filler filled(fill, like);
  in.queries = filled(shapes.queries, 0);
  for (const Tensor& part : shapes.memory) in.memory.push_back(filled(part, 1));
  if (is_decoding(one)) {
    in.cache = std::make_shared<KvCache>(one.keys);
    in.memory = in.cache->append(in.memory);
  }
  const HeadProblem problem = in.problem();
  in.output_gradient =
      filled(at::empty({1}, like).expand({one.batch, problem.heads, one.queries, problem.value.size(3)}), 1).detach();
  in.mask.causal = one.causal;
  in.dropout = {.p = one.dropout, .site = in.scheme.get(), .shared = one.dropout_mask == DropoutMaskKind::kShared};
  return in;
}

}  // namespace headshare
