#include "headshare/data/benchmarks/json_members.h"

#include <unordered_set>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/data/byte_stream.h"

namespace headshare {
namespace {

using Json = nlohmann::json;

// This class keeps members in order: nlohmann::json keeps no order, and its ordered form looks for every new name among
// all before it.
class Members : public nlohmann::json_sax<Json> {
 public:
  Members(const std::string& where, size_t bytes) : where_(where), bytes_(bytes) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return true; }

  bool start_object(size_t) override {
    HS_CHECK(!inside_, where_, ": the value of ", brief_text(key_), " is an object; a text or a number was expected");
    return inside_ = true;
  }
  bool key(string_t& value) override {
    HS_CHECK(seen_.insert(value).second, where_, ": ", brief_text(value), " stands twice");
    key_ = std::move(value);
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(size_t) override {
    throw Error(join_text(where_, inside_ ? ": the value of " + brief_text(key_) + " is a list" : ": is a list",
                          "; an object {\"id\": value, ...} was expected"));
  }
  bool end_array() override { return true; }

  bool parse_error(size_t, const std::string&, const Json::exception& error) override {
    throw json_error(where_, bytes_, error);
  }

  std::vector<std::pair<std::string, Json>> take() { return std::move(members_); }

 private:
  bool add(Json value) {
    HS_CHECK(inside_, where_, ": an object {\"id\": value, ...} was expected, not ", brief_json(value));
    members_.emplace_back(std::move(key_), std::move(value));
    return true;
  }

  std::string where_;
  size_t bytes_;
  std::string key_;
  bool inside_ = false;
  std::unordered_set<std::string> seen_;
  std::vector<std::pair<std::string, Json>> members_;
};

}  // namespace

std::vector<std::pair<std::string, Json>> read_json_members(const std::string& input) {
  const std::string content = read_input(input);
  Members members(input, content.size());
  Json::sax_parse(content, &members);
  return members.take();
}

}  // namespace headshare
