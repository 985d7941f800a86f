#include "headshare/train/gradient_buckets.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

namespace headshare {

// Tells the buckets that a backward pass has added to a parameter's gradient.
class GradientBuckets::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientBuckets& buckets, size_t parameter) : buckets_(buckets), parameter_(parameter) {}
  void operator()(const torch::autograd::Variable& /*tensor*/) override { buckets_.arrived(parameter_); }

 private:
  GradientBuckets& buckets_;
  size_t parameter_;
};

GradientBuckets::GradientBuckets(std::vector<Tensor> parameters, Reducer& reducer, int64_t most_bytes)
    : parameters_(std::move(parameters)),
      reducer_(reducer),
      bucket_of_(parameters_.size()),
      expected_(parameters_.size(), -1),
      additions_(parameters_.size()) {
  std::vector<size_t> members;
  int64_t bytes = 0;
  for (size_t i = parameters_.size(); i-- > 0;) {
    const Tensor& one = parameters_[i];
    const bool fits = members.empty() || (bytes + static_cast<int64_t>(one.nbytes()) <= most_bytes &&
                                          one.options().type_equal(parameters_[members.front()].options()));
    if (!fits) {
      add_bucket(std::exchange(members, {}));
      bytes = 0;
    }
    members.push_back(i);
    bytes += static_cast<int64_t>(one.nbytes());
    torch::autograd::impl::set_post_acc_grad_hooks(one, std::make_unique<Hook>(*this, i));
  }
  if (!members.empty()) add_bucket(std::move(members));
}

GradientBuckets::~GradientBuckets() {
  for (const Tensor& one : parameters_) torch::autograd::impl::set_post_acc_grad_hooks(one, nullptr);
}

void GradientBuckets::add_bucket(std::vector<size_t> members) {
  int64_t numbers = static_cast<int64_t>(members.size());
  for (const size_t i : members) numbers += parameters_[i].numel();
  Bucket bucket;
  bucket.sums = at::empty({numbers}, parameters_[members.front()].options().requires_grad(false));
  int64_t begin = 0;
  for (const size_t i : members) {
    const Tensor& one = parameters_[i];
    bucket.views.push_back(bucket.sums.narrow(0, begin, one.numel()).view(one.sizes()));
    begin += one.numel();
    bucket_of_[i] = buckets_.size();
  }
  bucket.members = std::move(members);
  buckets_.push_back(std::move(bucket));
}

void GradientBuckets::expect_last() {
  std::fill(additions_.begin(), additions_.end(), 0);
  for (Bucket& bucket : buckets_) {
    bucket.awaited = 0;
    for (const size_t i : bucket.members) bucket.awaited += expected_[i] == 0 ? 0 : 1;
  }
  unsent_ = 0;
  changed_ = false;
  expecting_ = true;
}

void GradientBuckets::arrived(size_t parameter) {
  if (!expecting_) return;
  Bucket& bucket = buckets_[bucket_of_[parameter]];
  ++additions_[parameter];
  if (bucket_of_[parameter] < unsent_) changed_ = true;
  if (additions_[parameter] != expected_[parameter]) return;
  --bucket.awaited;
  send_ready();
}

void GradientBuckets::send_ready() {
  while (unsent_ < buckets_.size() && buckets_[unsent_].awaited == 0) send(buckets_[unsent_++]);
}

void GradientBuckets::send(Bucket& bucket) {
  const at::NoGradGuard no_grad;
  std::vector<float> there;
  for (size_t i = 0; i < bucket.members.size(); ++i) {
    const Tensor& gradient = parameters_[bucket.members[i]].grad();
    there.push_back(gradient.defined() ? 1 : 0);
    gradient.defined() ? bucket.views[i].copy_(gradient) : bucket.views[i].zero_();
  }
  const auto count = static_cast<int64_t>(there.size());
  bucket.sums.narrow(0, bucket.sums.numel() - count, count).copy_(at::tensor(there));
  bucket.pending = reducer_.start_sum(bucket.sums);
}

bool GradientBuckets::send_rest() {
  while (unsent_ < buckets_.size()) send(buckets_[unsent_++]);
  expecting_ = false;
  // A process that had no micro-batch has learnt nothing.
  const bool computed = std::any_of(additions_.begin(), additions_.end(), [](int64_t n) { return n > 0; });
  if (computed) expected_ = additions_;
  return changed_;
}

void GradientBuckets::finish(bool again) {
  for (Bucket& bucket : buckets_) bucket.pending->wait();
  if (again) {
    for (Bucket& bucket : buckets_) send(bucket);
    for (Bucket& bucket : buckets_) bucket.pending->wait();
  }
  for (Bucket& bucket : buckets_) take(bucket);
}

void GradientBuckets::take(Bucket& bucket) {
  bucket.pending.reset();
  const auto count = static_cast<int64_t>(bucket.members.size());
  const Tensor there = bucket.sums.narrow(0, bucket.sums.numel() - count, count).to(at::kCPU, at::kFloat);
  for (size_t i = 0; i < bucket.members.size(); ++i) {
    Tensor& gradient = parameters_[bucket.members[i]].mutable_grad();
    // Zeros are no gradient: they would let the moments and the parameter decay.
    if (there.const_data_ptr<float>()[i] > 0) {
      gradient = bucket.views[i];
    } else {
      gradient.reset();
    }
  }
}

}  // namespace headshare
