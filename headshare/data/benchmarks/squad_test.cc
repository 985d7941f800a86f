#include "headshare/data/benchmarks/squad.h"

#include <gmock/gmock.h>

#include <map>

#include "headshare/data/test_support.h"
#include "headshare/text/test_support.h"

namespace headshare {
namespace squad_test {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

json sample() {
  return json::parse(R"({"version": "1.1", "data": [{"title": "T", "paragraphs": [
    {"context": "Zoë cafés 24–10 won.", "qas": [
      {"id": "q1", "question": "Score?", "answers": [{"text": "24–10", "answer_start": 10}, {"text": "won", "answer_start": 16}]},
      {"id": "q2", "question": "Who?", "answers": [{"text": "Zoë", "answer_start": 0}]}]},
    {"context": "Second.", "qas": [{"id": "q3", "question": "?", "answers": [{"text": "Second", "answer_start": 0}]}]}]}]})");
}

class SquadFileTest : public DirectoryTest {
 protected:
  SquadData read(const json& object) { return read_squad(file("s.json", object.dump())); }

  // Returns the message for the sample with one value changed.
  std::string refusal(const char* pointer, const json& value) {
    json object = sample();
    object[json::json_pointer(pointer)] = value;
    return error_message([&] { read(object); });
  }
};

TEST_F(SquadFileTest, PlacesAreBytes) {
  const SquadData data = read(sample());
  EXPECT_EQ(data.rules, SquadRules::kV1);
  ASSERT_EQ(data.questions.size(), 3);
  EXPECT_EQ(data.questions[2].paragraph, 1);
  EXPECT_EQ(data.paragraphs[1].title, "T");
  EXPECT_EQ(data.answers, 4);
  EXPECT_EQ(data.misplaced, 0);
  EXPECT_EQ(misplaced_note(data), "");
  for (const SquadQuestion& question : data.questions) {
    for (const SquadAnswer& answer : question.answers) {
      const auto [begin, end] = answer.bytes;
      EXPECT_EQ(data.paragraphs[question.paragraph].context.substr(begin, end - begin), answer.text);
    }
  }
  EXPECT_EQ(data.questions[0].answers[0].bytes, (TextSpan{12, 19}));
}

TEST_F(SquadFileTest, MisplacedAnswersStayAndAreSaid) {
  json object = sample();
  json& answers = object["data"][0]["paragraphs"][0]["qas"][0]["answers"];
  answers[0]["answer_start"] = 9;
  answers[1]["answer_start"] = 2000000000;
  const SquadData data = read(object);
  EXPECT_EQ(data.misplaced, 2);
  EXPECT_FALSE(data.questions[0].answers[0].located);
  EXPECT_EQ(data.questions[0].answers.size(), 2);
  EXPECT_THAT(gold_answers(data)[0].answers, ElementsAre("24–10", "won"));
  EXPECT_THAT(misplaced_note(data),
              AllOf(HasSubstr("s.json: 2 of 4 answers do not stand"), HasSubstr("question q1"),
                    HasSubstr("\"24–10\" at 9, where the context of 20 characters has \" 24–10")));
}

TEST_F(SquadFileTest, Version2) {
  json object = sample();
  json& question = object["data"][0]["paragraphs"][0]["qas"][1];
  question["answers"] = json::array();
  question["is_impossible"] = true;
  question["plausible_answers"] = {{{"text", "x"}, {"answer_start", 0}}};
  const SquadData data = read(object);
  EXPECT_EQ(data.rules, SquadRules::kV2);
  EXPECT_TRUE(data.questions[1].answers.empty());
  object = sample();
  object["version"] = "v2.0";
  EXPECT_EQ(read(object).rules, SquadRules::kV2);
}

TEST_F(SquadFileTest, AQuestionThatIsPossibleHasAnAnswerSomewhere) {
  json object = sample();
  json& questions = object["data"][0]["paragraphs"][0]["qas"];
  questions[0]["answers"] = json::array();
  questions[0]["is_impossible"] = false;
  questions[1]["answers"] = json::array();
  questions[1]["is_impossible"] = true;
  const SquadData data = read(object);
  EXPECT_TRUE(data.questions[0].answerable && data.questions[0].answers.empty());
  EXPECT_FALSE(data.questions[1].answerable || data.questions[2].answerable);
}

