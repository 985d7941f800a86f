#include "headshare/tasks/finetune/task_note.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "headshare/data/test_support.h"

namespace headshare {
namespace {

using testing::HasSubstr;

class TaskNoteTest : public DirectoryTest {
 protected:
  std::string refusal(const std::string& key, const nlohmann::json& value) {
    nlohmann::json object = nlohmann::json::parse(read_file(directory_ / kTaskNoteFile));
    if (value.is_null()) {
      object.erase(key);
    } else {
      object[key] = value;
    }
    file("other/" + std::string(kTaskNoteFile), object.dump());
    return error_message([&] { read_task_note(directory_ / "other"); });
  }
};

TEST_F(TaskNoteTest, ComesBackAsItWasWritten) {
  const TaskNote note{.task = "pair",
                      .max_length = 77,
                      .most_rows = 13,
                      .table = {.text = "a, \"b\"", .pair = "\xC3\xA4", .label = "l"}};
  write_task_note(directory_, note);
  const TaskNote read = read_task_note(directory_);
  EXPECT_EQ(read.task, "pair");
  EXPECT_EQ(read.max_length, 77);
  EXPECT_EQ(read.most_rows, 13);
  EXPECT_EQ(read.table.text, note.table.text);
  EXPECT_EQ(read.table.pair, note.table.pair);
  EXPECT_EQ(read.table.label, note.table.label);
}

TEST_F(TaskNoteTest, QuestionsAboutTextsHaveOptionsOfTheirOwn) {
  write_task_note(directory_, {.task = kSquadTask, .max_length = 77, .windows = {.stride = 5}, .answers = {.best = 3}});
  const TaskNote read = read_task_note(directory_);
  EXPECT_EQ(read.windows.stride, 5);
  EXPECT_EQ(read.windows.question_length, std::nullopt);
  EXPECT_EQ(read.answers.best, 3);
  make_directories(directory_ / "other");
  EXPECT_THAT(refusal("squad", nullptr), HasSubstr("squad"));
  EXPECT_THAT(refusal("squad", {{"n-best", -1}}), HasSubstr("n-best"));
}

TEST_F(TaskNoteTest, AnOlderModelHasNone) {
  EXPECT_THAT(error_message([&] { read_task_note(directory_); }),
              testing::AllOf(HasSubstr("has no task.json"), HasSubstr("fine-tune it again")));
}

TEST_F(TaskNoteTest, RefusesWhatIsDamagedOrNewer) {
  make_directories(directory_ / "other");
  write_task_note(directory_, {.task = "classify", .max_length = 16});
  EXPECT_EQ(refusal("max_length", 17), "no error");
  EXPECT_THAT(refusal("version", 2), HasSubstr("version 2; this headshare reads up to 1"));
  EXPECT_THAT(refusal("task", "glue/colla"), HasSubstr("'glue/colla'"));
  EXPECT_THAT(refusal("format", "else"), HasSubstr("not about a fine-tuned model"));
  for (const char* key : {"task", "version", "max_length", "rows_at_once", "text_column"}) {
    EXPECT_THAT(refusal(key, nullptr), HasSubstr(key));
    EXPECT_THAT(refusal(key, nlohmann::json::object()), HasSubstr(key));
  }
  for (const int64_t absurd : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) {
    EXPECT_NE(refusal("max_length", absurd), "");
    EXPECT_NE(refusal("rows_at_once", absurd), "");
  }
  file(kTaskNoteFile, "{\"format\"");
  EXPECT_THAT(error_message([&] { read_task_note(directory_); }), HasSubstr("task.json"));
}

}  // namespace
}  // namespace headshare
