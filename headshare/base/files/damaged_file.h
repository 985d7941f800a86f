// This error says that a file exists and does not hold what it should.
#pragma once

#include "headshare/base/error.h"

namespace headshare {

// It is no mistake in how a program was called, wherever the file is looked at: the call could be right.
class DamagedFile : public Error {
 public:
  using Error::Error;
};

}  // namespace headshare
