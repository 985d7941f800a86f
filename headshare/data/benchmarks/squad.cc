#include "headshare/data/benchmarks/squad.h"

#include <algorithm>
#include <unordered_set>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/data/benchmarks/json_members.h"
#include "headshare/data/byte_stream.h"
#include "headshare/text/unicode/code_points.h"

namespace headshare {
namespace {

using Json = nlohmann::json;

std::string item(const std::string& where, const char* list, size_t index) {
  return join_text(where, ".", list, "[", index, "]");
}

class SquadReader {
 public:
  explicit SquadReader(const std::string& path) { data_.source = path; }

  SquadData read() {
    const Json file = parse_json_input(read_input(data_.source), data_.source);
    const auto version = file.is_object() ? file.find("version") : file.end();
    if (version != file.end() && version->is_string()) {
      const std::string_view text = version->get_ref<const std::string&>();
      if (text.starts_with("v2") || text.starts_with("2")) data_.rules = SquadRules::kV2;
    }
    const auto& articles = json_list(file, "data", data_.source);
    for (size_t i = 0; i < articles.size(); ++i) {
      const std::string where = join_text(data_.source, ": data[", i, "]");
      const auto& paragraphs = json_list(articles[i], "paragraphs", where);
      // XQuAD's articles have no title.
      const std::string name = articles[i].contains("title") ? json_string(articles[i], "title", where) : "";
      for (size_t k = 0; k < paragraphs.size(); ++k) {
        read_paragraph(name, paragraphs[k], item(where, "paragraphs", k));
      }
    }
    HS_CHECK(!data_.questions.empty(), data_.source, " has no questions");
    return std::move(data_);
  }

 private:
  void read_paragraph(const std::string& title, const Json& paragraph, const std::string& where) {
    data_.paragraphs.push_back({.title = title, .context = json_filled(paragraph, "context", where)});
    const CodePoints places(data_.paragraphs.back().context);
    const auto& questions = json_list(paragraph, "qas", where);
    for (size_t i = 0; i < questions.size(); ++i) read_question(questions[i], places, item(where, "qas", i));
  }

  void read_question(const Json& entry, const CodePoints& places, const std::string& where) {
    SquadQuestion question{.id = json_string(entry, "id", where),
                           .question = json_filled(entry, "question", where),
                           .paragraph = data_.paragraphs.size() - 1};
    HS_CHECK(ids_.insert(question.id).second, where, ": the question id ", question.id, " stands twice in the file");
    if (entry.contains("answers")) {  // files without gold have none
      const auto& all = json_list(entry, "answers", where);
      for (size_t i = 0; i < all.size(); ++i) {
        question.answers.push_back(read_answer(all[i], places, question.id, item(where, "answers", i)));
      }
    }
    if (entry.contains("is_impossible")) {
      data_.rules = SquadRules::kV2;
      question.answerable = !json_bool(entry, "is_impossible", where);
      HS_CHECK(question.answerable || question.answers.empty(), where, ": question ", question.id,
               " is_impossible, but has ", question.answers.size(),
               " answers; take these out, or set is_impossible to false");
    }
    data_.questions.push_back(std::move(question));
  }

  SquadAnswer read_answer(const Json& entry, const CodePoints& places, const std::string& id,
                          const std::string& where) {
    SquadAnswer answer{.text = json_string(entry, "text", where), .start = json_id(entry, "answer_start", where)};
    const std::string_view context = data_.paragraphs.back().context;
    std::string_view found = "";
    if (answer.start < places.count()) {
      const size_t begin = places.byte(answer.start);
      found = context.substr(begin);
      answer.located = !answer.text.empty() && found.starts_with(answer.text);
      if (answer.located) answer.bytes = {.begin = begin, .end = begin + answer.text.size()};
    }
    ++data_.answers;
    if (!answer.located && data_.misplaced++ == 0) {
      data_.first_misplaced = join_text("the first: question ", id, " has ", brief_json(answer.text), " at ",
                                        answer.start, ", where the context of ", places.count(), " characters has ",
                                        brief_json(std::string(found.substr(0, answer.text.size() + 8))));
    }
    return answer;
  }

