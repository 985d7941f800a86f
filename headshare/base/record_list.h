// This list holds what the program has of a kind (attention schemes, conversions); others can be added.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace headshare {

// Records stay where they are until they are taken out, so that references to them stay valid. Threads may read, add
// and take out at the same time: whoever reads the list keeps its records alive.
template <class Record>
class RecordList {
 public:
  using Records = std::vector<std::shared_ptr<const Record>>;

  explicit RecordList(std::vector<Record> first) {
    for (Record& one : first) add(std::move(one));
  }

  // Returns all records, in the order in which they came.
  Records all() const {
    const std::lock_guard lock(mutex_);
    return records_;
  }

  const Record* add(Record record) {
    const std::lock_guard lock(mutex_);
    return records_.emplace_back(std::make_shared<const Record>(std::move(record))).get();
  }

  void take_out(const Record* record) {
    const std::lock_guard lock(mutex_);
    std::erase_if(records_, [record](const auto& one) { return one.get() == record; });
  }

 private:
  mutable std::mutex mutex_;
  Records records_;
};

}  // namespace headshare
