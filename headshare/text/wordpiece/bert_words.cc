#include "headshare/text/wordpiece/bert_words.h"

#include <utf8proc.h>

#include "headshare/text/unicode/bert_characters.h"
#include "headshare/text/unicode/canonical_order.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

class Reader {
 public:
  Reader(const BertNormalization& normalization, size_t most_characters,
         const std::function<void(const BertWord&)>& visit)
      : normalization_(normalization), most_characters_(most_characters), visit_(visit) {}

  void read(std::string_view text) {
    for (size_t end = 0; end < text.size();) {
      const size_t begin = end;
      const int32_t code_point = next_code_point(text, &end);
      add(code_point, {begin, end});
    }
    end_word();
  }

 private:
  void add(int32_t c, TextSpan source) {
    if (normalization_.clean_text && is_bert_dropped(c)) return;
    const bool alone = normalization_.space_chinese && is_bert_ideograph(c);
    if (alone) end_word();
    if (normalization_.strip_accents) {
      decompose(c, source);
    } else {
      lower(c, source);
    }
    if (alone) end_word();
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
    if (!normalization_.lowercase) return put(c, source);
    if (c < 0x80) return put(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c, source);
    if (c != 0x130) return put(utf8proc_tolower(c), source);
    put('i', source);
    put(0x307, source);
  }

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

  void end_word() {
    order_.end_marks(without_accents());
    finish();
  }

  void finish() {
    if (word_.characters == 0) return;
    visit_(word_);
    word_.text.clear();
    word_.sources.clear();
    word_.characters = 0;
  }

  const BertNormalization& normalization_;
  const size_t most_characters_;
  const std::function<void(const BertWord&)>& visit_;
  BertWord word_;
  CanonicalOrder<TextSpan> order_;
};

}  // namespace

void for_each_bert_word(std::string_view text, const BertNormalization& normalization, size_t most_characters,
                        const std::function<void(const BertWord&)>& visit) {
  Reader(normalization, most_characters, visit).read(text);
}

ByteRole byte_role(char byte) {
  if (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') return ByteRole::kSpace;
  return is_ascii_sign(byte) ? ByteRole::kSign : ByteRole::kWord;
}

}  // namespace headshare
