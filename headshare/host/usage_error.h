// Mistakes in what a program was asked for, as opposed to files and machines that fail it.
#pragma once

#include "headshare/base/damaged_file.h"
#include "headshare/base/error.h"

namespace headshare {

// This error is a mistake in the options of a call.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Runs `check` (such as resolving options); its Errors are mistakes of the call, but for damaged files.
template <class Check>
auto as_usage(const Check& check) {
  try {
    return check();
  } catch (const UsageError&) {
    throw;
  } catch (const DamagedFile&) {
    throw;
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace headshare
