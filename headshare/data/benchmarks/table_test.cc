#include "headshare/data/benchmarks/table.h"

#include <gmock/gmock.h>

#include "headshare/data/test_support.h"
#include "headshare/text/test_support.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Rows = std::vector<std::vector<std::string>>;

class TableTest : public DirectoryTest {
 protected:
  // Returns all rows; a field that is not there reads "-".
  Rows rows(const std::string& name, const std::string& content, const std::vector<std::string>& columns,
            TableOptions options = {}) {
    TableReader table(file(name, content), std::move(options));
    std::vector<ColumnChoice> choices;
    for (const std::string& column : columns) {
      const bool optional = column.starts_with('?');
      choices.push_back({.names = {optional ? column.substr(1) : column}, .required = !optional});
    }
    table.choose(choices);
    Rows all;
    while (const auto row = table.next()) {
      all.emplace_back();
      for (const auto& field : row->fields) all.back().push_back(field.value_or("-"));
    }
    return all;
  }

  std::string refusal(const std::string& name, const std::string& content, const std::vector<std::string>& columns,
                      const TableOptions& options = {}) {
    return error_message([&] { rows(name, content, columns, options); });
  }
};

TEST_F(TableTest, QuotesAreLettersInTsv) {
  EXPECT_EQ(rows("t.tsv", "a\tb\n\"x\t'y\"\n\n\"\"\t\"q\"\n", {"b", "a"}), (Rows{{"'y\"", "\"x"}, {"\"q\"", "\"\""}}));
}

TEST_F(TableTest, ByteOrderMarkAndReturnsAreNoText) {
  EXPECT_EQ(rows("t.tsv",
                 "\xEF\xBB\xBF"
                 "a\tb\r\n1\t2\r\n3\t",
                 {"a", "b"}),
            (Rows{{"1", "2"}, {"3", ""}}));
  EXPECT_EQ(rows("t.csv",
                 "\xEF\xBB\xBF"
                 "a,b\r\n1,2\r\n",
                 {"a", "b"}),
            (Rows{{"1", "2"}}));
}

TEST_F(TableTest, CsvAsRfc4180) {
  const std::string csv = "a,\"b, c\",d\n\"x \"\"y\"\"\",,\"1\n2\"\r\n,\"\",z\n";
  EXPECT_EQ(rows("t.csv", csv, {"a", "b, c", "d"}), (Rows{{"x \"y\"", "", "1\n2"}, {"", "", "z"}}));
  EXPECT_EQ(rows("t.tsv", "a\tb\n\"x\ty\"\tz\n", {"a", "b"}, {.format = TableFormat::kQuotedTsv}),
            (Rows{{"x\ty", "z"}}));
}

TEST_F(TableTest, LinesAreThoseWhereRowsBegin) {
  TableReader table(file("t.csv", "a\n\"1\n2\n3\"\n4\n"));
  table.choose({{.names = {"a"}}});
  EXPECT_EQ(table.next()->line, 2);
  const auto row = table.next();
  EXPECT_THAT(table.where(*row), HasSubstr("t.csv:5"));
}

TEST_F(TableTest, JsonlColumnsByName) {
  const std::string jsonl = "{\"a\": \"x\", \"n\": 1.5}\n\n{\"n\": true, \"a\": \"y\", \"b\": null}\n";
  EXPECT_EQ(rows("t.jsonl", jsonl, {"a", "n", "?b"}), (Rows{{"x", "1.5", "-"}, {"y", "true", "-"}}));
}

TEST_F(TableTest, ColumnsWithoutAHeading) {
  EXPECT_EQ(rows("t.tsv", "1\t2\n3\t4\n", {"b"}, {.columns = {"a", "b"}}), (Rows{{"2"}, {"4"}}));
}

TEST_F(TableTest, OneColumnMayBeEmpty) { EXPECT_EQ(rows("t.tsv", "a\nx\n\ny\n", {"a"}), (Rows{{"x"}, {""}, {"y"}})); }

TEST_F(TableTest, TheFirstOfSeveralNamesIsTaken) {
  TableReader table(file("t.tsv", "Premise\tb\nx\ty\n"));
  table.choose({{.names = {"sentence1", "Premise"}}, {.names = {"c"}, .required = false}});
  EXPECT_EQ(table.chosen_name(0), "Premise");
  EXPECT_EQ(table.next()->fields[1], std::nullopt);
}

TEST_F(TableTest, ShortRowsAreLeftOutWhereAsked) {
  TableReader table(file("t.tsv", "a\tb\nx\n1\t2\ny\n"), {.skip_short_rows = true});
  table.choose({{.names = {"a"}}});
  EXPECT_EQ(table.next()->fields[0], "1");
  EXPECT_EQ(table.next(), std::nullopt);
  EXPECT_EQ(table.short_rows(), 2);
  EXPECT_EQ(table.first_short_row(), 2);
}

