#include "headshare/tasks/finetune/task_note.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_reader.h"
#include "headshare/base/json/json_text.h"
#include "headshare/tasks/finetune/job.h"

namespace headshare {
namespace {

constexpr uint64_t kMostNoteBytes = 1 << 20;
constexpr int64_t kMostLength = 1 << 20;  // the most that --max-length can be
constexpr int64_t kMostRows = 1 << 20;
constexpr const char* kFormat = "headshare-task";

// Lists how questions about texts are cut into rows and answered.
Fields squad_fields(TaskNote& note) {
  Fields list = fields(note.windows);
  append(&list, fields(note.answers));
  return list;
}

nlohmann::json squad_values(TaskNote note) { return to_json(squad_fields(note)); }

}  // namespace

void write_task_note(const fs::path& directory, const TaskNote& note) {
  nlohmann::ordered_json object = {{"format", kFormat},
                                   {"version", kTaskNoteVersion},
                                   {"task", note.task},
                                   {"max_length", note.max_length},
                                   {"rows_at_once", note.most_rows},
                                   {"text_column", note.table.text},
                                   {"pair_column", note.table.pair},
                                   {"label_column", note.table.label}};
  if (note.task == kSquadTask) object["squad"] = squad_values(note);
  write_file(directory / kTaskNoteFile, json_text(object, 2) + "\n");
}

TaskNote read_task_note(const fs::path& directory) {
  const fs::path path = directory / kTaskNoteFile;
  HS_CHECK(path_exists(path), directory.string(), " has no ", kTaskNoteFile,
           ", in which `headshare finetune` notes what a model was made for: it is no fine-tuned model, or one of an "
           "older headshare; fine-tune it again");
  const nlohmann::json object = read_json_file(path, kMostNoteBytes, "it is damaged; fine-tune the model again");
  const JsonReader reader(object, path.string());
  HS_CHECK(reader.text("format") == kFormat, path.string(), " is not about a fine-tuned model of headshare");
  const int64_t version = reader.integer("version", 1);
  HS_CHECK(version <= kTaskNoteVersion, path.string(), " has version ", version, "; this headshare reads up to ",
           kTaskNoteVersion, ": use a newer one");
  TaskNote note{.task = reader.text("task"),
                .max_length = reader.integer("max_length", 1),
                .most_rows = reader.integer("rows_at_once", 1)};
  note.table.text = reader.text("text_column");
  note.table.pair = reader.text("pair_column");
  note.table.label = reader.text("label_column");
  if (note.task == kSquadTask) {
    Fields list = squad_fields(note);
    from_json(list, reader.object("squad"), path.string() + ": squad");
  }
  const std::vector<std::string> known = job_names();
  HS_CHECK(std::find(known.begin(), known.end(), note.task) != known.end(), path.string(), " names the task ",
           brief_text(note.task), ", which this headshare does not know");
  HS_CHECK(note.max_length <= kMostLength, path.string(), ": rows of ", note.max_length,
           " tokens are longer than any model's: it is damaged");
  HS_CHECK(note.most_rows <= kMostRows, path.string(), ": ", note.most_rows,
           " rows at once are more than any: it is damaged");
  return note;
}

}  // namespace headshare
