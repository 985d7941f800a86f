// Texts of options that name something: --help shows it in capitals in place of TEXT, as in --out DIR.
#pragma once

#include <string>

#include "headshare/base/field.h"

namespace headshare {

// A field of text, or of several texts, each of which names a file; a directory; either of them; a trained model
// (checkpoint or run directory). What is named becomes the field's range.
Field naming_file(Field text);
Field naming_directory(Field text);
Field naming_path(Field text);
Field naming_model(Field text);

// Tells whether a field's range is one of these.
bool is_placeholder(const std::string& range);

}  // namespace headshare
