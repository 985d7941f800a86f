#include "headshare/data/parallel/pair_text.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/data/benchmarks/json_lines.h"
#include "headshare/data/text/allowed_text.h"

namespace headshare {
namespace {

constexpr const char* kNested = "translation";  // Hugging Face's name

bool ends_with(std::string name, const char* ending) {
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return name.ends_with(ending);
}

// Throws Error for standard input and pipes: pairs are read for the tokenizer, then for the ids.
void refuse_streams(const std::string& path) {
  std::error_code ignored;
  HS_CHECK(path != "-" &&
               (!fs::exists(path, ignored) || fs::is_regular_file(path, ignored) || fs::is_directory(path, ignored)),
           path, " is standard input or a pipe, and pairs are read several times: write them to a file first");
}

PairFormat format_of(const PairFiles& files, PairFormat chosen) {
  refuse_streams(files.source);
  if (!files.target.empty()) refuse_streams(files.target);
  HS_CHECK(!files.source.empty(), "the target file ", files.target, " has no source; give --", files.part,
           "source too");
  const bool two = !files.target.empty();
  if (chosen == PairFormat::kLines || (chosen == PairFormat::kAuto && two)) {
    HS_CHECK(two, files.source, " has no translations beside it; give --", files.part,
             "target, or a .tsv or .jsonl file with both sides");
    return PairFormat::kLines;
  }
  HS_CHECK(!two, "the pairs are in one file, but there are two: ", files.source, " and ", files.target, "; leave --",
           files.part, "target out, or set --pair-format lines");
  if (chosen != PairFormat::kAuto) return chosen;
  if (ends_with(files.source, ".tsv")) return PairFormat::kTsv;
  HS_CHECK(ends_with(files.source, ".jsonl"), files.source, " has no translations beside it: give --", files.part,
           "target, or the format of a file with both sides, --pair-format tsv "
           "or jsonl");
  return PairFormat::kJsonLines;
}

// Tells whether some part has both sides in one file, whose texts have names.
bool any_names(const PairOptions& options) {
  const PairFiles* parts[] = {&options.train, &options.validation, &options.test};
  return std::any_of(std::begin(parts), std::end(parts),
                     [](const PairFiles* one) { return one->given() && one->target.empty(); });
}

std::string sentence_of(const nlohmann::json& record, const std::string& name, const std::string& where) {
  const auto found = record.find(name);
  if (found == record.end()) {
    std::vector<std::string> names;
    for (const auto& item : record.items()) names.push_back(item.key());
    throw Error(join_text(where, ": the record has no ", brief_text(name), did_you_mean(name, names),
                          "; name its two texts with --pair-fields"));
  }
  HS_CHECK(found->is_string(), where, ": ", brief_text(name), " must be a text, not ", brief_json(*found));
  return found->get<std::string>();
}

}  // namespace

PairText::PairText(const PairFiles& files, const PairOptions& options)
    : fields_(options.pair_fields), format_(format_of(files, options.pair_format)) {
  rules_.invalid_utf8 = options.invalid_utf8 == InvalidUtf8::kReplace ? InvalidUtf8::kReplace : InvalidUtf8::kRefuse;
  HS_CHECK(fields_.empty() || fields_.size() == 2, "--pair-fields has ", fields_.size(),
           " names; there are two, the source's and the target's");
  HS_CHECK(fields_.empty() || fields_[0] != fields_[1], "--pair-fields names ", brief_text(fields_[0]), " twice");
  HS_CHECK(fields_.empty() || format_ != PairFormat::kLines || any_names(options),
           "--pair-fields is for a file with both sides; lines of two files have no names");
  HS_CHECK(!fields_.empty() || format_ != PairFormat::kJsonLines, files.source,
           ": which of its fields are the two sides? Name them: --pair-fields de,en");
  lines_[0] = std::make_unique<LineReader>(files.source);
  if (format_ == PairFormat::kLines) lines_[1] = std::make_unique<LineReader>(files.target);
  if (format_ == PairFormat::kTsv && !fields_.empty()) read_heading();
}

PairText::~PairText() = default;

std::string PairText::name() const {
  return lines_[1] == nullptr ? lines_[0]->name() : lines_[0]->name() + " and " + lines_[1]->name();
}

std::string PairText::where() const {
  return lines_[1] == nullptr ? lines_[0]->where() : lines_[0]->where() + " and " + lines_[1]->where();
}

std::string PairText::text_of(std::string_view line, const LineReader& reader) {
  std::string storage;
  return std::string(allowed_text(line, rules_, reader.where(), 0, &storage));
}

void PairText::read_heading() {
  const std::optional<std::string_view> line = lines_[0]->next();
  HS_CHECK(line, lines_[0]->name(), " is empty: a line with the names of the columns was expected");
  const std::vector<std::string> names = split_at_tabs(text_of(without_return(*line), *lines_[0]));
  column_count_ = names.size();
  for (size_t side = 0; side < 2; ++side) {
    const auto found = std::find(names.begin(), names.end(), fields_[side]);
    HS_CHECK(found != names.end(), where(), ": no column is called ", brief_text(fields_[side]),
             did_you_mean(fields_[side], names), "; without --pair-fields, a TSV has two columns and no heading");
    columns_[side] = static_cast<size_t>(found - names.begin());
  }
}

std::optional<Pair> PairText::next() {
  std::optional<Pair> pair = format_ == PairFormat::kLines ? next_lines()
                             : format_ == PairFormat::kTsv ? next_row()
                                                           : next_record();
  if (pair) ++pairs_;
  HS_CHECK(pair || pairs_ > 0, name(), ": no pairs: ", lines_[1] == nullptr ? "it is" : "both are", " empty");
  return pair;
}

std::optional<Pair> PairText::next_lines() {
  std::optional<std::string_view> source = lines_[0]->next();
  std::optional<std::string_view> target = lines_[1]->next();
  if (!source && !target) return std::nullopt;
  if (!source || !target) refuse_unequal(source ? 0 : 1);
  return Pair{text_of(without_return(*source), *lines_[0]), text_of(without_return(*target), *lines_[1])};
}

void PairText::refuse_unequal(size_t longer) {
  while (lines_[longer]->next()) {
  }
  throw Error(join_text(lines_[0]->name(), " has ", lines_[0]->number(), " lines and ", lines_[1]->name(), " has ",
                        lines_[1]->number(),
                        "; line n of one must be the translation of line n of the other: are these files of the same "
                        "text, and is one cut short?"));
}

std::optional<Pair> PairText::next_row() {
  const std::optional<std::string_view> line = lines_[0]->next();
  if (!line) return std::nullopt;
  std::vector<std::string> columns = split_at_tabs(text_of(without_return(*line), *lines_[0]));
  HS_CHECK(columns.size() == column_count_, lines_[0]->where(), ": ", columns.size(), " columns, not ", column_count_,
           fields_.empty() ? "; a source and its target were expected, with a tab between them" : " as in the heading");
  return Pair{std::move(columns[columns_[0]]), std::move(columns[columns_[1]])};
}

std::optional<Pair> PairText::next_record() {
  std::optional<std::string_view> line = lines_[0]->next();
  while (line && is_blank(without_return(*line))) line = lines_[0]->next();
  if (!line) return std::nullopt;
  const std::string where = lines_[0]->where();
  TextSourceOptions rules = rules_;
  rules.allow_binary = true;  // parse_json_line refuses NUL bytes as what they are here: not JSON
  std::string storage;
  const nlohmann::json record = parse_json_line(allowed_text(*line, rules, where, 0, &storage), where);
  const bool nested = !record.contains(fields_[0]) && record.contains(kNested) && record[kNested].is_object();
  const nlohmann::json& sides = nested ? record[kNested] : record;
  return Pair{text_of(sentence_of(sides, fields_[0], where), *lines_[0]),
              text_of(sentence_of(sides, fields_[1], where), *lines_[0])};
}

}  // namespace headshare
