#include "headshare/data/benchmarks/examples.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "headshare/data/test_support.h"
#include "headshare/text/test_support.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Counts the examples of each class.
std::vector<int64_t> label_counts(const TextExamples& examples) {
  std::vector<int64_t> counts(examples.labels.size());
  for (const TextExample& example : examples.items) {
    if (example.label >= 0) ++counts[static_cast<size_t>(example.label)];
  }
  return counts;
}

class ExamplesTest : public DirectoryTest {
 protected:
  TextExamples glue(const std::string& task, const std::string& content, const std::string& name = "f.tsv") {
    return read_examples(find_task(Suite::kGlue, task), file(name, content));
  }
  TextExamples superglue(const std::string& task, const std::string& content) {
    return read_examples(find_task(Suite::kSuperGlue, task), file("f.jsonl", content));
  }
};

TEST_F(ExamplesTest, ColaHasNoHeadingButInItsTestFile) {
  const TextExamples dev = glue("cola", "gj04\t1\t\tHe said \"so.\ngj04\t0\t*\tHim said.\n");
  EXPECT_TRUE(dev.labelled);
  EXPECT_FALSE(dev.pairs);
  EXPECT_EQ(dev.items[0].first, "He said \"so.");
  EXPECT_EQ(dev.items[1].label, 0);
  EXPECT_EQ(dev.items[1].index, 1);
  const TextExamples test = glue("CoLA", "index\tsentence\n0\tX.\n7\tY.\n");
  EXPECT_FALSE(test.labelled);
  EXPECT_EQ(test.items[1].index, 7);
  EXPECT_EQ(test.items[1].label, -1);
}

TEST_F(ExamplesTest, ColaFromAPipeIsReadOnce) {
  const auto rows = [&](const std::string& content) {
    const fs::path pipe = directory_ / "pipe.tsv";
    EXPECT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    std::jthread writer([&] { std::ofstream(pipe) << content; });
    const TextExamples found = read_examples(find_task(Suite::kGlue, "cola"), pipe.string());
    fs::remove(pipe);
    return found.items.size();
  };
  EXPECT_EQ(rows("gj04\t1\t\tHe said so.\ngj04\t0\t*\tHim said.\n"), 2u);
  EXPECT_EQ(rows("index\tsentence\n0\tX.\n7\tY.\n3\tZ.\n"), 3u);
}

TEST_F(ExamplesTest, PairsAndNames) {
  const TextExamples mrpc =
      glue("mrpc", "\xEF\xBB\xBFQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tA b .\tC d .\n");
  EXPECT_TRUE(mrpc.pairs);
  EXPECT_EQ(mrpc.items[0].first, "A b .");
  EXPECT_EQ(mrpc.items[0].second, "C d .");
  EXPECT_EQ(mrpc.items[0].label, 1);
  const TextExamples rte = glue("rte", "index\tsentence1\tsentence2\tlabel\n5\ta\tb\tnot_entailment\n");
  EXPECT_EQ(rte.items[0].label, 1);
  EXPECT_EQ(rte.items[0].index, 5);
  const TextExamples ax = glue("ax", "Logic\tPremise\tHypothesis\tLabel\n\ta\tb\tneutral\n");
  EXPECT_EQ(ax.items[0].label, 1);
}

TEST_F(ExamplesTest, NumbersHaveARange) {
  const std::string heading = "index\tgenre\tsentence1\tsentence2\tscore\n";
  const TextExamples stsb = glue("stsb", heading + "0\tg\ta\tb\t3.80\n1\tg\ta\tb\t5\n");
  EXPECT_TRUE(stsb.labels.empty());
  EXPECT_EQ(stsb.items[0].number, 3.8);
  EXPECT_EQ(stsb.items[0].label, -1);
  EXPECT_THAT(error_message([&] { glue("sts-b", heading + "0\tg\ta\tb\t5.5\n"); }),
              AllOf(HasSubstr("f.tsv:2"), HasSubstr("5.5 is outside 0 to 5")));
  for (const char* bad : {"x", "1e", "nan", "inf", "1 "}) {
    EXPECT_THAT(error_message([&] { glue("sts-b", heading + "0\tg\ta\tb\t" + bad + "\n"); }),
                HasSubstr("is not a finite number"));
  }
}

