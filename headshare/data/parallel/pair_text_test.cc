#include "headshare/data/parallel/pair_text.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include "headshare/data/parallel/test_support.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class PairTextTest : public PairTest {
 protected:
  std::string gz(const std::string& name, const std::string& content) const {
    const std::string path = (directory_ / name).string();
    gzFile out = gzopen(path.c_str(), "wb");
    gzwrite(out, content.data(), static_cast<unsigned>(content.size()));
    gzclose(out);
    return path;
  }

  // Returns what reading the files says.
  static std::string refusal(const PairFiles& files, const PairOptions& options = {}) {
    return error_message([&] { read_all(files, options); });
  }
};

TEST_F(PairTextTest, LinesOfTwoFilesArePairs) {
  const std::vector<Pair> pairs = {{"ein Haus", "a house"}, {"", "no"}, {"ja", "yes"}};
  const std::string source = "ein Haus\n\nja";
  EXPECT_EQ(read_all({file("a.de", source), file("a.en", "a house\nno\nyes\n")}), pairs);
  EXPECT_EQ(read_all({gz("a.de.gz", source), file("b.en",
                                                  "\xEF\xBB\xBF"
                                                  "a house\r\nno\r\nyes\r\n")}),
            pairs);
}

TEST_F(PairTextTest, OneFileHasBothSides) {
  const std::vector<Pair> pairs = {{"ein Haus", "a house"}, {"ja", "yes"}};
  EXPECT_EQ(read_all({file("a.tsv", "ein Haus\ta house\r\nja\tyes"), ""}), pairs);
  EXPECT_EQ(
      read_all({gz("b.tsv.gz", "en\tid\tde\na house\t1\tein Haus\nyes\t2\tja\n"), ""}, {.pair_fields = {"de", "en"}}),
      pairs);
  EXPECT_EQ(read_all({file("a.txt", "ein Haus\ta house\nja\tyes\n"), ""}, {.pair_format = PairFormat::kTsv}), pairs);
  const PairOptions named = {.pair_fields = {"de", "en"}};
  EXPECT_EQ(read_all({file("a.jsonl", R"({"de": "ein Haus", "en": "a house"})"
                                      "\n\n"
                                      R"({"en": "yes", "de": "ja"})"),
                      ""},
                     named),
            pairs);
  EXPECT_EQ(read_all({file("b.jsonl", R"({"translation": {"de": "ein Haus", "en": "a house"}})"
                                      "\r\n"
                                      R"({"id": 1, "translation": {"en": "yes", "de": "ja"}})"),
                      ""},
                     named),
            pairs);
}

TEST_F(PairTextTest, UnequalFilesAreRefusedWithBothCounts) {
  const std::string three = file("a.de", "a\nb\nc\n");
  const std::string five = file("a.en", "a\nb\nc\nd\ne\n");
  EXPECT_THAT(refusal({three, five}), AllOf(HasSubstr("a.de has 3 lines and "), HasSubstr("a.en has 5;")));
  EXPECT_THAT(refusal({five, three}), AllOf(HasSubstr("a.en has 5 lines and "), HasSubstr("a.de has 3;")));
  EXPECT_THAT(refusal({three, file("none.en", "")}), HasSubstr("none.en has 0;"));
  EXPECT_THAT(refusal({file("none.de", ""), file("none.en", "")}), HasSubstr("none.en: no pairs: both are empty"));
}

TEST_F(PairTextTest, TextThatIsNotUtf8FollowsThePolicy) {
  const PairFiles files = {file("a.de",
                                "gut\nschl\xFC"
                                "cht\n"),
                           file("a.en", "good\nbad\n")};
  EXPECT_THAT(refusal(files), AllOf(HasSubstr("a.de:2 is not UTF-8: byte 4"), HasSubstr("--invalid-utf8 replace")));
  EXPECT_EQ(read_all(files, {.invalid_utf8 = InvalidUtf8::kReplace})[1].source, "schl\uFFFDcht");
  EXPECT_THAT(refusal(files, {.invalid_utf8 = InvalidUtf8::kKeep}), HasSubstr("is not UTF-8"));
  const PairFiles table = {file("a.tsv", "x\ty\n\xFF\tz\n"), ""};
  EXPECT_THAT(refusal(table), HasSubstr("a.tsv:2 is not UTF-8"));
  EXPECT_EQ(read_all(table, {.invalid_utf8 = InvalidUtf8::kReplace})[1], (Pair{"\uFFFD", "z"}));
  const PairFiles records = {file("a.jsonl", "{\"de\": \"\xFF\", \"en\": \"x\"}"), ""};
  EXPECT_THAT(refusal(records, {.pair_fields = {"de", "en"}}), HasSubstr("a.jsonl:1 is not UTF-8"));
  EXPECT_EQ(read_all(records, {.pair_fields = {"de", "en"}, .invalid_utf8 = InvalidUtf8::kReplace})[0].source,
            "\uFFFD");
  EXPECT_THAT(refusal({file("b.de", std::string("a\0b\n", 4)), file("b.en", "x\n")}),
              HasSubstr("a NUL byte at byte 1"));
}

