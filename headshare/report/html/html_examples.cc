#include "headshare/report/html/html_examples.h"

#include <fmt/format.h>

#include "headshare/base/error.h"
#include "headshare/report/html/html_table.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

// Returns the cell with the lowest seed of a row's best setting; null where none is finished.
const Cell* shown_cell(const Results& results, const VariantRow& row) {
  const Cell* first = nullptr;
  for (const Cell& cell : results.cells) {
    const bool own = cell.key.variant == row.variant && cell.key.setting == row.best.setting;
    if (own && (first == nullptr || cell.key.seed < first->key.seed)) first = &cell;
  }
  return first;
}

std::string example_table(const ReportView& view, size_t i) {
  const WrittenExample& example = view.results.subject.examples[i];
  HtmlTable table({{.text = "Who", .number = false}, {.text = "Text", .number = false}});
  const auto text = [](const std::string& words) {
    return HtmlCell{"<span dir=\"auto\">" + escape_html(words) + "</span>"};
  };
  table.add({text_cell("source"), text(example.input)});
  table.add({text_cell("reference"), text(example.reference)}, "best");
  for (const VariantRow& row : view.rows) {
    const Cell* cell = shown_cell(view.results, row);
    if (cell != nullptr) table.add({{view.key(row.variant)}, text(cell->examples.at(i))});
  }
  return table.html("Sentence " + std::to_string(example.item + 1), /*sortable=*/false) + "\n";
}

// Returns a table with a row for each image: the picture, its class, and the class that each variant told.
std::string image_table(const ReportView& view) {
  const std::vector<WrittenExample>& examples = view.results.subject.examples;
  std::vector<HtmlTable::Heading> headings = {{.text = "Image", .number = false}, {.text = "Class", .number = false}};
  std::vector<const Cell*> shown;
  for (const VariantRow& row : view.rows) {
    const Cell* cell = shown_cell(view.results, row);
    if (cell == nullptr) continue;
    headings.push_back({.text = row.variant, .number = false});
    shown.push_back(cell);
  }
  HtmlTable table(headings);
  for (size_t i = 0; i < examples.size(); ++i) {
    const WrittenExample& one = examples[i];
    std::vector<HtmlCell> cells = {{picture_html(one.image, join_text("image ", one.item + 1))},
                                   text_cell(one.reference)};
    for (const Cell* cell : shown) {
      const std::string& told = cell->examples.at(i);
      cells.push_back(text_cell(told));
      if (told != one.reference) cells.back().html += "<span class=\"sub\">wrong</span>";
    }
    table.add(std::move(cells));
  }
  return table.html("Images and the classes that models told", /*sortable=*/false) + "\n";
}

}  // namespace

std::string examples_html(const ReportView& view) {
  if (view.results.subject.examples.empty() || view.results.cells.empty()) return "";
  if (!view.results.subject.examples.front().image.empty()) {
    return fmt::format(
        "<h3 id=\"{}-examples\">What the models see in images</h3>\n<p class=\"explains\">Images from all over the "
        "part, chosen before any model saw them; of each {} the first seed.</p>\n{}",
        view.id, noun(view.results), image_table(view));
  }
  std::string made = fmt::format(
      "<h3 id=\"{}-examples\">What the models wrote</h3>\n<p class=\"explains\">Sentences from all over the part, "
      "chosen "
      "before anything was translated; of each {} the first seed.</p>\n",
      view.id, noun(view.results));
  for (size_t i = 0; i < view.results.subject.examples.size(); ++i) made += example_table(view, i);
  return made;
}

}  // namespace headshare
