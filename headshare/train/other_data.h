// This is the Error of a run that is to go on with other data than it began with. The checkpoint is not damaged, so no
// earlier one is tried.
#pragma once

#include "headshare/base/error.h"

namespace headshare {

class OtherData : public Error {
 public:
  using Error::Error;
};

}  // namespace headshare