TEST_F(TableTest, WrongColumnCounts) {
  EXPECT_THAT(refusal("t.tsv", "a\tb\n1\t2\n1\n", {"a"}), AllOf(HasSubstr("t.tsv:3: 1 column, not 2 ('a', 'b')")));
  EXPECT_THAT(refusal("t.tsv", "a\tb\n1\t\"x\ty\"\n", {"a"}),
              AllOf(HasSubstr("t.tsv:2: 3 columns"), HasSubstr("tsv-quoted")));
  EXPECT_THAT(refusal("t.csv", "a,b\n1,x, y\n", {"a"}),
              AllOf(HasSubstr("t.csv:2: 3 columns"), HasSubstr("in double quotes")));
}

TEST_F(TableTest, UnknownColumns) {
  EXPECT_THAT(refusal("t.tsv", "sentence\tlabel\n", {"sentense"}),
              AllOf(HasSubstr("no column 'sentense'"), HasSubstr("'sentence', 'label'"),
                    HasSubstr("did you mean 'sentence'?")));
  EXPECT_THAT(refusal("t.tsv", "\"text\"\t\"label\"\n", {"text"}), HasSubstr("tsv-quoted"));
  EXPECT_THAT(refusal("t.csv", "text;label\n", {"text"}), HasSubstr("semicolons"));
  EXPECT_THAT(refusal("t.csv", "text,label\rgood,1\rbad,0\r", {"text"}),
              HasSubstr("t.csv:1: the heading holds a carriage"));
  EXPECT_THAT(refusal("t.jsonl", "{\"a\":1}\n{\"b\":1}\n", {"a"}),
              AllOf(HasSubstr("t.jsonl:2: the record has no column 'a'")));
  EXPECT_THAT(refusal("t.tsv", "a\ta\n", {"a"}), HasSubstr("two columns have the name 'a'"));
}

TEST_F(TableTest, BadQuoting) {
  EXPECT_THAT(refusal("t.csv", "a,b\nx,\"y\n1,2\n", {"a"}),
              HasSubstr("t.csv:2: column 2 begins with a quote that is never"));
  EXPECT_THAT(refusal("t.csv", "a,b\n\"x\"y,2\n", {"a"}),
              HasSubstr("t.csv:2: column 1 goes on behind its closing quote"));
  EXPECT_THAT(refusal("t.csv", "a,b\nx\"y,2\n", {"a"}), HasSubstr("t.csv:2: column 1 has a quote inside"));
}

TEST_F(TableTest, WhatIsNoTable) {
  EXPECT_THAT(refusal("t.txt", "a\n", {"a"}), HasSubstr("ends in none of .tsv, .csv and .jsonl"));
  EXPECT_THAT(refusal("t.tsv", "", {"a"}), HasSubstr("is empty"));
  EXPECT_THAT(refusal("t.tsv", "a\tb\n\xFFx\t1\n", {"a"}), HasSubstr("t.tsv:2: column 1 is not UTF-8 from its byte 0"));
  EXPECT_THAT(refusal("t.tsv", std::string("a\tb\nx\0\t1\n", 9), {"a"}), HasSubstr("t.tsv:2: a NUL byte"));
  EXPECT_THAT(refusal("t.jsonl", "{\"a\": 1}\n[1]\n", {"a"}),
              HasSubstr("t.jsonl:2: a JSON object was expected, not [1]"));
  EXPECT_THAT(refusal("t.jsonl", "{\"a\": \"b", {"a"}), AllOf(HasSubstr("t.jsonl:1"), HasSubstr("cut short")));
  EXPECT_THAT(refusal("t.jsonl", "{\"a\": [1]}", {"a"}), HasSubstr("'a' must be a text, a number or a truth value"));
  EXPECT_THAT(error_message([] { TableReader("no-such.tsv"); }), HasSubstr("cannot open no-such.tsv"));
}

// Whatever the file holds, reading it gives rows of as many fields as were chosen, or an Error.
TEST_F(TableTest, MutatedTablesAreReadOrRefused) {
  const std::vector<std::pair<std::string, std::string>> originals = {
      {"t.tsv", "id\ttext\tlabel\n1\tthe \"cat\"\tyes\n2\té\tno\n3\tx\ty\n"},
      {"t.csv", "id,text,label\n1,\"the, \"\"cat\"\"\",yes\n2,\"é\n\",no\n3,x,y\n"},
      {"t.jsonl",
       "{\"id\": 1, \"text\": \"the\\n\", \"label\": true}\n{\"id\": 2, \"text\": \"é\", \"label\": \"a\"}\n"}};
  Philox random(stream_key(3, "tables"));
  int refused = 0;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    const auto& [name, content] = originals[static_cast<size_t>(round) % originals.size()];
    try {
      for (const auto& row : rows(name, mutate(content, &random), {"id", "?text", "label"})) EXPECT_EQ(row.size(), 3);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, kRounds / 10);
  EXPECT_LT(refused, kRounds * 9 / 10);
}

}  // namespace
}  // namespace headshare
