// Makes the tables and figures of report.html.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace headshare {

// A cell has its markup, and the number to sort by.
struct HtmlCell {
  std::string html;
  std::optional<double> value = {};
};

// Returns a picture, a PNG file in base64, that the page carries itself; `says` describes it to those who do not see
// it.
std::string picture_html(const std::string& png, const std::string& says);

HtmlCell text_cell(const std::string& text);  // escaped
// Returns the text escaped, with real minus signs before numbers.
std::string escape_numbers(const std::string& text);
// Returns a cell of the same; "-" becomes a dash.
HtmlCell number_cell(const std::string& text, std::optional<double> value = {});

class HtmlTable {
 public:
  struct Heading {
    std::string text;
    bool number = true;
    std::string unit = {};  // a second, smaller line
  };

  explicit HtmlTable(std::vector<Heading> headings) : headings_(std::move(headings)) {}

  // The first cell is the row's heading; `css` is the row's class.
  void add(std::vector<HtmlCell> cells, const std::string& css = {});

  // Returns the table in a region of its own that scrolls where the page is narrower, also by keyboard. `caption` names
  // it.
  std::string html(const std::string& caption, bool sortable) const;

 private:
  struct Row {
    std::vector<HtmlCell> cells;
    std::string css;
  };

  std::vector<Heading> headings_;
  std::vector<Row> rows_;
};

struct HtmlFigure {
  std::string id;
  std::string title;
  std::string caption;  // what to see in it, and how it was drawn
  std::string svg;
  std::string data;  // the same as a table
};

std::string to_html(const HtmlFigure& figure);
std::string figures_html(const std::vector<HtmlFigure>& figures);  // beside one another; "" without any

std::string list_items(const std::vector<std::string>& texts);  // escaped, as escape_numbers() does

}  // namespace headshare
