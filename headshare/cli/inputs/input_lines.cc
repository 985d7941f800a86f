#include "headshare/cli/inputs/input_lines.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/data/byte_order_mark.h"

namespace headshare {

bool InputLines::next(std::string* line) {
  constexpr size_t kMostBytes = size_t{256} << 20;
  for (size_t searched = 0;;) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos || (ended_ && !buffer_.empty())) {
      *line = buffer_.substr(0, end);
      buffer_.erase(0, end == std::string::npos ? end : end + 1);
      if (!std::exchange(started_, true)) drop_byte_order_mark(line, "standard input");
      if (line->ends_with('\r')) line->pop_back();
      return true;
    }
    if (ended_) return false;
    HS_CHECK(buffer_.size() < kMostBytes, "a line of standard input is longer than 256 MiB");
    searched = buffer_.size();
    read_more();
  }
}

bool InputLines::ready() const {
  if (ended_ || buffer_.find('\n') != std::string::npos) return true;
  pollfd waiting{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, /*timeout=*/0) != 0;
}

void InputLines::read_more() {
  pollfd waiting{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  const int ready = ::poll(&waiting, 1, -1);  // a signal interrupts it, unlike read
  check_interrupted();
  if (ready < 0 && errno == EINTR) return;
  std::array<char, 1 << 16> block;
  const ssize_t count = ::read(STDIN_FILENO, block.data(), block.size());
  HS_CHECK(count >= 0 || errno == EINTR, "cannot read standard input: ", std::strerror(errno));
  if (count > 0) buffer_.append(block.data(), static_cast<size_t>(count));
  ended_ = count == 0;
}

}  // namespace headshare
