#include "headshare/train/group_reducer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <utility>

namespace headshare {
namespace {

// Returns the reason in what Gloo and NCCL throw: "[source line] Connection closed by peer [address]. This is ...",
// with a stack behind it.
std::string reason_in(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  const size_t begin = line.starts_with('[') ? std::min(line.find("] "), line.size() - 2) + 2 : 0;
  return line.substr(begin, std::min(line.find(". ", begin), line.size()) - begin);
}

// Does what waits for other processes.
template <class Action>
auto with_others(const Action& action) {
  try {
    return action();
  } catch (const std::exception& failure) {
    throw ProcessLost(
        join_text("another process of this run has ended, or does not answer (", reason_in(failure.what()), ")"));
  }
}

using WorkPointer = c10::intrusive_ptr<c10d::Work>;

class WorkPending final : public Reducer::Pending {
 public:
  explicit WorkPending(WorkPointer work) : work_(std::move(work)) {}
  void wait() override {
    with_others([&] { return work_->wait(); });
  }

 private:
  WorkPointer work_;
};

class GroupReducer final : public Reducer {
 public:
  explicit GroupReducer(const std::string& group) : group_(c10d::resolve_process_group(group)) {}

  int64_t rank() const override { return group_->getRank(); }
  int64_t size() const override { return group_->getSize(); }

  std::unique_ptr<Pending> start_sum(const Tensor& tensor) override {
    std::vector<Tensor> summed = {tensor};
    return std::make_unique<WorkPending>(with_others([&] { return group_->allreduce(summed); }));
  }

  void sum(std::span<double> numbers) override {
    const auto count = static_cast<int64_t>(numbers.size());
    start_sum(at::from_blob(numbers.data(), {count}, at::kDouble))->wait();
  }

  void broadcast(const Tensor& tensor, int64_t from) override {
    std::vector<Tensor> sent = {tensor};
    c10d::BroadcastOptions options;
    options.rootRank = from;
    with_others([&] { return group_->broadcast(sent, options)->wait(); });
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

}  // namespace

std::unique_ptr<Reducer> make_group_reducer(const std::string& group) { return std::make_unique<GroupReducer>(group); }

}  // namespace headshare
