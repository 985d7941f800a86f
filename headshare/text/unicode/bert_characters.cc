#include "headshare/text/unicode/bert_characters.h"

#include <utf8proc.h>

#include "headshare/text/unicode/code_point_range.h"

namespace headshare {
namespace {

// Marks, signs and format characters that Unicode 9 to 15 brought, with what lies between them and is
// none of these. tests/oracles/test_wordpiece.py compares every code point with Hugging Face tokenizers.
constexpr CodePointRange kYoung[] = {
    {0x61D, 0x61D},     {0x7FD, 0x7FD},     {0x890, 0x8E2},     {0x9FD, 0x9FE},     {0xA76, 0xA76},
    {0xAFA, 0xAFF},     {0xB55, 0xB55},     {0xC04, 0xC3C},     {0xC77, 0xC77},     {0xC84, 0xC84},
    {0xD00, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},
    {0x180F, 0x1886},   {0x1ABF, 0x1ACE},   {0x1B7D, 0x1B7E},   {0x1DF6, 0x1DFB},   {0x2E43, 0x2E5D},
    {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},   {0xA8FF, 0xA8FF},   {0xA9BD, 0xA9BD},   {0x10D24, 0x10F89},
    {0x11070, 0x11074}, {0x110C2, 0x110CD}, {0x111CF, 0x111CF}, {0x1123E, 0x11241}, {0x1133B, 0x1133B},
    {0x11438, 0x1145E}, {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1182F, 0x11FFF}, {0x12FF1, 0x13455},
    {0x16E97, 0x16F4F}, {0x16FE2, 0x16FE4}, {0x1CF00, 0x1CF46}, {0x1E000, 0x1E4EF}, {0x1E944, 0x1E95F}};

// Those of them whose combining class is known all the same: marks of Unicode 9.
constexpr CodePointRange kOfUnicode9[] = {{0x8D4, 0x8E1},     {0x1DFB, 0x1DFB},   {0x11442, 0x11446},
                                          {0x11C3F, 0x11C3F}, {0x1E000, 0x1E02A}, {0x1E944, 0x1E94A}};

bool is_mark_or_sign(utf8proc_category_t category) {
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_CF ||
         (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO);
}

// The general category in Unicode 8, as far as the rules below ask for it.
utf8proc_category_t category_of(int32_t c) {
  if (c == 0x1734) return UTF8PROC_CATEGORY_MN;                  // now Mc
  if (c == 0x166D || c == 0x111C9) return UTF8PROC_CATEGORY_PO;  // now So and Mn
  const utf8proc_category_t category = utf8proc_category(c);
  return is_mark_or_sign(category) && is_in(kYoung, c) ? UTF8PROC_CATEGORY_LO : category;
}

}  // namespace

bool is_ascii_sign(int32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool is_bert_space(int32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  const utf8proc_category_t category = utf8proc_category(c);
  return c == 0x85 || (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP);
}

bool is_bert_dropped(int32_t c) {
  if (c < 0x80) return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
  if (c == 0xFFFD) return true;
  const utf8proc_category_t category = category_of(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

bool is_bert_sign(int32_t c) {
  if (c < 0x80) return is_ascii_sign(c);
  const utf8proc_category_t category = category_of(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

// The blocks of ideographs that Hugging Face has. The original's begins at U+2B820 where this, like
// Hugging Face's, begins at U+2B920.
bool is_bert_ideograph(int32_t c) {
  constexpr CodePointRange kIdeographs[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                            {0x20000, 0x2A6DF}, {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF},
                                            {0x2F800, 0x2FA1F}};
  return c >= 0x3400 && is_in(kIdeographs, c);
}

bool is_bert_accent(int32_t c) { return c >= 0x80 && category_of(c) == UTF8PROC_CATEGORY_MN; }

int bert_combining_class(int32_t c) {
  if (c < 0x300) return 0;
  const int combining_class = utf8proc_get_property(c)->combining_class;
  if (combining_class == 0) return 0;
  const bool later = c == 0x1715 || c == 0x16FF0 || c == 0x16FF1 || (is_in(kYoung, c) && !is_in(kOfUnicode9, c));
  return later ? 0 : combining_class;
}

int bert_decomposition(int32_t c, int32_t (&parts)[kLongestDecomposition]) {
  parts[0] = c;
  if (c < 0xC0 || c == 0x11938) return 1;  // U+11938 decomposes since Unicode 13
  int unused = 0;
  return static_cast<int>(utf8proc_decompose_char(c, parts, kLongestDecomposition, UTF8PROC_DECOMPOSE, &unused));
}

}  // namespace headshare
