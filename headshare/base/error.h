// Errors have two kinds: what the user can cause throws headshare::Error; what only we can cause is an HS_DCHECK.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace headshare {

// This is a mistake or a failure that the user can do something about. The message names what was wrong, the numbers
// involved and the way out; nothing in the library prints, exits or aborts.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The user asked to stop (Ctrl-C). This is not an Error: the run ends well, after saving its state.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Streams all arguments into one string: join_text("heads ", 3, " > ", 2).
template <class... Parts>
std::string join_text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace headshare

// Throws Error unless the condition holds:
//   HS_CHECK(H * D == E, "heads x head width must equal model width: ", H, " x ", D, " != ", E);
#define HS_CHECK(condition, ...)                                                     \
  do {                                                                               \
    if (!(condition)) throw ::headshare::Error(::headshare::join_text(__VA_ARGS__)); \
  } while (false)

// Checks, in debug builds, a condition that only a defect in headshare can break.
#ifdef NDEBUG
#define HS_DCHECK(condition, ...) \
  do {                            \
  } while (false)
#else
#define HS_DCHECK(condition, ...)                                                                                  \
  do {                                                                                                             \
    if (!(condition))                                                                                              \
      throw std::logic_error(::headshare::join_text(__FILE__, ":", __LINE__, ": " #condition " ", ##__VA_ARGS__)); \
  } while (false)
#endif
