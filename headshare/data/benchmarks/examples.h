// This header reads labelled texts and pairs of texts: the text tasks of GLUE and SuperGLUE, and the user's own tables.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "headshare/data/benchmarks/table.h"
#include "headshare/data/benchmarks/task_list.h"

namespace headshare {

struct TextExample {
  std::string first;
  std::string second;                                        // empty for single texts
  int32_t label = -1;                                        // -1: none, or a number
  double number = std::numeric_limits<double>::quiet_NaN();  // nan: none, or a class
  int64_t index = 0;  // the file's own (column index or idx), else the row's number from 0
};

struct TextExamples {
  std::string source = {};  // the file, for messages
  std::vector<TextExample> items = {};
  std::vector<std::string> labels = {};  // the name of each class; empty: numbers
  bool pairs = false;
  bool labelled = false;                // every example is; else none
  std::vector<std::string> notes = {};  // sentences about what was left out or looks wrong, for the user
};

// Reads a file of a task whose form is kText. Its ending names TSV, CSV or JSONL; where the ending says nothing, GLUE
// is TSV and SuperGLUE JSONL. Columns a task does not use are passed over. Throws Error naming file and line for what
// TableReader refuses, an unknown label (with the nearest and all known ones), a number out of range, an empty text or
// label, labels on some rows only, and a file without rows.
TextExamples read_examples(const TaskInfo& task, const std::string& path);

// This is the user's own table.
struct OwnTable {
  std::string text = "text";
  std::string pair = {};        // the second text's column; empty: single texts
  std::string label = "label";  // "" where the column may be missing: labels are not read
  bool numbers = false;         // the label is a number, not a class
  TableFormat format = TableFormat::kByName;
};

Fields fields(OwnTable& options);

enum class LabelColumn { kRequired, kMayBeMissing };

// Reads the user's own table. Classes are the labels found, numbers by size and others by their bytes, unless `labels`
// gives those of the training file: then any other is refused. Every row needs a label, unless the column may be
// missing and is: that is noted. Throws Error as read_examples does, and for more than 1,000 classes.
TextExamples read_own_table(const OwnTable& options, const std::string& path,
                            const std::vector<std::string>& labels = {}, LabelColumn column = LabelColumn::kRequired);

// Returns the class of a label; throws Error, which lists the known labels, for an unknown one. `where` leads the
// error.
int32_t find_label(const std::string& text, const std::vector<std::string>& labels, const std::string& where);

// Parses a finite number; `where` leads the error.
double parse_number(const std::string& text, const std::string& where);

}  // namespace headshare
