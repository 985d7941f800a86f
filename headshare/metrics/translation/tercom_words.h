// Cuts lines into words for TER: this is Tercom's normalization, as sacreBLEU has it.
#pragma once

#include <string>
#include <string_view>

namespace headshare {

struct TercomOptions {
  bool case_sensitive = false;  // else lower case
  bool normalized = false;      // entities become signs, signs become words
  bool no_punctuation = false;  // . , ? : ; ! " ( ) are left out
  bool asian_support = false;   // with `normalized`, Chinese characters become words; with `no_punctuation`, their
                                // signs are left out
};

// Returns `line` (valid UTF-8) with white space between its words; split_words() gives them.
std::string tercom_words(const TercomOptions& options, std::string_view line);

}  // namespace headshare
