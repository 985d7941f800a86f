#include "headshare/data/byte_order_mark.h"

#include <mutex>
#include <set>
#include <string_view>

#include "headshare/base/notice.h"

namespace headshare {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Tells whether this is the first notice for the input. Inputs are read several times: to train a tokenizer, to be
// tokenised, to be compared.
bool is_first(const std::string& input) {
  static std::mutex mutex;
  static std::set<std::string> noted;
  const std::lock_guard lock(mutex);
  return noted.insert(input).second;
}

}  // namespace

bool drop_byte_order_mark(std::string* text, const std::string& input) {
  if (!text->starts_with(kByteOrderMark)) return false;
  text->erase(0, kByteOrderMark.size());
  if (is_first(input)) notice(input + " begins with a byte order mark, which is no text: it is left out");
  return true;
}

}  // namespace headshare
