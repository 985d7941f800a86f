#include "headshare/data/strict_json.h"

#include <set>
#include <vector>

#include "headshare/base/error.h"

namespace headshare {

nlohmann::json parse_strict_json(std::string_view text, const std::string& where, int most_depth) {
  // nlohmann::json reads a NUL byte as the end of its input and skips a byte order mark.
  HS_CHECK(text.find('\0') == std::string_view::npos, where, ": not JSON: a NUL byte at byte ", text.find('\0'));
  HS_CHECK(!text.starts_with("\xEF\xBB\xBF"), where, ": not JSON: it begins with a byte order mark");
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> keys;  // of the objects around the current position; lists have an empty set
  const auto watch = [&](int, Event event, nlohmann::json& parsed) {
    if (event == Event::object_start || event == Event::array_start) {
      keys.emplace_back();
      HS_CHECK(keys.size() <= static_cast<size_t>(most_depth), where, ": JSON nested deeper than ", most_depth,
               " levels");
    } else if (event == Event::object_end || event == Event::array_end) {
      keys.pop_back();
    } else if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      HS_CHECK(keys.back().insert(key).second, where, ": the key '", key, "' stands twice in one JSON object");
    }
    return true;
  };
  try {
    return nlohmann::json::parse(text, watch);
  } catch (const nlohmann::json::exception& error) {
    throw Error(join_text(where, ": not JSON: ", error.what()));
  }
}

}  // namespace headshare
