#include "headshare/metrics/coverage.h"

#include "headshare/base/json/json_reader.h"

namespace headshare {

nlohmann::ordered_json to_json(const Coverage& c) {
  const auto score = c.unseen_score ? nlohmann::ordered_json(*c.unseen_score) : nlohmann::ordered_json();
  nlohmann::ordered_json object = {
      {"types", c.types}, {"unseen_types", c.unseen_types}, {"words", c.words},     {"unseen_words", c.unseen_words},
      {"rows", c.rows},   {"unseen_rows", c.unseen_rows},   {"unseen_score", score}};
  if (c.cut_rows) object["cut_rows"] = *c.cut_rows;
  return object;
}

Coverage coverage_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  Coverage coverage{.types = read.integer("types", 0),
                    .unseen_types = read.integer("unseen_types", 0),
                    .words = read.integer("words", 0),
                    .unseen_words = read.integer("unseen_words", 0),
                    .rows = read.integer("rows", 0),
                    .unseen_rows = read.integer("unseen_rows", 0),
                    .cut_rows = read.has("cut_rows") ? std::optional(read.integer("cut_rows", 0)) : std::nullopt,
                    .unseen_score = read.optional_number("unseen_score")};
  HS_CHECK(coverage.unseen_types <= coverage.types && coverage.unseen_words <= coverage.words &&
               coverage.unseen_rows <= coverage.rows && coverage.cut_rows.value_or(0) <= coverage.rows,
           where, ": more unseen words, or unseen or cut rows, than there are");
  return coverage;
}

}  // namespace headshare