TEST_F(SquadFileTest, QuestionsWithoutGoldCanNeitherBeScoredNorTaught) {
  const auto said = [&](const char* version, const std::vector<std::string>& without) {
    json object = sample();
    object["version"] = version;
    for (const std::string& place : without) {
      object[json::json_pointer("/data/0/paragraphs/" + place)].erase("answers");
    }
    const SquadData data = read(object);
    const std::string message = error_message([&] { check_can_be_scored(data); });
    EXPECT_EQ(can_be_scored(data), message == "no error");
    return message;
  };
  const std::vector<std::string> all = {"0/qas/0", "0/qas/1", "1/qas/0"};
  EXPECT_EQ(said("1.1", {}), "no error");
  EXPECT_EQ(said("v2.0", {"0/qas/1"}), "no error");
  EXPECT_THAT(said("1.1", {"0/qas/1"}), HasSubstr("question q2 has no gold answer, which SQuAD v1.1 does not know"));
  for (const char* version : {"1.1", "v2.0"}) {
    EXPECT_THAT(said(version, all), HasSubstr("none of the 3 questions has a gold answer")) << version;
  }
}

TEST_F(SquadFileTest, MistakesNameThePlace) {
  EXPECT_THAT(refusal("/data/0/paragraphs/0/qas/1/id", 7),
              HasSubstr("s.json: data[0].paragraphs[0].qas[1]: 'id' must be a text, not 7"));
  EXPECT_THAT(refusal("/data/0/paragraphs/0/qas/1/id", "q1"), HasSubstr("the question id q1 stands twice"));
  EXPECT_THAT(refusal("/data/0/paragraphs/0/qas/0/answers/1/answer_start", -1),
              HasSubstr("answers[1]: 'answer_start' must be a whole number"));
  EXPECT_THAT(refusal("/data/0/paragraphs/0/qas/0/is_impossible", true),
              HasSubstr("question q1 is_impossible, but has 2 answers"));
  EXPECT_THAT(refusal("/data/0/paragraphs/0", json::object()), HasSubstr("data[0].paragraphs[0]: has no 'context'"));
  EXPECT_THAT(refusal("/data", json::array()), HasSubstr("has no questions"));
  EXPECT_THAT(refusal("/data/0", 5), HasSubstr("data[0]: must be a JSON object, not 5"));
  EXPECT_THAT(error_message([&] { read({1}); }), HasSubstr("s.json: must be a JSON object"));
}

TEST_F(SquadFileTest, TruncatedFilesAreRefusedBriefly) {
  const std::string text = sample().dump();
  for (size_t length = 0; length < text.size(); ++length) {
    const std::string message = error_message([&] { read_squad(file("s.json", text.substr(0, length))); });
    EXPECT_THAT(message, AllOf(HasSubstr("s.json: not a JSON document of"), HasSubstr("cut short"))) << length;
    EXPECT_LT(message.size(), 500);
  }
}

