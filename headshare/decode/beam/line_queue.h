// Translates lines in batches of like length: as many lines go out as came in.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/base/options/field.h"

namespace headshare {

// This says what becomes of a line that is not UTF-8, or has too many tokens.
enum class BadLines {
  kRepair,  // U+FFFD for each ill-formed part; only the first tokens are translated; with a warning
  kEmpty,   // an empty line, with a warning
  kRefuse,  // Error with the line's number
};

struct LineQueueOptions {
  int64_t batch_size = 64;      // lines of a batch at most
  int64_t batch_tokens = 4096;  // lines x tokens of the longest at most; a longer line is a batch by itself
  int64_t window = 1024;        // lines that wait at most, to be sorted by length
  int64_t max_source = 1024;    // tokens of a line at most
  BadLines bad_lines = BadLines::kRepair;
};

Fields fields(LineQueueOptions& options);

// This is a line to translate; it has at least one token.
struct QueuedLine {
  int64_t number = 0;  // from 1
  std::vector<int32_t> tokens;
};

struct LineQueueCallbacks {
  // Returns the tokens of a line of valid UTF-8, without special tokens. A line without tokens is not translated.
  std::function<std::vector<int32_t>(const std::string& line)> encode;
  // Returns the outputs of each line, at most n_best. Missing ones become empty lines.
  std::function<std::vector<std::vector<std::string>>(std::span<const QueuedLine> batch)> translate;
  // Takes one line of output without its end. Line breaks inside an output have become spaces.
  std::function<void(const std::string& line)> write;
  // Receives the warnings, by the line's number; may be empty.
  std::function<void(int64_t number, const std::string& what)> warn;
  // Returns each output of a line that is not translated; without this function they are empty.
  std::function<std::string(int64_t number)> nothing = {};
};

// A caller must push() every line and call flush() whenever the input has no more line at the moment, and at its end.
// So a full input is translated in large sorted batches, and a slow one line by line. Every line gives exactly n_best
// lines of output, in the order of the input; they are written as soon as all earlier lines are.
//
// Exceptions of a callback pass through. The queue then must not be used again; all that was written is right.
class LineQueue {
 public:
  // Throws Error for options out of range.
  LineQueue(const LineQueueOptions& options, int64_t n_best, LineQueueCallbacks callbacks);

  // Takes a line without its end. Translates once a window is full.
  void push(std::string line);

  // Translates and writes all lines that wait.
  void flush();

  int64_t lines() const { return lines_; }  // pushed so far

 private:
  struct Slot {
    bool done = false;
    std::vector<std::string> outputs = {};  // n_best once done
  };

  std::vector<int32_t> read(std::string line) const;
  void warn(const std::string& what) const;
  std::vector<int32_t> warned(const std::string& what) const;
  size_t batch_end(size_t begin) const;
  void translate(std::span<const QueuedLine> batch);
  void settle(Slot* slot, int64_t number, std::vector<std::string> outputs) const;
  void write_ready();

  LineQueueOptions options_;
  size_t n_best_;
  LineQueueCallbacks callbacks_;
  int64_t lines_ = 0;
  std::vector<Slot> slots_ = {};          // lines that are not yet written, in order
  size_t written_ = 0;                    // slots that are written already
  std::vector<QueuedLine> waiting_ = {};  // lines to translate
};

}  // namespace headshare
