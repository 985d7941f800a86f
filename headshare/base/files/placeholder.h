// Some texts of options name something: --help shows it in capitals in place of TEXT, as in --out DIR.
#pragma once

#include <string>

#include "headshare/base/options/field.h"

namespace headshare {

// Makes of a field of text, or of several texts, one whose texts name a file; a directory; either of them; a trained
// model (checkpoint or run directory). What is named becomes the field's range.
Field naming_file(Field text);
Field naming_directory(Field text);
Field naming_path(Field text);
Field naming_model(Field text);

// Makes of such a field one for which "" means something, which its help says. Its range becomes "FILE or empty".
Field or_empty(Field naming);

// Returns the placeholder of a field, such as "FILE"; "" where its range is none of these.
std::string placeholder_of(const Field& field);

// Throws Error where `text` is empty and the field names something. Such a value, as a shell's variable that is not set
// leaves, would be taken as no name at all.
void refuse_empty(const Field& field, const std::string& text);

}  // namespace headshare
