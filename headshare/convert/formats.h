// The formats of other programs that models come from and go to.
#pragma once

#include "headshare/convert/foreign/foreign_format.h"

namespace headshare {

const std::vector<ForeignFormat>& foreign_formats();

// The names of those that are read, and of those that are written.
std::vector<std::string> formats_read();
std::vector<std::string> formats_written();

// The format of that name, which is read; another name is refused with the nearest.
const ForeignFormat& find_format(const std::string& name);

// The format of that name, which is written; nullptr where there is none.
const ForeignFormat* find_written_format(const std::string& name);

}  // namespace headshare
