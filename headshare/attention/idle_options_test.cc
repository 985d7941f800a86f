#include "headshare/attention/idle_options.h"

#include <gmock/gmock.h>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Why an option does nothing in layers of these schemes; "" where one of them reads it.
std::string why_idle(const std::string& option, const std::vector<std::string>& schemes) {
  for (const IdleOption& one : idle_scheme_options(schemes)) {
    if (one.name == option) return one.why;
  }
  return "";
}

TEST(IdleSchemeOptions, ASchemeReadsItsOwnOptionsAndThoseThatItNames) {
  EXPECT_EQ(why_idle("groups", {"mqa"}), "matters only to the scheme gqa");
  EXPECT_EQ(why_idle("groups", {"gqa"}), "");
  EXPECT_EQ(why_idle("mhe-deviation", {"sha"}), "matters only to the schemes mhe_add and mhe_mul");
  EXPECT_EQ(why_idle("mhe-deviation", {"mhe_add"}), "");
  EXPECT_EQ(why_idle("mhe-deviation", {"mhe_mul"}), "");
  EXPECT_EQ(why_idle("mhe-mul-offset", {"mhe_add"}), "matters only to the scheme mhe_mul");
  EXPECT_EQ(why_idle("key-width", {"gqa"}), "matters only to the schemes mha, el_lossless and collaborative");
  for (const char* option : {"mixing-deviation", "rotary-width", "layer-key-widths"}) {
    EXPECT_EQ(why_idle(option, {"mha"}), "matters only to the scheme collaborative") << option;
    EXPECT_EQ(why_idle(option, {"collaborative"}), "") << option;
  }
  EXPECT_EQ(why_idle("kv-rank", {"mla"}), "matters only to the scheme lrkv");
  for (const char* option : {"query-map", "query-rank", "query-width"}) {
    EXPECT_EQ(why_idle(option, {"mqa"}), "matters only to the scheme shared_query") << option;
  }
  for (const char* option :
       {"kv-latents", "kv-latent-width", "query-latent-width", "content-head-width", "rotary-head-width"}) {
    EXPECT_EQ(why_idle(option, {"lrkv"}), "matters only to the scheme mla") << option;
  }
}

TEST(IdleSchemeOptions, OneSchemeOfAModelIsEnough) {
  EXPECT_EQ(why_idle("groups", {"mha", "gqa"}), "");
  EXPECT_EQ(why_idle("shared-qk", {"mha", "gqa"}), "matters only to the scheme skv");
  EXPECT_THAT(idle_scheme_options(scheme_names()), IsEmpty());
}

TEST(IdleSchemeOptions, ASchemeIsReadByNameAndAMistakeIsRefused) {
  EXPECT_EQ(why_idle("mhe-deviation", {"mhe-mul"}), "");
  EXPECT_THAT(error_message([] { idle_scheme_options({"mhe_adds"}); }), HasSubstr("did you mean 'mhe_add'"));
}

TEST(IdleSchemeOptions, AnAddedSchemeBringsItsOwn) {
  struct AddedOptions {
    int64_t turns = 1;
  };
  SchemeRecord record = scheme_record("mha");
  record.name = "added";
  record.options =
      scheme_options<AddedOptions>([](AddedOptions& o) { return Fields{field("added-turns", &o.turns, "turns")}; });
  const AddedScheme added(record);
  EXPECT_EQ(why_idle("added-turns", {"mha"}), "matters only to the scheme added");
  EXPECT_EQ(why_idle("added-turns", {"added"}), "");
}

}  // namespace
}  // namespace headshare
