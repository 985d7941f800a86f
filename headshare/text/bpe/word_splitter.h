// Cuts text into the words within which byte-level BPE merges.
#pragma once

#include <memory>
#include <string_view>

#include "headshare/text/bpe/split_rule.h"

namespace headshare {

// A splitter is thread-safe: many cursors may use one.
class WordSplitter {
 public:
  explicit WordSplitter(SplitRule rule);
  ~WordSplitter();

  SplitRule rule() const { return rule_; }

  // Gives the words of one text, in order; together they are all of its bytes. The pattern sees valid UTF-8 only: each
  // longest run of bytes that is not valid is a word of its own, and the valid text before and after it is split as if
  // it stood alone.
  class Cursor {
   public:
    explicit Cursor(const WordSplitter& splitter);
    ~Cursor();

    // Begins a new text, which must outlive the cursor's use of it.
    void reset(std::string_view text);

    // Gives the next word, never empty; returns false at the end.
    bool next(std::string_view* word);

   private:
    struct State;
    size_t match_end();  // of the pattern at position_

    const WordSplitter& splitter_;
    std::unique_ptr<State> state_;
    std::string_view text_;
    size_t position_ = 0;
    size_t run_start_ = 0;  // the valid UTF-8 around position_ is [run_start_, run_end_)
    size_t run_end_ = 0;
  };

 private:
  struct Pattern;
  SplitRule rule_;
  std::unique_ptr<Pattern> pattern_;
};

}  // namespace headshare
