#include "headshare/text/bpe/word_splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>
#include <string>

#include "headshare/base/error.h"
#include "headshare/base/strings/valid_utf8.h"

namespace headshare {
namespace {

std::string pcre2_message(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// Returns where valid text begins again; the bytes at `position` are not valid UTF-8.
size_t invalid_run_end(std::string_view text, size_t position) {
  for (size_t end = position + 1; end < text.size(); ++end) {
    size_t probe = end;
    if (next_code_point(text, &probe) >= 0) return end;
  }
  return text.size();
}

}  // namespace

struct WordSplitter::Pattern {
  pcre2_code* code = nullptr;
  ~Pattern() { pcre2_code_free(code); }
};

struct WordSplitter::Cursor::State {
  pcre2_match_data* match = nullptr;
  ~State() { pcre2_match_data_free(match); }
};

WordSplitter::WordSplitter(SplitRule rule) : rule_(rule), pattern_(std::make_unique<Pattern>()) {
  if (rule == SplitRule::kNone) return;
  int code = 0;
  PCRE2_SIZE offset = 0;
  const std::string text = pcre2_pattern(rule);
  pattern_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &code, &offset, nullptr);
  HS_CHECK(pattern_->code != nullptr, "PCRE2 does not compile the pattern '", split_name(rule),
           "': ", pcre2_message(code), " at ", offset, "; is it built with Unicode support?");
  // Where PCRE2 has no JIT this fails, and pcre2_match interprets the pattern.
  pcre2_jit_compile(pattern_->code, PCRE2_JIT_COMPLETE);
}

WordSplitter::~WordSplitter() = default;

WordSplitter::Cursor::Cursor(const WordSplitter& splitter) : splitter_(splitter), state_(std::make_unique<State>()) {
  state_->match = pcre2_match_data_create(1, nullptr);
  if (state_->match == nullptr) throw std::bad_alloc();
}

WordSplitter::Cursor::~Cursor() = default;

void WordSplitter::Cursor::reset(std::string_view text) {
  text_ = text;
  position_ = run_start_ = run_end_ = 0;
}

bool WordSplitter::Cursor::next(std::string_view* word) {
  if (position_ == text_.size()) return false;
  const size_t start = position_;
  if (splitter_.rule_ == SplitRule::kNone) {
    position_ = text_.size();
  } else {
    if (position_ == run_end_) {
      run_start_ = position_;
      run_end_ = position_ + valid_utf8_prefix(text_.substr(position_));
    }
    position_ = run_end_ > position_ ? match_end() : run_end_ = invalid_run_end(text_, position_);
  }
  *word = text_.substr(start, position_ - start);
  return true;
}

size_t WordSplitter::Cursor::match_end() {
  const auto* run = reinterpret_cast<PCRE2_SPTR>(text_.data()) + run_start_;
  const int code = pcre2_match(splitter_.pattern_->code, run, run_end_ - run_start_, position_ - run_start_,
                               PCRE2_NO_UTF_CHECK, state_->match, nullptr);
  // Every character is in one of the pattern's classes, so only PCRE2's own limits can end here.
  HS_CHECK(code > 0, "PCRE2 cannot split the text at byte ", position_, " of ", text_.size(), ": ",
           pcre2_message(code));
  return run_start_ + pcre2_get_ovector_pointer(state_->match)[1];
}

}  // namespace headshare
