// These targets read data files: tables, examples of GLUE and SuperGLUE, SQuAD, predictions, texts.
#include <zlib.h>

#include "headshare/base/error.h"
#include "headshare/data/benchmarks/examples.h"
#include "headshare/data/benchmarks/json_members.h"
#include "headshare/data/benchmarks/predictions.h"
#include "headshare/data/benchmarks/squad.h"
#include "headshare/data/benchmarks/superglue.h"
#include "headshare/data/benchmarks/table.h"
#include "headshare/data/benchmarks/task_list.h"
#include "headshare/data/text/text_source.h"
#include "tests/fuzz/driver.h"

namespace headshare::fuzz {
namespace {

// Reads every file of the folder, each as the table its ending says.
void read_tables(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    for (const bool quoted : {false, true}) {
      may_refuse([&] {
        TableOptions options;
        if (quoted) options.format = TableFormat::kQuotedTsv;
        options.skip_short_rows = quoted;
        TableReader reader(entry.path().string(), options);
        reader.choose({{.names = {"text", "sentence"}, .required = false}, {.names = {"label"}, .required = false}});
        while (const auto row = reader.next()) use(row->fields.size() + reader.where(*row).size());
      });
    }
    may_refuse([&] { use(read_own_table({}, entry.path().string()).items.size()); });
    may_refuse([&] {
      OwnTable options;
      options.pair = "second";
      options.numbers = true;
      use(read_own_table(options, entry.path().string(), {}, LabelColumn::kMayBeMissing).items.size());
    });
  }
}

// Reads the gold file of a task, and predictions for it where there are some.
void read_task(const fs::path& folder, const TaskInfo& task, const std::string& ending) {
  const std::string gold_path = (folder / ("gold." + ending)).string();
  const std::string predictions = (folder / ("predictions." + ending)).string();
  if (task.form == TaskForm::kText) may_refuse([&] { use(read_examples(task, gold_path).items.size()); });
  if (task.form == TaskForm::kRecord) {
    use(read_record_answers(gold_path, predictions).size());
    return;
  }
  const GoldLabels gold = read_gold_labels(task, gold_path);
  may_refuse([&] { use(read_predictions(task, gold, predictions).gold.size()); });
}

Target task_target(Suite suite, const std::string& name) {
  const std::string ending = suite == Suite::kGlue ? "tsv" : "jsonl";
  return {
      .name = suite_name(suite) + "-" + name,
      .read = [task = &find_task(suite, name), ending](const fs::path& folder) { read_task(folder, *task, ending); }};
}

void read_superglue(const fs::path& folder) {
  const std::string path = (folder / "gold.jsonl").string();
  may_refuse([&] { use(read_copa(path).size()); });
  may_refuse([&] {
    for (const WicExample& one : read_wic(path)) {
      use(one.sentence1.substr(one.place1.begin, one.place1.end - one.place1.begin).size());
      use(one.sentence2.substr(one.place2.begin, one.place2.end - one.place2.begin).size());
    }
  });
  may_refuse([&] {
    for (const WscExample& one : read_wsc(path).examples) {
      use(one.text.substr(one.noun.begin, one.noun.end - one.noun.begin).size());
      use(one.text.substr(one.pronoun.begin, one.pronoun.end - one.pronoun.begin).size());
    }
  });
  may_refuse([&] { use(read_multirc(path).examples.size()); });
  may_refuse([&] {
    for (const RecordPassage& one : read_record(path).passages) {
      for (const TextSpan span : one.entities) use(one.text.substr(span.begin, span.end - span.begin).size());
    }
  });
}

void read_squad_files(const fs::path& folder) {
  may_refuse([&] { use(read_squad_answers((folder / "answers.json").string()).size()); });
  may_refuse([&] { use(read_null_odds((folder / "odds.json").string()).size()); });
  const SquadData data = read_squad((folder / "squad.json").string());
  for (const SquadQuestion& question : data.questions) {
    const std::string& context = data.paragraphs.at(question.paragraph).context;
    for (const SquadAnswer& answer : question.answers) {
      const auto [begin, end] = answer.bytes;
      if (answer.located && context.substr(begin, end - begin) != answer.text) throw std::logic_error("not located");
    }
  }
  use(misplaced_note(data).size() + squad_file(data).size() + gold_answers(data).size());
  check_can_be_scored(data);
}

void read_texts(const fs::path& folder) {
  for (const InvalidUtf8 policy : {InvalidUtf8::kRefuse, InvalidUtf8::kReplace, InvalidUtf8::kKeep}) {
    may_refuse([&] {
      TextSource source(
          {.inputs = {folder.string()}, .invalid_utf8 = policy, .allow_binary = policy == InvalidUtf8::kKeep});
      while (const auto piece = source.next()) use(piece->text.size());
    });
  }
}

std::string gzipped(const std::string& text) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw Error("zlib");
  std::string packed(text.size() + 200, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

std::vector<Target> targets() {
  const std::string lines = "{\"text\": \"one two\"}\n{\"text\": \"three\"}\n";
  return {
      {.name = "tables", .read = read_tables, .seeds = {{{"t.tsv.gz", gzipped("text\tlabel\na\t1\n")}}}},
      task_target(Suite::kGlue, "cola"),
      task_target(Suite::kGlue, "sst-2"),
      task_target(Suite::kGlue, "mnli"),
      task_target(Suite::kGlue, "sts-b"),
      task_target(Suite::kSuperGlue, "boolq"),
      task_target(Suite::kSuperGlue, "multirc"),
      task_target(Suite::kSuperGlue, "record"),
      {.name = "superglue", .read = read_superglue},
      {.name = "squad", .read = read_squad_files},
      {.name = "texts", .read = read_texts, .seeds = {{{"a.jsonl.gz", gzipped(lines)}, {"b.txt", "plain"}}}},
  };
}

}  // namespace headshare::fuzz
