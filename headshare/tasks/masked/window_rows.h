// Encoders read text in windows; WindowRows makes them and tells which of their tokens may be asked about.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "headshare/base/rng.h"
#include "headshare/data/text/batcher.h"
#include "headshare/data/text/token_data.h"
#include "headshare/text/hash/signature.h"
#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// A WindowBatch is a batch of windows [CLS] tokens [SEP].
struct WindowBatch {
  int64_t rows = 0;                              // B
  int64_t length = 0;                            // T
  std::vector<int64_t> ids;                      // [B, T]; [PAD] behind a row that is shorter
  std::vector<int64_t> targets;                  // [B, T]: what is asked for, or kIgnoredTarget
  std::vector<int64_t> lengths;                  // [B], without padding
  int64_t scored = 0;                            // targets that are not ignored
  std::vector<Signature> loose_signatures = {};  // of ids below 0: -1 - k has number k

  bool padded() const;
};

class WindowRows {
 public:
  // `use` says what needs the windows and which tokenizers can: "masked-LM training (--tokenizer wordpiece ...)".
  // Throws Error, naming it and the tokenizer's file where it has one, when the tokenizer lacks a special token of
  // windows.
  WindowRows(const Tokenizer& tokenizer, const std::string& use, const std::string& path);

  // Appends a row made of a window's tokens, without targets.
  void add_row(std::span<const int64_t> tokens, WindowBatch* batch) const;

  // Pads all rows to the longest; further rows cannot be added.
  void pad(WindowBatch* batch) const;

  // Tells whether a token may be asked about: special tokens, [UNK] among them, never are.
  bool ordinary(int64_t token) const {
    return token < 0 || static_cast<size_t>(token) >= special_.size() || special_[static_cast<size_t>(token)] == 0;
  }

  // Returns how many tokens of text a window of `context` holds: [CLS] and [SEP] take two. Throws Error when nothing is
  // left.
  static int64_t room(int64_t context);

 protected:
  // Returns a special token; throws the constructor's Error.
  static int64_t needed(const Tokenizer& tokenizer, SpecialToken role, const std::string& use, const std::string& path);

 private:
  int64_t classify_, separate_, padding_;
  std::vector<char> special_;  // long enough for the special token with the largest id
};

// A ChangeRow sets the targets of a padded batch's row, with random numbers that are the row's own.
using ChangeRow = std::function<void(int64_t row, Philox& random, WindowBatch* batch)>;

// Makes padded windows of a batch of text, each changed with the random numbers of the stream (key, its row).
WindowBatch changed_windows(const Batch& text, const WindowRows& rows, uint64_t key, const ChangeRow& change);

// Throws Error when none of these tokens may be asked about; `what` names them: "validation text".
void check_askable(const TokenData& tokens, const WindowRows& rows, const std::string& what);

// DisjointWindows cut a text, the last one shorter: encoders are scored on them.
class DisjointWindows {
 public:
  // Cuts the first `most` tokens, or all. Throws Error when there are none.
  DisjointWindows(TokenData tokens, const WindowRows& rows, int64_t context, std::optional<int64_t> most = {});

  int64_t windows() const { return windows_; }
  int64_t tokens() const { return size_; }

  // Returns the windows first .. first + count - 1, as they are and unpadded.
  WindowBatch rows(int64_t first, int64_t count) const;

 private:
  TokenData tokens_;
  const WindowRows& rows_;
  int64_t size_;
  int64_t room_;
  int64_t windows_;
};

}  // namespace headshare
