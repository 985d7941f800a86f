#include "headshare/data/text/allowed_text.h"

#include "headshare/base/error.h"
#include "headshare/base/strings/valid_utf8.h"
#include "headshare/data/repair_utf8.h"

namespace headshare {

std::string_view allowed_text(std::string_view text, const TextSourceOptions& options, const std::string& where,
                              uint64_t offset, std::string* storage) {
  if (!options.allow_binary) {
    const size_t nul = text.find('\0');
    HS_CHECK(nul == std::string_view::npos, where, " is not text: a NUL byte at byte ", offset + nul,
             " (a binary file, or UTF-16?); convert it to UTF-8, or set --allow-binary");
  }
  if (options.invalid_utf8 == InvalidUtf8::kKeep) return text;
  const size_t valid = valid_utf8_prefix(text);
  if (valid == text.size()) return text;
  HS_CHECK(options.invalid_utf8 == InvalidUtf8::kReplace, where, " is not UTF-8: byte ", offset + valid,
           " (Latin-1?); convert it, or set --invalid-utf8 replace");
  *storage = replace_invalid_utf8(text);
  return *storage;
}

}  // namespace headshare
