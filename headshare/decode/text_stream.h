// Turns tokens into text as they come: whole code points only, and nothing past a stop string.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headshare {

using DecodeFunction = std::function<std::string(std::span<const int32_t> ids)>;

// Returns how many bytes at the end of `text` begin a UTF-8 sequence and do not finish it: 0 to 3. Bytes that cannot
// become valid by more input count as finished.
size_t unfinished_utf8(std::string_view text);

// Decodes a growing sequence piece by piece. A token's text can depend on its neighbours (a leading
// space, a code point split over byte tokens), so each token is decoded behind a few earlier ones
// whose text is then taken off: the pieces joined are decode(prompt + output) behind decode(prompt).
// Text that ends in an unfinished code point, or in U+FFFD (some tokenizers' sign for one), waits for
// the next token. The cost of a token does not grow with the text.
class TextStream {
 public:
  TextStream(DecodeFunction decode, std::span<const int32_t> prompt);

  // Returns the text that is certain now, possibly "".
  std::string push(int32_t token);
  // Returns the text that waited, as it is, when no more tokens will come.
  std::string finish();

 private:
  std::string pending() const;  // the text of window_ behind that of its first shown_ tokens
  std::string take(std::string text);

  DecodeFunction decode_;
  std::vector<int32_t> window_;
  size_t shown_ = 0;  // how many tokens of window_ are out already
};

// Finds stop strings in text that comes in pieces of any size. The first stop string to be complete
// wins; of several complete at the same byte, the longest.
class StopMatcher {
 public:
  // Throws Error for an empty stop string.
  explicit StopMatcher(std::vector<std::string> stops);

  // Returns the text that may be shown: it holds no stop string, and no beginning of one at its end. After found() it
  // is "".
  std::string push(std::string_view text);
  // Returns the text that waited as a possible beginning, when no more text will come; "" after found().
  std::string finish();
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace headshare