TEST_F(SquadFileTest, PredictionFiles) {
  EXPECT_THAT(read_squad_answers(file("p.json", R"({"a": "x", "b": ""})")),
              testing::UnorderedElementsAre(Pair("a", "x"), Pair("b", "")));
  EXPECT_THAT(read_null_odds(file("n.json", R"({"b": 1, "a": -0.5, "c": 1})")),
              ElementsAre(Pair("b", 1), Pair("a", -0.5), Pair("c", 1)));
  const auto refused = [&](const std::string& text) {
    return error_message([&] { read_squad_answers(file("p.json", text)); });
  };
  EXPECT_THAT(refused(R"({"a": 1})"), HasSubstr("p.json: the answer to a must be a text, not 1"));
  EXPECT_THAT(refused(R"({"a": "", "a": ""})"), HasSubstr("'a' stands twice"));
  EXPECT_THAT(refused(R"({"a": ["x"]})"), HasSubstr("the value of 'a' is a list"));
  EXPECT_THAT(refused(R"({"a": {"x": 1}})"), HasSubstr("the value of 'a' is an object"));
  EXPECT_THAT(refused(R"([{"id": "a"}])"), HasSubstr("p.json: is a list"));
  EXPECT_THAT(refused("7"), HasSubstr("was expected, not 7"));
  EXPECT_THAT(refused(R"({"a": "x)"), HasSubstr("cut short"));
  EXPECT_THAT(refused(R"({"a": "x"} {})"), HasSubstr("not a JSON document"));
  EXPECT_THAT(error_message([&] { read_null_odds(file("n.json", R"({"a": "1"})")); }),
              HasSubstr("the null odds of a must be a number"));
}

TEST_F(SquadFileTest, MutatedFilesAreReadOrRefused) {
  const std::string original = sample().dump();
  Philox random(stream_key(5, "squad"));
  int refused = 0;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    try {
      const SquadData data = read_squad(file("s.json", mutate(original, &random)));
      for (const SquadQuestion& question : data.questions) {
        for (const SquadAnswer& answer : question.answers) {
          EXPECT_LE(answer.bytes.end, data.paragraphs.at(question.paragraph).context.size());
        }
      }
    } catch (const Error&) {
      ++refused;
    }
    try {
      read_null_odds(file("n.json", mutate(R"({"b": 1, "a": -0.5, "c": 1e3})", &random)));
    } catch (const Error&) {
    }
  }
  EXPECT_GT(refused, kRounds / 10);
  EXPECT_LT(refused, kRounds);
}

// The official scorers give these numbers for the published predictions, to the last digit.
struct Published {
  const char* gold;
  const char* predictions;
  std::map<std::string, double> scores;
};

TEST(SquadPublishedTest, OfficialScoresToTheLastDigit) {
  HS_NEEDS_DATA("squad/predictions/expected.tsv");
  const std::vector<Published> all = {
      {"dev-v1.1.json.gz", "v1.1-match-lstm.json.gz", {{"exact_match", 67.63481551561021}, {"f1", 76.75556184979695}}},
      {"dev-v2.0-reconstructed.json.gz",
       "v2.0-bidaf-elmo.json.gz",
       {{"exact_match", 65.70369746483618},
        {"f1", 67.87648921451334},
        {"has_ans_exact", 61.42037786774629},
        {"has_ans_f1", 65.77219238257676},
        {"no_ans_exact", 69.97476871320437}}}};
  for (const Published& one : all) {
    const fs::path folder = test_data_folder() / "squad";
    const SquadData data = read_squad((folder / one.gold).string());
    EXPECT_EQ(data.misplaced, 0);
    const SquadPredictions predictions{.answers =
                                           read_squad_answers((folder / "predictions" / one.predictions).string())};
    std::map<std::string, double> scores;
    for (const Score& score : to_scores(score_squad(gold_answers(data), predictions, data.rules))) {
      scores[score.name] = score.value;
    }
    for (const auto& [name, value] : one.scores) EXPECT_EQ(scores.at(name), value) << name;
  }
}

TEST(SquadPublishedTest, EveryAnswerStandsWhereTheFilesSay) {
  HS_NEEDS_DATA("squad/train-v1.1-reconstructed.json.gz");
  const auto read = [](const char* name) { return read_squad((test_data_folder() / "squad" / name).string()); };
  const SquadData train = read("train-v1.1-reconstructed.json.gz");
  EXPECT_EQ(train.questions.size(), 87599);
  EXPECT_EQ(train.paragraphs.size(), 18896);
  EXPECT_EQ(train.misplaced, 0);
  const SquadData xquad = read("xquad.en.json.gz");
  EXPECT_EQ(xquad.questions.size(), 1190);
  EXPECT_EQ(xquad.misplaced, 0);
  EXPECT_EQ(xquad.rules, SquadRules::kV1);
}

}  // namespace squad_test
}  // namespace headshare
