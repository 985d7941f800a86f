#include "headshare/report/analysis/image_looks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/strings/base64.h"
#include "headshare/base/strings/format.h"
#include "headshare/data/images/encode_png.h"
#include "headshare/report/html/html_table.h"
#include "headshare/report/svg/svg_plot.h"

namespace headshare {
namespace {

// Colours from no attention to the most rise in lightness, so that they can be told apart without hue.
constexpr std::array<std::array<double, 3>, 5> kColours = {
    {{12, 7, 38}, {84, 20, 109}, {180, 48, 82}, {244, 120, 32}, {252, 240, 150}}};

// Returns the colour of a share from 0 to 1, linear between those above.
std::array<uint8_t, 3> colour_of(double share) {
  const double place = std::clamp(share, 0.0, 1.0) * (kColours.size() - 1);
  const auto below = std::min(static_cast<size_t>(place), kColours.size() - 2);
  const double part = place - static_cast<double>(below);
  std::array<uint8_t, 3> colour{};
  for (size_t i = 0; i < 3; ++i) {
    colour[i] = static_cast<uint8_t>(std::lround((1 - part) * kColours[below][i] + part * kColours[below + 1][i]));
  }
  return colour;
}

double largest(const HeadLook& look) { return *std::max_element(look.patches.begin(), look.patches.end()); }

// Returns a PNG file in base64 with a pixel for each patch; the largest weight has the last colour.
std::string heat_map(const LookedAtImage& image, const HeadLook& look) {
  Image map{.height = image.rows, .width = image.columns, .channels = 3};
  const double most = std::max(largest(look), 1e-30);
  for (const double weight : look.patches) {
    const std::array<uint8_t, 3> colour = colour_of(weight / most);
    map.pixels.insert(map.pixels.end(), colour.begin(), colour.end());
  }
  return to_base64(encode_png(map));
}

// Returns "layer 2, head 3: most, 12.3 %, at row 4, column 5".
std::string look_text(const LookedAtImage& image, const HeadLook& look, size_t layer, size_t head) {
  const auto place = std::max_element(look.patches.begin(), look.patches.end()) - look.patches.begin();
  return join_text("layer ", layer + 1, ", head ", head + 1, ": most, ", percent_text(largest(look), 1), ", at row ",
                   place / image.columns + 1, ", column ", place % image.columns + 1);
}

std::string head_html(const HeadAnalysis& analysis, const LookedAtImage& image, size_t layer, size_t head) {
  const HeadLook& look = image.layers[layer][head];
  const std::string tokens = analysis.class_token ? "<br>itself " + percent_text(look.tokens, 1) : "";
  return fmt::format(
      "<div><div class=\"look\"><div></div><img src=\"data:image/png;base64,{}\" alt=\"{}\"></div>"
      "<span class=\"sub\">head {}: most {}{}</span></div>",
      heat_map(image, look), escape_html(look_text(image, look, layer, head)), head + 1, percent_text(largest(look), 1),
      tokens);
}

std::string layer_html(const HeadAnalysis& analysis, const LookedAtImage& image, size_t layer) {
  std::string row = fmt::format(
      "<h5>Layer {}</h5>\n<div class=\"looks\"><div><div class=\"look\"></div>"
      "<span class=\"sub\">the image</span></div>",
      layer + 1);
  for (size_t head = 0; head < image.layers[layer].size(); ++head) row += head_html(analysis, image, layer, head);
  return row + "</div>\n";
}

}  // namespace

std::string image_looks_html(const HeadAnalysis& analysis) {
  if (analysis.images.empty()) return "";
  std::string made = fmt::format(
      "<p class=\"explains\">{} Colours go from dark (0) to yellow, the largest weight of a patch that this head "
      "gives in this image, which stands below the map{}</p>\n",
      analysis.class_token ? "Each picture is the attention of the class token over the patches of the image."
                           : "Each picture is the attention over the patches of the image, the mean of all patches.",
      analysis.class_token ? ", with what the class token gives to itself and to tokens beside it." : ".");
  for (const LookedAtImage& image : analysis.images) {
    made += fmt::format("<h4>{}</h4>\n<div style=\"--photo:url(data:image/png;base64,{})\">\n", escape_html(image.name),
                        image.picture);
    for (size_t layer = 0; layer < image.layers.size(); ++layer) made += layer_html(analysis, image, layer);
    made += "</div>\n";
  }
  return made;
}

}  // namespace headshare
