// Composes text to NFC and maps bytes back to the original.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headshare/text/unicode/text_span.h"

namespace headshare {

// Holds a text in NFC: what Hugging Face tokenizers make of it, with the decompositions and combining classes of
// Unicode 9 (bert_characters.h). Bytes that are not valid UTF-8 stay, and nothing composes across them.
class ComposedText {
 public:
  // `text` must outlive this object, which holds a copy only of a text that changes.
  explicit ComposedText(std::string_view text);

  std::string_view text() const { return changes_.empty() ? original_ : std::string_view(made_); }

  // Returns the bytes of the original from which the bytes `span` of text() come. A letter and its marks share theirs
  // where they change.
  TextSpan original(TextSpan span) const;

 private:
  struct Change {
    TextSpan made, original;
  };

  void compose(size_t begin, size_t end);
  size_t original_begin(size_t at) const;
  size_t original_end(size_t at) const;

  std::string_view original_;
  std::string made_;
  size_t copied_ = 0;            // how much of the original made_ stands for
  std::vector<Change> changes_;  // in order; what stands between is the same in both
};

}  // namespace headshare
