// An added token is found in a text as a whole, before a tokenizer's own rules see the text.
#pragma once

#include <cstdint>
#include <string>

namespace headshare {

// It is Hugging Face tokenizers' AddedToken. White space is Unicode's White_Space, so that U+001C to U+001F are none.
struct AddedToken {
  int32_t id = 0;
  std::string text = {};      // what is searched for: UTF-8, not empty
  bool special = false;       // for programs that leave such tokens out of what they print; the search is the same
  bool strips_left = false;   // white space before it is part of it
  bool strips_right = false;  // white space behind it is part of it
  bool single_word = false;   // is not found where a letter, digit, mark or joiner ("_") stands beside it
  bool normalized = false;    // is searched for normalised, in the normalised text

  bool operator==(const AddedToken&) const = default;

  bool has_options() const { return strips_left || strips_right || single_word || normalized; }
};

}  // namespace headshare
