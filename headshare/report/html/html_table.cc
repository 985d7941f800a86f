#include "headshare/report/html/html_table.h"

#include <fmt/format.h>

#include <cctype>

#include "headshare/report/svg/svg_plot.h"

namespace headshare {
namespace {

std::string cell_html(const HtmlCell& cell, const char* tag, bool number) {
  const std::string value = cell.value ? fmt::format(" data-value=\"{}\"", *cell.value) : "";
  return fmt::format("<{0}{1}{2}{3}>{4}</{5}>", tag, tag[1] == 'h' ? " scope=\"row\"" : "",
                     number ? " class=\"n\"" : "", value, cell.html, tag);
}

std::string region(const std::string& label, const std::string& inside) {
  return fmt::format("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">{}</div>\n",
                     escape_html(label), inside);
}

}  // namespace

std::string picture_html(const std::string& png, const std::string& says) {
  return fmt::format("<img class=\"picture\" src=\"data:image/png;base64,{}\" alt=\"{}\">", png, escape_html(says));
}

HtmlCell text_cell(const std::string& text) { return {escape_html(text)}; }

std::string escape_numbers(const std::string& text) {
  const std::string escaped = escape_html(text);
  std::string made;
  for (size_t i = 0; i < escaped.size(); ++i) {
    const bool digit_follows = i + 1 < escaped.size() && std::isdigit(static_cast<unsigned char>(escaped[i + 1])) != 0;
    const bool digit_before = i > 0 && std::isalnum(static_cast<unsigned char>(escaped[i - 1])) != 0;
    made += escaped[i] == '-' && digit_follows && !digit_before ? "−" : std::string(1, escaped[i]);
  }
  return made;
}

HtmlCell number_cell(const std::string& text, std::optional<double> value) {
  if (text == "-") return {"<span class=\"none\">–</span>"};
  return {escape_numbers(text), value};
}

void HtmlTable::add(std::vector<HtmlCell> cells, const std::string& css) { rows_.push_back({std::move(cells), css}); }

std::string HtmlTable::html(const std::string& caption, bool sortable) const {
  std::string made = fmt::format("<table{}><caption>{}</caption><thead><tr>", sortable ? " class=\"sortable\"" : "",
                                 escape_html(caption));
  for (const Heading& heading : headings_) {
    made +=
        fmt::format("<th scope=\"col\"{}>{}{}</th>", heading.number ? " class=\"n\"" : "", escape_html(heading.text),
                    heading.unit.empty() ? "" : "<span class=\"unit\">" + escape_html(heading.unit) + "</span>");
  }
  made += "</tr></thead>\n<tbody>";
  for (const Row& row : rows_) {
    made += row.css.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", row.css);
    for (size_t i = 0; i < row.cells.size(); ++i) {
      made += cell_html(row.cells[i], i == 0 ? "th" : "td", headings_[i].number);
    }
    made += "</tr>\n";
  }
  return region(caption, made + "</tbody></table>");
}

std::string to_html(const HtmlFigure& figure) {
  return fmt::format(
      "<figure id=\"{0}\"><figcaption><h4>{1}</h4><p>{2}</p></figcaption>\n{3}"
      "<details><summary>The data of this figure<span class=\"vh\">: {1}</span></summary>\n{4}</details></figure>\n",
      figure.id, escape_numbers(figure.title), escape_numbers(figure.caption), figure.svg, figure.data);
}

std::string figures_html(const std::vector<HtmlFigure>& figures) {
  if (figures.empty()) return "";
  std::string made = "<div class=\"figures\">\n";
  for (const HtmlFigure& figure : figures) made += to_html(figure);
  return made + "</div>\n";
}

std::string list_items(const std::vector<std::string>& texts) {
  std::string made;
  for (const std::string& text : texts) made += "<li>" + escape_numbers(text) + "</li>";
  return made;
}

}  // namespace headshare
