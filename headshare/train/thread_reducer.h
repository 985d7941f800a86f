// In tests threads are the processes of one run.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "headshare/train/reducer.h"

namespace headshare {

// The threads of a test meet here, each as a process of its own. Sums are formed in the order of ranks.
class Meeting {
 public:
  explicit Meeting(int64_t size) : numbers_(static_cast<size_t>(size)) {}

  std::vector<double> sum(int64_t rank, std::vector<double> numbers) {
    std::unique_lock lock(mutex_);
    numbers_[static_cast<size_t>(rank)] = std::move(numbers);
    const int64_t round = round_;
    if (++arrived_ == size()) {
      total_.assign(numbers_.front().size(), 0);
      for (const std::vector<double>& one : numbers_) {
        for (size_t i = 0; i < total_.size(); ++i) total_[i] += one.at(i);
      }
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    } else {
      changed_.wait_for(lock, std::chrono::seconds(20), [&] { return round_ != round || left_; });
      if (round_ == round) throw ProcessLost(join_text("process ", rank, " waits for the others"));
    }
    return total_;
  }

  // Ends the wait of all others: a process is gone.
  void leave() {
    const std::lock_guard lock(mutex_);
    left_ = true;
    changed_.notify_all();
  }

  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<double>> numbers_;  // of each rank
  std::vector<double> total_;
  int64_t arrived_ = 0;
  int64_t round_ = 0;
  bool left_ = false;
};

class ThreadReducer : public Reducer {
 public:
  ThreadReducer(Meeting& meeting, int64_t rank) : meeting_(meeting), rank_(rank) {}
  ~ThreadReducer() override { meeting_.leave(); }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return meeting_.size(); }

  std::unique_ptr<Pending> start_sum(const Tensor& tensor) override {
    ++sums_begun;
    add_up(tensor, 1);
    return std::make_unique<Done>();
  }

  void sum(std::span<double> numbers) override {
    const std::vector<double> total = meeting_.sum(rank_, {numbers.begin(), numbers.end()});
    std::copy(total.begin(), total.end(), numbers.begin());
  }

  void broadcast(const Tensor& tensor, int64_t from) override { add_up(tensor, rank_ == from ? 1 : 0); }

  int64_t sums_begun = 0;

 private:
  struct Done final : Pending {
    void wait() override {}
  };

  void add_up(const Tensor& tensor, double share) {
    const at::NoGradGuard no_grad;
    const Tensor wide = tensor.to(at::kDouble).contiguous();
    std::vector<double> numbers(wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel());
    if (share == 0) std::fill(numbers.begin(), numbers.end(), 0);
    numbers = meeting_.sum(rank_, std::move(numbers));
    tensor.copy_(at::tensor(numbers, at::kDouble).view(tensor.sizes()));
  }

  Meeting& meeting_;
  int64_t rank_;
};

// Runs `process` on a thread for each of the ranks.
inline void run_together(int64_t processes, const std::function<void(ThreadReducer& reducer)>& process) {
  Meeting meeting(processes);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < processes; ++rank) {
    threads.emplace_back([&meeting, &process, rank] {
      ThreadReducer reducer(meeting, rank);
      process(reducer);
    });
  }
  for (std::thread& one : threads) one.join();
}

}  // namespace headshare
