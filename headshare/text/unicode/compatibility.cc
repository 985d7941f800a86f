#include "headshare/text/unicode/compatibility.h"

#include <utf8proc.h>

#include "headshare/text/unicode/code_point_range.h"

namespace headshare {
namespace {

// Characters that decompose since Unicode 10 to 15, with what lies between them and does not decompose.
constexpr CodePointRange kYoungDecompositions[] = {{0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xAB69, 0xAB69},
                                                   {0x10781, 0x107BA}, {0x11938, 0x11938}, {0x1E030, 0x1E06D},
                                                   {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

// Marks that Unicode 10 to 15 brought, with what lies between them and is none.
constexpr CodePointRange kYoungMarks[] = {
    {0x7FD, 0x7FD},     {0x898, 0x8D3},     {0x9FE, 0x9FE},     {0xAFA, 0xAFF},     {0xB55, 0xB55},
    {0xC04, 0xC3C},     {0xCF3, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},
    {0xECE, 0xECE},     {0x1715, 0x1715},   {0x180F, 0x180F},   {0x1ABF, 0x1ACE},   {0x1CF7, 0x1CF7},
    {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0xA8FF, 0xA8FF},   {0x10D24, 0x10F85}, {0x11070, 0x11074},
    {0x110C2, 0x110C2}, {0x11145, 0x11146}, {0x111C9, 0x111C9}, {0x111CE, 0x111CF}, {0x11241, 0x11241},
    {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x1182C, 0x11A99}, {0x11D31, 0x13455}, {0x16F4F, 0x16F4F},
    {0x16F7F, 0x16F87}, {0x16FE4, 0x16FF1}, {0x1CF00, 0x1CF46}, {0x1E08F, 0x1E4EF}};

}  // namespace

int compatibility_decomposition(int32_t c, int32_t (&parts)[kLongestCompatibility]) {
  parts[0] = c;
  if (c < 0xA0 || is_in(kYoungDecompositions, c)) return 1;
  int unused = 0;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  return static_cast<int>(utf8proc_decompose_char(c, parts, kLongestCompatibility, options, &unused));
}

bool is_combining_mark(int32_t c) {
  if (c < 0x300) return false;
  if (c == 0x1CF2 || c == 0x1CF3) return true;  // letters since Unicode 12
  const utf8proc_category_t category = utf8proc_category(c);
  const bool mark = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
  return mark && !is_in(kYoungMarks, c);
}

}  // namespace headshare
