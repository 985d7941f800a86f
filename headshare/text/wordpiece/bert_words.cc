#include "headshare/text/wordpiece/bert_words.h"

#include <utf8proc.h>

#include <utility>

#include "headshare/text/unicode/bert_characters.h"
#include "headshare/text/unicode/canonical_order.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

// Gives the characters of the normalised text to sink.put(code point, source).
template <class Sink>
class Normaliser {
 public:
  Normaliser(const BertNormalization& normalization, Sink* sink) : normalization_(normalization), sink_(sink) {}

  void read(std::string_view text) {
    for (size_t end = 0; end < text.size();) {
      const size_t begin = end;
      const int32_t code_point = next_code_point(text, &end);
      add(code_point, {begin, end});
    }
    order_.end_marks(without_accents());
  }

 private:
  void add(int32_t c, TextSpan source) {
    if (normalization_.clean_text) {
      if (is_bert_dropped(c)) return;
      if (is_bert_space(c)) c = ' ';
    }
    const bool alone = normalization_.space_chinese && is_bert_ideograph(c);
    if (alone) change(' ', source);
    change(c, source);
    if (alone) change(' ', source);
  }

  void change(int32_t c, TextSpan source) {
    if (normalization_.strip_accents) {
      decompose(c, source);
    } else {
      lower(c, source);
    }
  }

  auto without_accents() {
    return [this](int32_t c, TextSpan source) {
      if (!is_bert_accent(c)) lower(c, source);
    };
  }

  void decompose(int32_t c, TextSpan source) {
    int32_t parts[kLongestDecomposition];
    order_.add(parts, bert_decomposition(c, parts), source, without_accents());
  }

  void lower(int32_t c, TextSpan source) {
    if (!normalization_.lowercase) return sink_->put(c, source);
    if (c < 0x80) return sink_->put(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c, source);
    if (c != 0x130) return sink_->put(utf8proc_tolower(c), source);
    sink_->put('i', source);
    sink_->put(0x307, source);
  }

  const BertNormalization& normalization_;
  Sink* sink_;
  CanonicalOrder<TextSpan> order_;
};

// Cuts the normalised text into words.
class WordCutter {
 public:
  WordCutter(size_t most_characters, const std::function<void(const BertWord&)>& visit)
      : most_characters_(most_characters), visit_(visit) {}

  void put(int32_t c, TextSpan source) {
    if (is_bert_space(c)) return finish();
    const bool alone = is_bert_sign(c);
    if (alone) finish();
    if (word_.characters++ == 0) word_.span = source;
    word_.span.end = source.end;
    if (word_.characters <= most_characters_) {
      append_utf8(c, &word_.text);
      word_.sources.resize(word_.text.size(), source);
    }
    if (alone) finish();
  }

  void finish() {
    if (word_.characters == 0) return;
    visit_(word_);
    word_.text.clear();
    word_.sources.clear();
    word_.characters = 0;
  }

 private:
  const size_t most_characters_;
  const std::function<void(const BertWord&)>& visit_;
  BertWord word_;
};

struct TextMaker {
  BertText made;

  void put(int32_t c, TextSpan source) {
    append_utf8(c, &made.text);
    made.sources.resize(made.text.size(), source);
  }
};

}  // namespace

void for_each_bert_word(std::string_view text, const BertNormalization& normalization, size_t most_characters,
                        const std::function<void(const BertWord&)>& visit) {
  WordCutter cutter(most_characters, visit);
  Normaliser<WordCutter>(normalization, &cutter).read(text);
  cutter.finish();
}

BertText bert_normal_text(std::string_view text, const BertNormalization& normalization) {
  TextMaker maker;
  Normaliser<TextMaker>(normalization, &maker).read(text);
  return std::move(maker.made);
}

ByteRole byte_role(char byte) {
  if (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') return ByteRole::kSpace;
  return is_ascii_sign(byte) ? ByteRole::kSign : ByteRole::kWord;
}

}  // namespace headshare
