// GGUF files as a format that is written: llama.cpp and the programs around it run them.
#pragma once

#include "headshare/convert/foreign/foreign_format.h"

namespace headshare {

ForeignFormat gguf_format();

}  // namespace headshare
