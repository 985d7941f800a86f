#include "headshare/convert/hf/preprocessor.h"

#include <cmath>
#include <iterator>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"

namespace headshare {
namespace {

constexpr const char* kFile = "preprocessor_config.json";
constexpr uint64_t kMostPreprocessorBytes = 1 << 20;
constexpr double kLevels = 255;  // of a pixel of 8 bits
constexpr int kBilinear = 2;     // Pillow's number

// Returns the numbers under `key`, one for each channel; the file may have one for all.
std::vector<double> channel_numbers(const nlohmann::json& file, const char* key, int64_t channels,
                                    const std::string& where) {
  const nlohmann::json value = file.value(key, nlohmann::json());
  const std::string what = join_text(where, ": ", key);
  if (value.is_number()) return std::vector<double>(static_cast<size_t>(channels), value.get<double>());
  std::vector<double> numbers;
  for (const nlohmann::json& one : json_list(value, what)) {
    HS_CHECK(one.is_number(), what, " has ", brief_json(one), ", which is no number");
    numbers.push_back(one.get<double>());
  }
  HS_CHECK(static_cast<int64_t>(numbers.size()) == channels, what, " has ", brief_json(value), ", and the model reads ",
           channels, channels == 1 ? " channel" : " channels", " of a pixel: one number is wanted for each");
  return numbers;
}

bool flag_of(const nlohmann::json& file, const char* key, bool otherwise, const std::string& where) {
  return file.contains(key) ? json_bool(file.at(key), join_text(where, ": ", key)) : otherwise;
}

// Returns the factor of a pixel from 0 to 255 before the mean is taken away.
double rescaling(const nlohmann::json& file, const std::string& where) {
  if (!flag_of(file, "do_rescale", true, where)) return 1;
  const nlohmann::json factor = file.value("rescale_factor", nlohmann::json(1 / kLevels));
  HS_CHECK(factor.is_number() && factor.get<double>() > 0, where, ": rescale_factor is ", brief_json(factor),
           ", which is no number above 0");
  return factor.get<double>();
}

// Returns the rows that an image has in the end: "size" is a number, {"height", "width"} or {"shortest_edge"}; nothing
// where the file does not say.
std::optional<int64_t> side_of(const nlohmann::json& file, const char* key) {
  const nlohmann::json size = file.value(key, nlohmann::json());
  if (!size.is_object()) return json_count(size);
  for (const char* side : {"height", "shortest_edge"}) {
    if (size.contains(side)) return json_count(size, side);
  }
  return std::nullopt;
}

// Tells whether images become squares whatever their shape was: without a cut "size" is both sides.
bool squashes(const nlohmann::json& file, const std::string& where) {
  const nlohmann::json size = file.value("size", nlohmann::json());
  return flag_of(file, "do_resize", true, where) && !flag_of(file, "do_center_crop", false, where) &&
         (size.is_number() || (size.is_object() && size.contains("height")));
}

void note_resizing(const nlohmann::json& file, const VisionOptions& options, const std::string& where,
                   std::vector<std::string>* notes) {
  constexpr const char* kFilters[] = {"nearest", "Lanczos", "bilinear", "bicubic", "box", "Hamming"};  // Pillow's order
  if (squashes(file, where)) {
    notes->push_back(join_text(where, " squashes images to squares; headshare resizes the shorter side to ",
                               options.image_size, " and cuts the middle out, which differs unless images are square"));
  }
  const std::optional<int64_t> filter = json_count(file.value("resample", nlohmann::json(kBilinear)));
  if (filter && *filter != kBilinear) {
    const bool known = *filter < static_cast<int64_t>(std::size(kFilters));
    notes->push_back(join_text(where, " resizes images with resample ", *filter, known ? " (" : "",
                               known ? kFilters[*filter] : "", known ? ")" : "", "; headshare's filter is bilinear"));
  }
}

void note_sizes(const nlohmann::json& file, const VisionOptions& options, const std::string& where,
                std::vector<std::string>* notes) {
  const bool crops = flag_of(file, "do_center_crop", false, where);
  const std::optional<int64_t> resized = side_of(file, "size");
  const std::optional<int64_t> last = crops ? side_of(file, "crop_size") : resized;
  if (last && *last != options.image_size) {
    notes->push_back(join_text(where, " makes images of ", *last, " x ", *last, " pixels, and the model reads ",
                               options.image_size, " x ", options.image_size));
  }
  if (crops && resized && last && *resized != *last) {
    notes->push_back(join_text(where, " resizes images to ", *resized, " before it cuts ", *last,
                               " out; headshare resizes the shorter side to ", options.image_size));
  }
}

}  // namespace

void read_preprocessor(const fs::path& directory, VisionOptions* options, std::vector<std::string>* notes) {
  const fs::path path = directory / kFile;
  if (!fs::exists(path)) {
    notes->push_back(join_text(directory.string(), " has no ", kFile,
                               ": pixels are read as numbers from 0 to 1, without a mean and a deviation"));
    return;
  }
  const std::string where = path.string();
  const nlohmann::json file = read_json_input(path, kMostPreprocessorBytes);
  HS_CHECK(file.is_object(), where, ": must be a JSON object, not ", brief_json(file));
  const double scale = rescaling(file, where) * kLevels;  // of a pixel from 0 to 1, which is ours
  std::vector<double> mean(static_cast<size_t>(options->channels), 0), deviation(mean.size(), 1);
  if (flag_of(file, "do_normalize", true, where)) {
    mean = channel_numbers(file, "image_mean", options->channels, where);
    deviation = channel_numbers(file, "image_std", options->channels, where);
  }
  for (double& one : deviation) {
    HS_CHECK(one > 0, where, ": image_std has ", one, ", which is not above 0");
    one /= scale;
  }
  for (double& one : mean) one /= scale;
  options->images.mean = mean;
  options->images.deviation = deviation;
  note_sizes(file, *options, where, notes);
  note_resizing(file, *options, where, notes);
}

nlohmann::json written_preprocessor(const VisionOptions& options) {
  const auto or_all = [&](const std::vector<double>& list, double otherwise) {
    return list.empty() ? std::vector<double>(static_cast<size_t>(options.channels), otherwise) : list;
  };
  const int64_t side = options.image_size;
  return {{"image_processor_type", "ViTImageProcessor"},
          {"do_resize", true},
          {"size", {{"shortest_edge", side}}},
          {"resample", kBilinear},
          {"do_center_crop", true},
          {"crop_size", {{"height", side}, {"width", side}}},
          {"do_rescale", true},
          {"rescale_factor", 1 / kLevels},
          {"do_normalize", true},
          {"image_mean", or_all(options.images.mean, 0)},
          {"image_std", or_all(options.images.deviation, 1)}};
}

}  // namespace headshare