TEST_F(ExamplesTest, QqpRowsCutShortAreLeftOutAndSaid) {
  const TextExamples qqp =
      glue("qqp", "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\tA?\tB?\t1\n1\t2\n2\t1\t2\tA?\t\t0\n");
  EXPECT_EQ(qqp.items.size(), 2);
  EXPECT_THAT(qqp.notes, ElementsAre(HasSubstr("1 rows with too few columns were left out, the first in line 3"),
                                     HasSubstr("1 texts are empty")));
}

TEST_F(ExamplesTest, SuperGluesTextTasks) {
  const TextExamples boolq = superglue("boolq", R"({"question": "q", "passage": "p", "label": true, "idx": 4})");
  EXPECT_EQ(boolq.items[0].first, "p");
  EXPECT_EQ(boolq.items[0].second, "q");
  EXPECT_EQ(boolq.items[0].label, 1);
  EXPECT_EQ(boolq.items[0].index, 4);
  EXPECT_EQ(superglue("cb", R"({"premise": "p", "hypothesis": "h", "label": "contradiction"})").items[0].label, 2);
}

TEST_F(ExamplesTest, MistakesNameFileAndLine) {
  const auto refused = [&](const std::string& row) {
    return error_message([&] { glue("rte", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n" + row); });
  };
  EXPECT_THAT(refused("1\ta\tb\tentailmnt\n"),
              AllOf(HasSubstr("f.tsv:3: unknown label 'entailmnt' (did you mean 'entailment'?); known"),
                    HasSubstr("known are entailment, not_entailment")));
  EXPECT_THAT(refused("1\ta\tb\t\"entailment\"\n"), HasSubstr("quotes are letters in TSV"));
  EXPECT_THAT(refused("1\t \tb\tentailment\n"), HasSubstr("f.tsv:3: the text (column 'sentence1') is empty"));
  EXPECT_THAT(refused("1\ta\t\tentailment\n"), HasSubstr("f.tsv:3: the second text (column 'sentence2') is empty"));
  EXPECT_THAT(refused("1\ta\tb\t\n"), HasSubstr("f.tsv:3: the label is empty"));
  EXPECT_THAT(refused("x\ta\tb\tentailment\n"), HasSubstr("the index must be a whole number from 0, not 'x'"));
  EXPECT_THAT(error_message([&] { glue("sst-2", "sentence\tlabel\n"); }), HasSubstr("has no rows of data"));
  EXPECT_THAT(error_message([&] {
                superglue("cb", R"({"premise":"p","hypothesis":"h","label":"neutral"}
{"premise":"p","hypothesis":"h"})");
              }),
              HasSubstr("f.jsonl:2: has no label, but the rows before have one"));
}

TEST_F(ExamplesTest, LabelsThatLookTheSameAreRefused) {
  const auto refused = [&](const std::string& rows, const OwnTable& table = {}) {
    return error_message([&] { read_own_table(table, file("own.tsv", "text\tlabel\n" + rows)); });
  };
  EXPECT_THAT(refused("a\tyes\nb\tno\nc\tyes \n"),
              HasSubstr("own.tsv: the labels 'yes' and 'yes ' differ only by white space"));
  EXPECT_THAT(refused("a\t1\nb\t 1\n"), HasSubstr("differ only by white space"));
  EXPECT_THAT(refused("a\tyes\nb\tyes\u00A0\n"), HasSubstr("differ only by white space"));
  EXPECT_EQ(refused("a\tyes \nb\tno\n"), "no error");
  EXPECT_THAT(refused("a\t0\nb\t0.0\n"), HasSubstr("the labels '0' and '0.0' differ only by zeros behind the point"));
  EXPECT_THAT(refused("a\t-1.00\nb\t2\nc\t -1\n"), HasSubstr("the labels ' -1' and '-1.00' differ only by zeros"));
  for (const char* other : {"1.5", "1.", ".0", "v1.0", "1.0.0", "10"}) {
    EXPECT_EQ(refused(join_text("a\t1\nb\t", other, "\n")), "no error") << other;
  }
  EXPECT_THAT(refused("a\tyes\n", {.label = ""}), HasSubstr("label-column is empty"));
  EXPECT_THAT(refused("a\tyes\n", {.text = ""}), HasSubstr("text-column is empty"));
}

TEST_F(ExamplesTest, UnknownTasksAreRefusedWithTheNearest) {
  EXPECT_THAT(error_message([] { find_task(Suite::kGlue, "mrcp"); }),
              AllOf(HasSubstr("did you mean 'mrpc'?"), HasSubstr("wnli, ax")));
  EXPECT_THAT(error_message([] { find_task(Suite::kSuperGlue, "cola"); }), HasSubstr("superglue has no task 'cola'"));
}

TEST_F(ExamplesTest, FilesOfATaskAreFound) {
  const TaskInfo& mnli = find_task(Suite::kGlue, "mnli-mm");
  make_directories(directory_ / "MNLI");
  file("MNLI/dev_mismatched.tsv.gz", "");
  EXPECT_EQ(find_task_file(mnli, directory_, TaskPart::kDev), directory_ / "MNLI/dev_mismatched.tsv.gz");
  EXPECT_EQ(find_task_file(mnli, directory_ / "MNLI", TaskPart::kDev), directory_ / "MNLI/dev_mismatched.tsv.gz");
  EXPECT_THAT(error_message([&] { find_task_file(mnli, directory_, TaskPart::kTrain); }),
              HasSubstr("MNLI/train.tsv.gz"));
}

TEST_F(ExamplesTest, OwnTables) {
  const OwnTable options{.text = "words", .label = "class"};
  const std::string train = file("train.csv", "class,words\n10,\"a, b\"\n9,c\n10,d\nx,e\n");
  const TextExamples examples = read_own_table(options, train);
  EXPECT_THAT(examples.labels, ElementsAre("9", "10", "x"));
  EXPECT_EQ(examples.items[0].first, "a, b");
  EXPECT_EQ(examples.items[0].label, 1);
  EXPECT_THAT(label_counts(examples), ElementsAre(1, 2, 1));
  const std::string dev = file("dev.csv", "class,words\n9,a\n11,b\n");
  EXPECT_THAT(error_message([&] { read_own_table(options, dev, examples.labels); }),
              AllOf(HasSubstr("dev.csv:3: unknown label '11'"), HasSubstr("known are 9, 10, x")));
  const TextExamples numbers = read_own_table({.text = "words", .pair = "more", .label = "n", .numbers = true},
                                              file("t.jsonl", R"({"words": "a", "more": "b", "n": -1.5})"));
  EXPECT_TRUE(numbers.pairs);
  EXPECT_EQ(numbers.items[0].number, -1.5);
}

TEST_F(ExamplesTest, OwnTablesThatCannotBeMeant) {
  const OwnTable options;
  EXPECT_THAT(error_message([&] { read_own_table(options, file("t.csv", "text,label\na,\n")); }),
              HasSubstr("t.csv:2: the label is empty"));
  EXPECT_THAT(error_message([&] { read_own_table(options, file("t.jsonl", "{\"text\": \"a\"}")); }),
              HasSubstr("t.jsonl:1: the record has no column 'label'"));
  std::string many = "text,label\n";
  for (int i = 0; i < 1001; ++i) many += join_text("a,", i, "\n");
  EXPECT_THAT(error_message([&] { read_own_table(options, file("t.csv", many)); }),
              HasSubstr("1001 different labels in 1001 rows"));
  const TextExamples quoted = read_own_table(options, file("t.tsv", "text\tlabel\n\"a\"\t1\n\"b\"\t0\n"));
  EXPECT_THAT(quoted.notes, ElementsAre(HasSubstr("every text stands in double quotes")));
}

TEST_F(ExamplesTest, MutatedFilesAreReadOrRefused) {
  const std::string rte = "index\tsentence1\tsentence2\tlabel\n0\ta b\tc\tentailment\n1\td\te\tnot_entailment\n";
  Philox random(stream_key(4, "examples"));
  int refused = 0;
  constexpr int kRounds = 1000;
  for (int round = 0; round < kRounds; ++round) {
    try {
      for (const TextExample& example : glue("rte", mutate(rte, &random)).items) {
        EXPECT_FALSE(example.first.empty() || example.second.empty());
        EXPECT_TRUE(example.label >= -1 && example.label < 2);
      }
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, kRounds);
}

// This test reads the published files, in place: sizes and labels are as ../shared/data/README.md has them.
TEST(GlueTest, PublishedFiles) {
  HS_NEEDS_DATA("glue/CoLA/dev.tsv.gz");
  const auto read = [](const char* task, const char* path) {
    return read_examples(find_task(Suite::kGlue, task), (test_data_folder() / "glue" / path).string());
  };
  const auto counts = [&](const char* task, const char* path) { return label_counts(read(task, path)); };
  EXPECT_THAT(counts("cola", "CoLA/train.tsv.gz"), ElementsAre(2528, 6023));
  EXPECT_THAT(counts("cola", "CoLA/dev.tsv.gz"), ElementsAre(322, 721));
  EXPECT_THAT(counts("sst-2", "SST-2/train.tsv.gz"), ElementsAre(29780, 37569));
  EXPECT_THAT(counts("sst-2", "SST-2/dev.tsv.gz"), ElementsAre(428, 444));
  EXPECT_THAT(counts("mrpc", "MRPC/train.tsv.gz"), ElementsAre(1194, 2474));
  EXPECT_THAT(counts("mrpc", "MRPC/dev.tsv.gz"), ElementsAre(129, 279));
  EXPECT_THAT(counts("rte", "RTE/train.tsv.gz"), ElementsAre(1249, 1241));
  EXPECT_THAT(counts("rte", "RTE/dev.tsv.gz"), ElementsAre(146, 131));
  EXPECT_EQ(read("wnli", "WNLI/train.tsv.gz").items.size(), 635);
  EXPECT_EQ(read("wnli", "WNLI/dev.tsv.gz").items.size(), 71);
  EXPECT_THAT(counts("qnli", "QNLI/dev.tsv.gz"), ElementsAre(2702, 2761));
  EXPECT_THAT(counts("mnli", "MNLI/dev_matched.tsv.gz"), ElementsAre(3479, 3123, 3213));
  const TextExamples qqp = read("qqp", "QQP/subset.tsv.gz");
  EXPECT_THAT(label_counts(qqp), ElementsAre(14749, 8747));
  EXPECT_TRUE(qqp.notes.empty());
}

TEST(SuperGlueTextTest, PublishedFiles) {
  HS_NEEDS_DATA("superglue/CB/val.jsonl.gz");
  const auto counts = [](const char* task, const char* path) {
    return label_counts(
        read_examples(find_task(Suite::kSuperGlue, task), (test_data_folder() / "superglue" / path).string()));
  };
  EXPECT_THAT(counts("boolq", "BoolQ/val.jsonl.gz"), ElementsAre(3270 - 2033, 2033));
  EXPECT_THAT(counts("cb", "CB/train.jsonl.gz"), ElementsAre(115, 16, 119));
  EXPECT_THAT(counts("rte", "RTE/val.jsonl.gz"), ElementsAre(146, 131));
}

}  // namespace
}  // namespace headshare