TEST_F(PairTextTest, RowsAndRecordsThatDoNotFitAreNamed) {
  EXPECT_THAT(refusal({file("a.tsv", "a\tb\na\tb\tc\n"), ""}), HasSubstr("a.tsv:2: 3 columns, not 2"));
  EXPECT_THAT(refusal({file("b.tsv", "a\tb\n\n"), ""}), HasSubstr("b.tsv:2: 1 columns, not 2"));
  EXPECT_THAT(refusal({file("c.tsv", ""), ""}), HasSubstr("c.tsv: no pairs: it is empty"));
  const PairOptions named = {.pair_fields = {"de", "en"}};
  EXPECT_THAT(refusal({file("d.tsv", "de\ten_\nx\ty\n"), ""}, named),
              AllOf(HasSubstr("d.tsv:1: no column is called 'en'"), HasSubstr("en_")));
  EXPECT_THAT(refusal({file("e.tsv", "de\ten\n"), ""}, named), HasSubstr("no pairs"));
  EXPECT_THAT(refusal({file("a.jsonl", R"({"de": "x", "em": "y"})"), ""}, named),
              AllOf(HasSubstr("a.jsonl:1: the record has no 'en'"), HasSubstr("'em'")));
  EXPECT_THAT(refusal({file("b.jsonl", R"({"translation": {"de": "x"}})"), ""}, named), HasSubstr("no 'en'"));
  EXPECT_THAT(refusal({file("c.jsonl", R"({"de": "x", "en": 5})"), ""}, named),
              HasSubstr("'en' must be a text, not 5"));
  EXPECT_THAT(refusal({file("d.jsonl", "{\"de\": \"x\", \"en\": \"y\"}\n{"), ""}, named), HasSubstr("d.jsonl:2"));
  EXPECT_THAT(refusal({file("e.jsonl", "\n \n"), ""}, named), HasSubstr("no pairs"));
}

TEST_F(PairTextTest, OptionsThatDoNotFitSayWhatToDo) {
  const std::string text = file("a.txt", "a\tb\n");
  EXPECT_THAT(refusal({"", text}), HasSubstr("give --source too"));
  EXPECT_THAT(refusal({text, ""}), HasSubstr("give --target"));
  EXPECT_THAT(refusal({text, ""}, {.pair_format = PairFormat::kLines}), HasSubstr("give --target"));
  EXPECT_THAT(refusal({text, text}, {.pair_format = PairFormat::kTsv}), HasSubstr("leave --target out"));
  EXPECT_THAT(refusal({text, text}, {.pair_fields = {"de", "en"}}), HasSubstr("--pair-fields is for a file"));
  const PairOptions mixed = {.train = {.source = "a.jsonl", .target = {}}, .pair_fields = {"de", "en"}};
  EXPECT_EQ(read_all({text, text}, mixed).size(), 1U);  // the names are those of the other file
  EXPECT_THAT(refusal({text, "", "validation-"}), HasSubstr("give --validation-target"));
  EXPECT_THAT(refusal({"", text, "test-"}), HasSubstr("give --test-source too"));
  EXPECT_THAT(refusal({file("a.jsonl", "{}"), ""}), HasSubstr("Name them: --pair-fields de,en"));
  EXPECT_THAT(refusal({text, ""}, {.pair_fields = {"de"}, .pair_format = PairFormat::kTsv}), HasSubstr("has 1 names"));
  EXPECT_THAT(refusal({text, ""}, {.pair_fields = {"de", "de"}, .pair_format = PairFormat::kTsv}),
              HasSubstr("names 'de' twice"));
  EXPECT_THAT(refusal({"-", "-"}), HasSubstr("pairs are read several times"));
  EXPECT_THAT(refusal({text, (directory_ / "missing").string()}), HasSubstr("missing"));
}

TEST_F(PairTextTest, ALineMayBeLong) {
  const std::string sentence(10'000'000, 'x');
  const auto pairs = read_all({file("a.de", "kurz\n" + sentence + "\nkurz\n"), file("a.en", "short\nlong\nshort\n")});
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[1].source.size(), sentence.size());
  EXPECT_EQ(pairs[2], (Pair{"kurz", "short"}));
}

TEST_F(PairTextTest, FieldsSetTheOptions) {
  PairOptions options;
  Fields all = fields(options);
  set_field(all, "pair-fields", "de,en", "test");
  set_field(all, "validation_source", "v.de", "test");
  set_field(all, "max-tokens", "8000", "test");
  set_field(all, "max-pair-length", "auto", "test");
  EXPECT_THAT(options.pair_fields, ElementsAre("de", "en"));
  EXPECT_TRUE(options.validation.given());
  EXPECT_FALSE(options.test.given());
  EXPECT_EQ(options.batch_tokens, 8000);
  EXPECT_FALSE(options.limits().longest);
  EXPECT_THAT(error_message([&] { set_field(all, "max-length-ratio", "0.5", "test"); }), HasSubstr("max-length-ratio"));
}

TEST_F(PairTextTest, TheValidationPartOfMulti30k) {
  HS_NEEDS_DATA("multi30k/val.de.gz");
  const fs::path folder = test_data_folder() / "multi30k";
  const auto pairs = read_all({(folder / "val.de.gz").string(), (folder / "val.en.gz").string()});
  ASSERT_EQ(pairs.size(), 1014u);
  EXPECT_EQ(pairs[0].target, "A group of men are loading cotton onto a truck");
  EXPECT_THAT(pairs[0].source, HasSubstr("Baumwolle"));
}

}  // namespace
}  // namespace headshare
