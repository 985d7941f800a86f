// Counts the bytes of tensors made and freed while somebody listens.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>

namespace headshare {

// Hears of every allocation that libtorch makes, while the object lives, on behalf of the thread that made it, and of
// the threads of its backward pass.
class AllocationMeter {
 public:
  int64_t now() const { return counts_->now(); }
  int64_t peak() const { return counts_->peak(); }

 private:
  class Counts : public c10::MemoryReportingInfoBase {
   public:
    void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
      const std::lock_guard<std::mutex> hold(mutex_);
      now_ += bytes;
      peak_ = std::max(peak_, now_);
    }
    void reportOutOfMemory(int64_t, size_t, size_t, c10::Device) override {}
    bool memoryProfilingEnabled() const override { return true; }
    int64_t now() const { return now_; }
    int64_t peak() const { return peak_; }

   private:
    std::mutex mutex_;
    int64_t now_ = 0;
    int64_t peak_ = 0;
  };

  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
  c10::DebugInfoGuard hears_{c10::DebugInfoKind::PROFILER_STATE, counts_};
};

}  // namespace headshare
