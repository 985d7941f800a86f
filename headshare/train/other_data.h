// The Error of a run that is to go on with other data than it began with: no damage of a checkpoint, so that no earlier
// one is tried.
#pragma once

#include "headshare/base/error.h"

namespace headshare {

class OtherData : public Error {
 public:
  using Error::Error;
};

}  // namespace headshare
