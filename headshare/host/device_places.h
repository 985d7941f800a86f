// Deals cells to devices: each goes to the device on which the fewest run, the first of them in the order that they
// were named in.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace headshare {

class DevicePlaces {
 public:
  // Without devices every cell finds its own.
  explicit DevicePlaces(std::vector<std::string> devices)
      : devices_(std::move(devices)), running_(devices_.size(), 0) {}

  // Returns the device of a cell that starts now; "" where there are none.
  std::string take(size_t cell) {
    if (devices_.empty()) return "";
    const auto least = std::min_element(running_.begin(), running_.end());
    ++*least;
    const auto place = static_cast<size_t>(least - running_.begin());
    taken_[cell] = place;
    return devices_[place];
  }

  // A cell has ended.
  void give_back(size_t cell) {
    const auto found = taken_.find(cell);
    if (found == taken_.end()) return;
    --running_[found->second];
    taken_.erase(found);
  }

 private:
  std::vector<std::string> devices_;
  std::vector<int> running_;        // cells on each device
  std::map<size_t, size_t> taken_;  // the place of each running cell
};

}  // namespace headshare
