#include "headshare/data/benchmarks/superglue.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "headshare/data/test_support.h"
#include "headshare/text/test_support.h"

namespace headshare {
namespace superglue_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string part(const std::string& text, TextSpan span) { return text.substr(span.begin, span.end - span.begin); }

class SuperGlueTest : public DirectoryTest {
 protected:
  std::string file(const std::string& content) const { return DirectoryTest::file("f.jsonl", content); }
};

constexpr const char* kCopa =
    R"({"premise": "p", "choice1": "a", "choice2": "b", "question": "effect", "label": 1, "idx": 3})";
constexpr const char* kWic =
    R"({"word": "café", "sentence1": "Zoë's cafés", "sentence2": "A café.", "start1": 6, "end1": 11, "start2": 2, "end2": 6, "label": true, "idx": 0})";
constexpr const char* kWsc =
    R"({"text": "Zoë saw  \"the man\", who liked him. The man left.", "target": {"span1_text": "The man", "span1_index": 2, "span2_text": "him", "span2_index": 6}, "label": false, "idx": 0})";
constexpr const char* kMultiRc =
    R"({"idx": 2, "version": 1.1, "passage": {"text": "P.", "questions": [{"question": "Q?", "idx": 5, "answers": [{"text": "A", "idx": 9, "label": 1}, {"text": "B", "idx": 10, "label": 0}]}]}})";
constexpr const char* kRecord =
    R"({"source": "s", "idx": 0, "passage": {"text": "Zoë met Bob.\n@highlight\nBob won", "entities": [{"start": 0, "end": 2}, {"start": 8, "end": 10}]}, "qas": [{"query": "@placeholder won", "idx": 7, "answers": [{"start": 8, "end": 10, "text": "Bob"}]}]})";

TEST_F(SuperGlueTest, Copa) {
  const auto examples = read_copa(file(kCopa));
  EXPECT_FALSE(examples[0].asks_cause);
  EXPECT_EQ(examples[0].label, 1);
  EXPECT_EQ(examples[0].index, 3);
  EXPECT_EQ(examples[0].choice2, "b");
}

TEST_F(SuperGlueTest, WicPlacesAreBytes) {
  const auto examples = read_wic(file(kWic));
  EXPECT_EQ(part(examples[0].sentence1, examples[0].place1), "cafés");
  EXPECT_EQ(part(examples[0].sentence2, examples[0].place2), "café");
  EXPECT_EQ(examples[0].label, 1);
}

TEST_F(SuperGlueTest, WscWordsByIndexWhateverTheirCaseAndSigns) {
  const WscData data = read_wsc(file(kWsc));
  EXPECT_EQ(part(data.examples[0].text, data.examples[0].noun), "\"the man\",");
  EXPECT_EQ(part(data.examples[0].text, data.examples[0].pronoun), "him.");
  EXPECT_EQ(data.moved, 0);
  EXPECT_EQ(data.note, "");
}

TEST_F(SuperGlueTest, WscSpansElsewhereAreFoundAndSaid) {
  std::string wsc = kWsc;
  wsc.replace(wsc.find("\"span1_index\": 2"), 16, "\"span1_index\": 6");
  wsc.replace(wsc.find("\"him\""), 5, "\"her\"");
  const WscData data = read_wsc(file(wsc));
  EXPECT_EQ(part(data.examples[0].text, data.examples[0].noun), "The man");  // one word on, not four back
  EXPECT_EQ(part(data.examples[0].text, data.examples[0].pronoun), "him.");
  EXPECT_EQ(data.moved, 1);
  EXPECT_EQ(data.not_found, 1);
  EXPECT_THAT(data.note, AllOf(HasSubstr("1 spans stand at another word"), HasSubstr("'The man' is not at word 6")));
}

TEST_F(SuperGlueTest, MultiRc) {
  const MultiRcData data = read_multirc(file(kMultiRc));
  ASSERT_EQ(data.examples.size(), 2);
  EXPECT_EQ(data.examples[1].answer, "B");
  EXPECT_EQ(data.examples[0].label, 1);
  EXPECT_EQ(data.examples[0].paragraph_index, 2);
  EXPECT_EQ(data.examples[0].question_index, 5);
  EXPECT_EQ(data.examples[1].answer_index, 10);
  EXPECT_EQ(data.note, "");
  std::string empty = kMultiRc;
  empty.replace(empty.find("\"B\""), 3, "\" \"");
  const MultiRcData blank = read_multirc(file(empty));
  EXPECT_EQ(blank.examples.size(), 2);
  EXPECT_THAT(blank.note, AllOf(HasSubstr("1 answers are empty"), HasSubstr(":1, question 5: answer 10")));
}

TEST_F(SuperGlueTest, Record) {
  RecordData data = read_record(file(kRecord));
  EXPECT_EQ(part(data.passages[0].text, data.passages[0].entities[0]), "Zoë");
  EXPECT_THAT(data.queries[0].answers, ElementsAre("Bob"));
  EXPECT_EQ(data.queries[0].index, 7);
  EXPECT_EQ(data.misplaced, 0);
  std::string moved = kRecord;
  moved.replace(moved.find("\"text\": \"Bob\""), 13, "\"text\": \"Rob\"");
  data = read_record(file(moved));
  EXPECT_EQ(data.misplaced, 1);
  EXPECT_THAT(data.note, HasSubstr("the answer 'Rob' is said to stand where 'Bob' is"));
}

