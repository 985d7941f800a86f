#include "headshare/text/unigram/normal_steps.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/strings/valid_utf8.h"
#include "headshare/text/unicode/canonical_order.h"
#include "headshare/text/unicode/compatibility.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

// A byte may become at most so many characters. The longest decomposition makes 18 of 3; only a hostile file asks for
// more.
constexpr size_t kMostGrowth = 32;

// Collects what a step makes, and refuses it as soon as it is too long: a hostile file takes no memory.
class Made {
 public:
  Made(size_t bytes, const std::string& where) : bytes_(bytes), most_(kMostGrowth * (bytes + 1)), where_(where) {}

  void add(const NormalCharacter& one) {
    if (text_.size() == most_) refuse();
    text_.push_back(one);
  }
  void reserve(size_t characters) { text_.reserve(std::min(characters, most_)); }
  NormalText take() { return std::exchange(text_, {}); }

 private:
  [[noreturn]] void refuse() const {
    throw Error(join_text(where_, ": its normalisation makes more than ", most_, " characters of ", bytes_,
                          bytes_ == 1 ? " byte" : " bytes", ": its steps multiply text; use another tokenizer"));
  }

  const size_t bytes_, most_;
  const std::string& where_;
  NormalText text_;
};

// Returns the code points of UTF-8, without places.
std::vector<int32_t> code_points(std::string_view text) {
  std::vector<int32_t> points;
  for (size_t at = 0; at < text.size();) points.push_back(next_code_point(text, &at));
  return points;
}

NormalText characters_of(std::string_view text) {
  NormalText characters;
  characters.reserve(text.size());
  for (size_t end = 0; end < text.size();) {
    const size_t begin = end;
    const int32_t point = next_code_point(text, &end);
    characters.push_back({point, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  }
  return characters;
}

// Puts `to` for characters that end with `last`: its place is Hugging Face's.
void put(const NormalCharacter& last, const std::vector<int32_t>& to, Made* out) {
  for (const int32_t point : to) out->add({point, last.begin, last.end});
}

void replace(const NormalText& text, const NormalStep& step, Made* out) {
  const std::vector<int32_t> from = code_points(step.from);
  const std::vector<int32_t> to = code_points(step.to);
  const auto is_at = [&](size_t at) {
    if (text.size() - at < from.size()) return false;
    return std::equal(from.begin(), from.end(), text.begin() + static_cast<ptrdiff_t>(at),
                      [](int32_t point, const NormalCharacter& one) { return one.code_point == point; });
  };
  for (size_t at = 0; at < text.size();) {
    if (is_at(at)) {
      at += from.size();
      put(text[at - 1], to, out);
    } else {
      out->add(text[at++]);
    }
  }
}

void collapse(const NormalText& text, const NormalStep& step, Made* out) {
  const std::vector<int32_t> to = code_points(step.to);
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && text[end].code_point == ' ') ++end;
    if (end - at >= 2) {
      put(text[end - 1], to, out);
      at = end;
    } else {
      out->add(text[at++]);
    }
  }
}

void decompose(const NormalText& text, Made* out) {
  CanonicalOrder<NormalCharacter> order;
  const auto put = [out](int32_t c, const NormalCharacter& place) { out->add({c, place.begin, place.end}); };
  for (const NormalCharacter& one : text) {
    int32_t parts[kLongestCompatibility];
    order.add(parts, compatibility_decomposition(one.code_point, parts), one, put);
  }
  order.end_marks(put);
}

void strip_marks(const NormalText& text, Made* out) {
  for (const NormalCharacter& one : text) {
    if (!is_combining_mark(one.code_point)) out->add(one);
  }
}

void lower(const NormalText& text, Made* out) {
  for (NormalCharacter one : text) {
    const int32_t c = one.code_point;
    one.code_point = c == 0x130 ? 'i' : utf8proc_tolower(c);
    out->add(one);
    if (c == 0x130) out->add({0x307, one.begin, one.end});
  }
}

// Goes through the map as Hugging Face tokenizers do: a cluster of characters (grapheme) of less than 6 bytes at once,
// others one by one.
class Mapper {
 public:
  Mapper(const NormalText& text, const Charsmap& map, Made* out) : text_(text), map_(map), out_(out) {}

  void run() {
    for (size_t first = 0, last = 0; first < text_.size(); first = last) {
      last = cluster_end(first);
      if (last > first + 1 && mapped(first, last)) continue;
      for (size_t i = first; i < last; ++i) {
        if (!mapped(i, i + 1)) out_->add(text_[i]);
      }
    }
  }

 private:
  size_t cluster_end(size_t first) const {
    utf8proc_int32_t state = 0;
    size_t last = first + 1;
    while (last < text_.size() &&
           utf8proc_grapheme_break_stateful(text_[last - 1].code_point, text_[last].code_point, &state) == 0) {
      ++last;
    }
    return last;
  }

  // Tells whether the map knows what the characters begin with; puts what it makes of all of them.
  bool mapped(size_t first, size_t last) {
    constexpr size_t kMost = 6;
    bytes_.clear();
    for (size_t i = first; i < last && bytes_.size() < kMost; ++i) append_utf8(text_[i].code_point, &bytes_);
    std::string_view becomes;
    if (bytes_.size() >= kMost || !map_.find(bytes_, &becomes)) return false;
    // Characters are replaced one for one, and what is left over stands where the last character does.
    for (const int32_t point : code_points(becomes)) {
      out_->add({point, text_[first].begin, text_[first].end});
      first = std::min(first + 1, last - 1);
    }
    return true;
  }

  const NormalText& text_;
  const Charsmap& map_;
  Made* out_;
  std::string bytes_;
};

void change(const NormalText& text, const NormalStep& step, Made* out) {
  switch (step.kind) {
    case NormalStepKind::kReplace:
      return replace(text, step, out);
    case NormalStepKind::kCollapseSpaces:
      return collapse(text, step, out);
    case NormalStepKind::kDecompose:
      return decompose(text, out);
    case NormalStepKind::kStripMarks:
      return strip_marks(text, out);
    case NormalStepKind::kLowercase:
      return lower(text, out);
    case NormalStepKind::kCharsmap:
      return Mapper(text, *step.map, out).run();
  }
}

bool is_visible_ascii(char byte) { return byte > ' ' && byte < 0x7F; }

}  // namespace

NormalText normalised(std::string_view text, const std::vector<NormalStep>& steps, const std::string& where) {
  NormalText characters = characters_of(text);
  Made made(text.size(), where);
  for (const NormalStep& step : steps) {
    made.reserve(characters.size());
    change(characters, step, &made);
    characters = made.take();
  }
  return characters;
}

bool works_piecewise(const std::vector<NormalStep>& steps) {
  return std::all_of(steps.begin(), steps.end(), [](const NormalStep& step) {
    return std::all_of(step.from.begin(), step.from.end(), is_visible_ascii);
  });
}

size_t piece_bytes(std::string_view text, std::string_view white) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (is_visible_ascii(text[i - 1]) && white.find(text[i]) != std::string_view::npos) return i;
  }
  return text.size();
}

}  // namespace headshare
