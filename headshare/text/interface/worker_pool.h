// Holds what encoding needs besides the tokenizer (caches, scratch space), for as many threads as encode at once.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace headshare {

template <class Worker>
class WorkerPool {
 public:
  // Calls use(worker) with an idle worker, or with the one that make() returns when there is none, and
  // keeps it for the next call. A worker whose use throws is dropped.
  template <class Make, class Use>
  void run(const Make& make, const Use& use) {
    std::unique_ptr<Worker> worker = take();
    if (worker == nullptr) worker = make();
    use(*worker);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(worker));
  }

 private:
  std::unique_ptr<Worker> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Worker> worker = std::move(idle_.back());
    idle_.pop_back();
    return worker;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

}  // namespace headshare