TEST_F(SuperGlueTest, MistakesNameFileAndLine) {
  const auto with = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  const auto refused = [&](const auto& read, const std::string& text) {
    return error_message([&] { read(file(text)); });
  };
  EXPECT_THAT(refused(read_copa, with(kCopa, "effect", "efect")),
              HasSubstr("f.jsonl:1: 'question' must be cause or effect"));
  EXPECT_THAT(refused(read_copa, with(kCopa, "\"label\": 1", "\"label\": 2")),
              HasSubstr("f.jsonl:1: unknown label '2'; known are 0, 1"));
  EXPECT_THAT(refused(read_copa, std::string(kCopa) + "\n" + with(kCopa, "\"label\": 1, ", "")),
              HasSubstr("f.jsonl:2: has no label"));
  EXPECT_THAT(refused(read_copa, with(kCopa, "choice2", "choice3")), HasSubstr("f.jsonl:1: has no 'choice2'"));
  EXPECT_THAT(refused(read_wic, with(kWic, "\"end1\": 11", "\"end1\": 12")),
              HasSubstr("f.jsonl:1: 'start1': the place 6 to 12 is outside its text of 11 characters"));
  EXPECT_THAT(refused(read_wsc, with(kWsc, "\"span2_index\": 6", "\"span2_index\": 10")),
              HasSubstr("word 10 of a text of 10 words"));
  EXPECT_THAT(refused(read_multirc, with(kMultiRc, "\"idx\": 9", "\"idx\": \"9\"")),
              HasSubstr("f.jsonl:1, question 5: 'idx' must be"));
  EXPECT_THAT(refused(read_record, with(kRecord, "\"end\": 10}]}", "\"end\": 99}]}")),
              HasSubstr("the place 8 to 100 is outside"));
  EXPECT_THAT(refused(read_record, with(kRecord, "@placeholder", "@place")),
              HasSubstr("query 7: the query has no @placeholder"));
  nlohmann::json unanswered = nlohmann::json::parse(kRecord);
  unanswered["qas"][0].erase("answers");
  EXPECT_THAT(refused(read_record, nlohmann::json::parse(kRecord).dump() + "\n" + unanswered.dump()),
              HasSubstr("f.jsonl:2, query 7: has no list of answers, but those before have one"));
  EXPECT_THAT(refused(read_multirc, ""), HasSubstr("is empty"));
  const auto emptied = [](const std::string& text, const std::string& key) {
    nlohmann::json object = nlohmann::json::parse(text);
    object[key] = " ";
    return object.dump();
  };
  EXPECT_THAT(refused(read_copa, emptied(kCopa, "choice1")), HasSubstr("f.jsonl:1: 'choice1' is empty"));
  EXPECT_THAT(refused(read_wic, emptied(kWic, "word")), HasSubstr("f.jsonl:1: 'word' is empty"));
}

TEST_F(SuperGlueTest, MutatedFilesAreReadOrRefused) {
  Philox random(stream_key(6, "superglue"));
  int read = 0;
  constexpr int kRounds = 600;
  const auto attempt = [&](const auto& reader, const char* text) {
    try {
      reader(file(mutate(text, &random)));
      ++read;
    } catch (const Error&) {
    }
  };
  for (int round = 0; round < kRounds; ++round) {
    attempt(read_copa, kCopa);
    attempt(read_wic, kWic);
    attempt(read_wsc, kWsc);
    attempt(read_multirc, kMultiRc);
    attempt(read_record, kRecord);
  }
  EXPECT_GT(read, kRounds / 2);
  EXPECT_LT(read, 5 * kRounds);
}

TEST(SuperGluePublishedTest, Sizes) {
  HS_NEEDS_DATA("superglue/WSC/val.jsonl.gz");
  const auto path = [](const char* name) { return (test_data_folder() / "superglue" / name).string(); };
  EXPECT_EQ(read_copa(path("COPA/train.jsonl.gz")).size(), 400);
  const auto wic = read_wic(path("WiC/val.jsonl.gz"));
  EXPECT_EQ(std::count_if(wic.begin(), wic.end(), [](const auto& one) { return one.label == 1; }), 319);
  const MultiRcData multirc = read_multirc(path("MultiRC/val.jsonl.gz"));
  EXPECT_EQ(multirc.paragraphs.size(), 83);
  EXPECT_EQ(multirc.examples.size(), 4848);
  // The files' word indices are right for all spans but a handful.
  const WscData train = read_wsc(path("WSC/train.jsonl.gz"));
  const WscData val = read_wsc(path("WSC/val.jsonl.gz"));
  EXPECT_EQ(train.examples.size(), 554);
  EXPECT_EQ(val.examples.size(), 104);
  EXPECT_LE(train.moved + train.not_found, 10);
  EXPECT_LE(val.moved + val.not_found, 2);
}

}  // namespace superglue_test
}  // namespace headshare
