#include "headshare/host/explain_error.h"

#include <c10/util/Exception.h>

#include <new>
#include <regex>

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"

namespace headshare {
namespace {

// Returns the first line: libtorch's messages go on with source lines and a stack.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string explained(const c10::Error& error) {
  const std::string text = first_line(error.what_without_backtrace());
  if (const std::string full = card_full_text(text); !full.empty()) return full;
  const bool memory =
      text.find("allocate memory") != std::string::npos || text.find("out of memory") != std::string::npos;
  return (memory ? "not enough memory: " : "libtorch: ") + text;
}

}  // namespace

std::string card_full_text(const std::string& text) {
  static const std::regex pattern(
      "out of memory.*Tried to allocate ([0-9.]+ [A-Za-z]+).*GPU ([0-9]+) has a total capacity of ([0-9.]+ [A-Za-z]+) "
      "of which ([0-9.]+ [A-Za-z]+) is free.*");
  std::smatch found;
  if (!std::regex_search(text, found, pattern)) return "";
  return join_text("the memory of cuda:", found.str(2), " is used up: ", found.str(1), " more were needed, and of its ",
                   found.str(3), " ", found.str(4),
                   " are free; use a smaller --batch-size (with --accumulation for the "
                   "same step), or --activation-checkpointing, or a card that no other program uses: there --resume "
                   "goes on from the last checkpoint");
}

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
