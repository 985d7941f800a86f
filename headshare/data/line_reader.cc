#include "headshare/data/line_reader.h"

#include <algorithm>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/data/byte_order_mark.h"

namespace headshare {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;
constexpr size_t kMostLineBytes = size_t{256} << 20;

}  // namespace

std::optional<std::string_view> LineReader::next() {
  size_t end = buffer_.find('\n', begin_);
  while (end == std::string::npos && !ended_) {
    buffer_.erase(0, std::exchange(begin_, 0));
    const size_t searched = buffer_.size();
    HS_CHECK(searched < kMostLineBytes, name(), ":", number_ + 1, ": a line of more than ", kMostLineBytes,
             " bytes; one record a line was expected");
    ended_ = !fill();
    end = buffer_.find('\n', searched);
  }
  if (begin_ == buffer_.size()) return std::nullopt;
  end = std::min(end, buffer_.size());
  const std::string_view line = std::string_view(buffer_).substr(begin_, end - begin_);
  begin_ = std::min(end + 1, buffer_.size());
  ++number_;
  return line;
}

// Appends to the buffer; false when the input has ended.
bool LineReader::fill() {
  const size_t before = buffer_.size();
  buffer_.resize(before + kReadBytes);
  const size_t count = stream_.read(buffer_.data() + before, kReadBytes);
  buffer_.resize(before + count);
  if (!std::exchange(started_, true)) drop_byte_order_mark(&buffer_, name());
  return count == kReadBytes;
}

std::string_view without_return(std::string_view line) {
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

std::vector<std::string> split_at_tabs(std::string_view line) {
  std::vector<std::string> fields;
  while (true) {
    const size_t tab = line.find('\t');
    fields.emplace_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

std::string LineReader::where() const { return join_text(name(), ":", number_); }

}  // namespace headshare
