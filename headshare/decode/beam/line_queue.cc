#include "headshare/decode/beam/line_queue.h"

#include <algorithm>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/strings/valid_utf8.h"
#include "headshare/data/repair_utf8.h"

namespace headshare {
namespace {

constexpr int64_t kMost = 1 << 24;
constexpr size_t kMostBytes = size_t{1} << 24;  // of a line; tokenizers refuse longer texts

const EnumNames<BadLines> kPolicies = {
    {BadLines::kRepair, "repair"}, {BadLines::kEmpty, "empty"}, {BadLines::kRefuse, "refuse"}};

void check_size(const char* name, int64_t value) {
  HS_CHECK(value >= 1 && value <= kMost, name, " must lie in 1..", kMost, ", not ", value);
}

// Makes one line of an output.
std::string on_one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

}  // namespace

Fields fields(LineQueueOptions& o) {
  return {
      field("batch-size", &o.batch_size, "lines that are translated together at most", {.min = 1, .max = kMost}),
      field("batch-tokens", &o.batch_tokens, "lines of a batch x tokens of the longest at most",
            {.min = 1, .max = kMost}),
      field("window", &o.window, "lines that are read ahead and sorted by length", {.min = 1, .max = kMost}),
      field("max-source", &o.max_source, "tokens of a line at most", {.min = 1, .max = kMost}),
      field("bad-lines", &o.bad_lines, "lines that are too long or not UTF-8: cut and mend them, or leave them empty",
            kPolicies),
  };
}

LineQueue::LineQueue(const LineQueueOptions& options, int64_t n_best, LineQueueCallbacks callbacks)
    : options_(options), n_best_(static_cast<size_t>(n_best)), callbacks_(std::move(callbacks)) {
  check_size("batch-size", options.batch_size);
  check_size("batch-tokens", options.batch_tokens);
  check_size("window", options.window);
  check_size("max-source", options.max_source);
  check_size("n-best", n_best);
}

void LineQueue::push(std::string line) {
  ++lines_;
  std::vector<int32_t> tokens = read(std::move(line));
  Slot& slot = slots_.emplace_back();
  if (tokens.empty()) {
    settle(&slot, lines_, {});
    if (waiting_.empty()) write_ready();
  } else {
    waiting_.push_back({.number = lines_, .tokens = std::move(tokens)});
  }
  if (static_cast<int64_t>(slots_.size()) >= options_.window) flush();
}

void LineQueue::warn(const std::string& what) const {
  if (callbacks_.warn) callbacks_.warn(lines_, what);
}

// Returns the tokens to translate; none for an empty output.
std::vector<int32_t> LineQueue::read(std::string line) const {
  const size_t valid = valid_utf8_prefix(line);
  if (valid < line.size()) {
    const std::string what = join_text("not UTF-8 at byte ", valid);
    HS_CHECK(options_.bad_lines != BadLines::kRefuse, "line ", lines_, " is ", what,
             ": convert the input to UTF-8, or choose --bad-lines repair or empty");
    const bool repair = options_.bad_lines == BadLines::kRepair;
    warn(what + (repair ? "; U+FFFD stands for what is wrong" : "; its translation is left empty"));
    if (!repair) return {};
    line = replace_invalid_utf8(line);
  }
  if (line.size() > kMostBytes) {
    const std::string what = join_text(line.size(), " bytes long, and at most ", kMostBytes, " are allowed");
    HS_CHECK(options_.bad_lines != BadLines::kRefuse, "line ", lines_, " is ", what,
             ": split it, or choose --bad-lines repair or empty");
    if (options_.bad_lines == BadLines::kEmpty) return warned(what + "; its translation is left empty");
    warn(what + "; the rest is not translated");
    line.resize(kMostBytes);
    line.resize(valid_utf8_prefix(line));
  }
  std::vector<int32_t> tokens = callbacks_.encode(line);
  if (tokens.empty()) return warned("empty; so is its translation");
  const auto most = static_cast<size_t>(options_.max_source);
  if (tokens.size() <= most) return tokens;
  const std::string what = join_text(tokens.size(), " tokens long, and at most ", most, " are allowed");
  HS_CHECK(options_.bad_lines != BadLines::kRefuse, "line ", lines_, " is ", what,
           ": split it, raise --max-source, or choose --bad-lines repair or empty");
  const bool repair = options_.bad_lines == BadLines::kRepair;
  warn(what + (repair ? "; the rest is not translated" : "; its translation is left empty"));
  tokens.resize(repair ? most : 0);
  return tokens;
}

// Warns of a line that is not translated, and returns no tokens for it.
std::vector<int32_t> LineQueue::warned(const std::string& what) const {
  warn(what);
  return {};
}

void LineQueue::flush() {
  // The longest line comes first: a batch that needs too much memory fails at once. Equal ones stay in order.
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [](const QueuedLine& a, const QueuedLine& b) { return a.tokens.size() > b.tokens.size(); });
  for (size_t begin = 0; begin < waiting_.size();) {
    const size_t end = batch_end(begin);
    translate(std::span<const QueuedLine>(waiting_).subspan(begin, end - begin));
    write_ready();
    begin = end;
  }
  waiting_.clear();
  write_ready();
}

// Returns the end of the batch that begins with line `begin`, its longest.
size_t LineQueue::batch_end(size_t begin) const {
  const auto longest = static_cast<int64_t>(waiting_[begin].tokens.size());
  const int64_t fitting = std::max<int64_t>(1, options_.batch_tokens / longest);
  return std::min(waiting_.size(), begin + static_cast<size_t>(std::min(options_.batch_size, fitting)));
}

void LineQueue::translate(std::span<const QueuedLine> batch) {
  std::vector<std::vector<std::string>> outputs = callbacks_.translate(batch);
  HS_CHECK(outputs.size() == batch.size(), "a batch of ", batch.size(), " lines was given ", outputs.size(),
           " translations: each line needs one");
  const int64_t first = lines_ - static_cast<int64_t>(slots_.size()) + 1;  // the number of slots_[0]'s line
  for (size_t i = 0; i < batch.size(); ++i) {
    settle(&slots_[static_cast<size_t>(batch[i].number - first)], batch[i].number, std::move(outputs[i]));
  }
}

void LineQueue::settle(Slot* slot, int64_t number, std::vector<std::string> outputs) const {
  HS_CHECK(outputs.size() <= n_best_, "a line was given ", outputs.size(), " translations, more than n-best ", n_best_);
  outputs.resize(n_best_, callbacks_.nothing ? callbacks_.nothing(number) : "");
  for (std::string& output : outputs) output = on_one_line(std::move(output));
  *slot = {.done = true, .outputs = std::move(outputs)};
}

void LineQueue::write_ready() {
  for (; written_ < slots_.size() && slots_[written_].done; ++written_) {
    for (const std::string& output : slots_[written_].outputs) callbacks_.write(output);
    slots_[written_].outputs.clear();
  }
  if (written_ < slots_.size()) return;
  slots_.clear();
  written_ = 0;
}

}  // namespace headshare
