#include "headshare/host/explain_error.h"

#include <c10/util/Exception.h>

#include <new>

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"

namespace headshare {
namespace {

// Returns the first line: libtorch's messages go on with source lines and a stack.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string explained(const c10::Error& error) {
  const std::string text = first_line(error.what_without_backtrace());
  const bool memory =
      text.find("allocate memory") != std::string::npos || text.find("out of memory") != std::string::npos;
  return (memory ? "not enough memory: " : "libtorch: ") + text;
}

}  // namespace

std::string explained(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& own) {
    return own.what();
  } catch (const std::bad_alloc&) {
    return "not enough memory";
  } catch (const c10::Error& torch) {
    return explained(torch);
  } catch (const fs::filesystem_error& file) {
    return join_text("cannot access ", file.path1().string(), ": ", file.code().message());
  } catch (const std::exception& defect) {
    return join_text("a defect in headshare: ", first_line(defect.what()));
  } catch (...) {
    return "a defect in headshare: an unknown exception";
  }
}

}  // namespace headshare
