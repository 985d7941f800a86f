// Sorts combining marks into Unicode's canonical order, for characters that are decomposed one after another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "headshare/text/unicode/bert_characters.h"

namespace headshare {

// Holds marks back until the next character that is none. `Source` says where a character stood. Sources stay in the
// order of the text, one for each character, while the marks are sorted: spans ascend, and are Hugging Face's.
template <class Source>
class CanonicalOrder {
 public:
  // Adds the `count` parts that the character of `source` was decomposed into; put(code point, source) gets what is
  // settled.
  template <class Put>
  void add(const int32_t* parts, int count, const Source& source, const Put& put) {
    for (int i = 0; i < count; ++i) {
      const int combining_class = bert_combining_class(parts[i]);
      if (combining_class == 0) end_marks(put);
      marks_.push_back({parts[i], combining_class, i == 0});
      if (i == 0) sources_.push_back(source);
      if (combining_class == 0) end_marks(put);
    }
  }

  // Puts what is held back.
  template <class Put>
  void end_marks(const Put& put) {
    if (marks_.size() > 1) {
      std::stable_sort(marks_.begin(), marks_.end(),
                       [](const Mark& a, const Mark& b) { return a.combining_class < b.combining_class; });
    }
    size_t next = 0;
    for (const Mark& mark : marks_) {
      if (mark.first) source_ = sources_[next++];
      put(mark.code_point, source_);
    }
    marks_.clear();
    sources_.clear();
  }

 private:
  struct Mark {
    int32_t code_point;
    int combining_class;
    bool first;  // of its character's decomposition
  };

  std::vector<Mark> marks_;      // not yet in canonical order
  std::vector<Source> sources_;  // of the characters that these come from
  Source source_{};              // of the last character whose first part was put
};

}  // namespace headshare
