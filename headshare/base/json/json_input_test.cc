#include "headshare/base/json/json_input.h"

#include <gmock/gmock.h>

#include "headshare/base/json/json_reader.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(JsonInputTest, IsStrict) {
  const auto refused = [](const std::string& text) { return error_message([&] { parse_json_input(text, "f"); }); };
  EXPECT_THAT(refused(R"({"a": 1, "a": 2})"), HasSubstr("'a' stands twice"));
  EXPECT_THAT(refused(std::string(100000, '[')), HasSubstr("deeper than 32"));
  EXPECT_THAT(refused("{\"a\": \"\xFF\"}"), HasSubstr("not a JSON document"));
  EXPECT_THAT(refused("1e999"), HasSubstr("not a JSON document"));
  EXPECT_THAT(refused(""), HasSubstr("0 bytes"));
  EXPECT_THAT(refused("{} {}"), HasSubstr("not a JSON document"));
  // A line of a larger file is named by who reads it; the parser's number would be another one.
  EXPECT_THAT(refused("{\"a\": b}"), HasSubstr("parse error at column 7:"));
  EXPECT_THAT(refused("{\"a\":\nb}"), HasSubstr("parse error at line 2, column 1:"));
}

TEST(JsonInputTest, ErrorsAboutMembersNameTheFileAndTheKey) {
  const nlohmann::json object = {{"id", 7}, {"text", "a"}, {"list", {1}}, {"flag", true}, {"empty", " "}};
  EXPECT_EQ(json_id(object, "id", "f"), 7);
  EXPECT_EQ(json_string(object, "text", "f"), "a");
  EXPECT_EQ(json_list(object, "list", "f").size(), 1);
  EXPECT_TRUE(json_bool(object, "flag", "f"));
  EXPECT_EQ(error_message([&] { json_member(object, "other", "f"); }), "f: has no 'other'");
  EXPECT_EQ(error_message([&] { json_member({1, 2}, "other", "f"); }), "f: must be a JSON object, not [1,2]");
  EXPECT_EQ(error_message([&] { json_string(object, "id", "f"); }), "f: 'id' must be a text, not 7");
  EXPECT_EQ(error_message([&] { json_filled(object, "empty", "f"); }), "f: 'empty' is empty");
  EXPECT_EQ(error_message([&] { json_bool(object, "id", "f"); }), "f: 'id' must be true or false, not 7");
  EXPECT_EQ(error_message([&] { json_list(object, "id", "f"); }), "f: 'id' must be a list, not 7");
}

TEST(JsonInputTest, IdsAreWholeNumbersOf31Bits) {
  EXPECT_EQ(json_id(2147483647, "x"), INT32_MAX);
  for (const nlohmann::json& none : {nlohmann::json(2147483648), nlohmann::json(18446744073709551615U),
                                     nlohmann::json(-1), nlohmann::json(1.5), nlohmann::json("1"), nlohmann::json()}) {
    EXPECT_THAT(error_message([&] { json_id(none, "x"); }), StartsWith("x must be a whole number from 0 to 2147483647"))
        << none;
  }
}

TEST(JsonInputTest, CountsAreWholeNumbersOf63Bits) {
  EXPECT_EQ(json_count(7), 7);
  EXPECT_EQ(json_count(9223372036854775807), INT64_MAX);
  for (const char* none :
       {"9223372036854775808", "18446744073709551616", "-1", "2.5", "1e19", "\"7\"", "null", "[7]"}) {
    EXPECT_FALSE(json_count(json_or_discarded(none))) << none;
  }
  EXPECT_EQ(json_integer(-1), -1);
  EXPECT_FALSE(json_integer(18446744073709551615U));
}

TEST(JsonInputTest, CountsOfMembersMayBeMissing) {
  EXPECT_EQ(json_count({{"step", 3}}, "step"), 3);
  EXPECT_FALSE(json_count({{"step", 3}}, "steps"));
  EXPECT_FALSE(json_count(json_or_discarded("[3]"), "step"));
  EXPECT_FALSE(json_count(json_or_discarded("{\"step\": 3"), "step"));
}

TEST(JsonInputTest, OurOwnFilesAreObjects) {
  TemporaryDirectory directory;
  const fs::path file = directory / "x.json";
  const auto refused = [&](const std::string& content) {
    write_file(file, content);
    return error_message([&] { read_json_file(file, 1 << 20, "delete it"); });
  };
  EXPECT_EQ(refused("{\"a\": "), file.string() + " is not JSON: delete it");
  EXPECT_EQ(refused("[1]"), file.string() + " is not a JSON object: delete it");
  EXPECT_THAT(refused("{\"a\": " + std::string(100, '[') + std::string(100, ']') + "}"),
              StartsWith(file.string() + ": JSON nested deeper than 64 levels: headshare did not write it"));
  EXPECT_EQ(refused(R"({"model": {"layers": 2, "heads": 4, "layers": 3}})"),
            file.string() + ": 'layers' stands twice in one JSON object: headshare did not write it");
  EXPECT_EQ(refused(R"({"a": {"layers": 2}, "b": [{"layers": 2}, {"layers": 3}]})"), "no error");
  EXPECT_THAT(refused(std::string((1 << 20) + 1, ' ')), HasSubstr(file.string()));
  EXPECT_EQ(refused("{\"a\": 1}"), "no error");
  EXPECT_EQ(read_json_file(file, 1 << 20), nlohmann::json({{"a", 1}}));
}

TEST(JsonInputTest, WhatIsNoJsonIsDiscarded) {
  EXPECT_EQ(json_or_discarded("[1]"), nlohmann::json({1}));
  for (const char* none : {"", "{\"a\": 1", "{} {}"}) {
    EXPECT_TRUE(json_or_discarded(none).is_discarded()) << none;
    EXPECT_FALSE(json_or_discarded(none) == json_or_discarded(none)) << none;
  }
}

TEST(JsonReaderTest, ErrorsNameTheFileAndTheKey) {
  const nlohmann::json object = {
      {"text", "a"}, {"half", 0.5}, {"large", 1e31}, {"numbers", {1, "2"}}, {"null", nullptr}};
  const JsonReader read(object, "f");
  EXPECT_EQ(read.text("text"), "a");
  EXPECT_FALSE(read.has("null"));
  EXPECT_FALSE(read.optional_number("null"));
  EXPECT_EQ(error_message([&] { read.text("other"); }), "f: \"other\" is missing");
  EXPECT_EQ(error_message([&] { read.flag("text"); }), "f: \"text\" is not true or false");
  EXPECT_EQ(error_message([&] { read.integer("half"); }), "f: \"half\" is not a whole number");
  EXPECT_EQ(error_message([&] { read.number_from("half", 1); }), "f: \"half\" must be at least 1, not 0.5");
  EXPECT_THAT(error_message([&] { read.number("large"); }), HasSubstr("which nothing can have measured"));
  EXPECT_EQ(error_message([&] { read.numbers("numbers"); }), "f: numbers[1] is not a number");
  EXPECT_EQ(error_message([] { JsonReader({1}, "f"); }), "f is not a JSON object");
}

}  // namespace
}  // namespace headshare
