// Mistakes in a call are UsageErrors, as opposed to files and machines that fail the program.
#pragma once

#include "headshare/base/error.h"
#include "headshare/base/files/damaged_file.h"

namespace headshare {

// A UsageError is a mistake in the options of a call.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Runs `check` (such as resolving options) and turns its Errors into UsageErrors, except those about damaged files.
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