  SquadData data_;
  std::unordered_set<std::string> ids_;
};

bool is_answered(const SquadQuestion& question) { return !question.answers.empty(); }

}  // namespace

SquadData read_squad(const std::string& path) { return SquadReader(path).read(); }

std::string misplaced_note(const SquadData& data) {
  if (data.misplaced == 0) return "";
  return join_text(data.source, ": ", data.misplaced, " of ", data.answers,
                   " answers do not stand at their answer_start (", data.first_misplaced, ")");
}

bool can_be_scored(const SquadData& data) {
  return data.rules == SquadRules::kV2 ? std::any_of(data.questions.begin(), data.questions.end(), is_answered)
                                       : std::all_of(data.questions.begin(), data.questions.end(), is_answered);
}

void check_can_be_scored(const SquadData& data) {
  if (can_be_scored(data)) return;
  HS_CHECK(std::any_of(data.questions.begin(), data.questions.end(), is_answered), data.source, ": none of the ",
           data.questions.size(),
           " questions has a gold answer; nothing can be learned or scored with questions alone");
  const auto first = std::find_if_not(data.questions.begin(), data.questions.end(), is_answered);
  throw Error(join_text(data.source, ": question ", first->id,
                        " has no gold answer, which SQuAD v1.1 does not know; a file of v2.0 has the version "
                        "\"v2.0\""));
}

std::string squad_file(const SquadData& data) {
  using Ordered = nlohmann::ordered_json;
  const bool second = data.rules == SquadRules::kV2;
  Ordered articles = Ordered::array();
  size_t last = data.paragraphs.size();  // the paragraph of the question before
  for (const SquadQuestion& question : data.questions) {
    const SquadParagraph& paragraph = data.paragraphs[question.paragraph];
    if (articles.empty() || articles.back()["title"] != paragraph.title) {
      articles.push_back({{"title", paragraph.title}, {"paragraphs", Ordered::array()}});
      last = data.paragraphs.size();
    }
    Ordered& paragraphs = articles.back()["paragraphs"];
    if (question.paragraph != last) paragraphs.push_back({{"context", paragraph.context}, {"qas", Ordered::array()}});
    last = question.paragraph;
    Ordered entry = {{"id", question.id}, {"question", question.question}, {"answers", Ordered::array()}};
    for (const SquadAnswer& answer : question.answers) {
      entry["answers"].push_back({{"text", answer.text}, {"answer_start", answer.start}});
    }
    if (second) entry["is_impossible"] = question.answers.empty();
    paragraphs.back()["qas"].push_back(std::move(entry));
  }
  return Ordered{{"version", second ? "v2.0" : "1.1"}, {"data", std::move(articles)}}.dump(1) + "\n";
}

std::vector<SquadGold> gold_answers(const SquadData& data) {
  std::vector<SquadGold> gold;
  gold.reserve(data.questions.size());
  for (const SquadQuestion& question : data.questions) {
    SquadGold one{.id = question.id};
    for (const SquadAnswer& answer : question.answers) one.answers.push_back(answer.text);
    gold.push_back(std::move(one));
  }
  return gold;
}

std::unordered_map<std::string, std::string> read_squad_answers(const std::string& path) {
  std::unordered_map<std::string, std::string> answers;
  for (const auto& [id, value] : read_json_members(path)) {
    answers[id] = json_string(value, join_text(path, ": the answer to ", id));
  }
  return answers;
}

NullOdds read_null_odds(const std::string& path) {
  NullOdds odds;
  for (const auto& [id, value] : read_json_members(path)) {
    HS_CHECK(value.is_number(), path, ": the null odds of ", id, " must be a number, not ", brief_json(value));
    odds.emplace_back(id, value.get<double>());
  }
  return odds;
}

}  // namespace headshare
