#include "headshare/cli/verbs/predict_images.h"

#include "headshare/base/json/json_text.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/progress.h"
#include "headshare/cli/terminal/table.h"
#include "headshare/tasks/images/predict_images.h"

namespace headshare {
namespace {

using Json = nlohmann::ordered_json;

// Returns a line for each of the likeliest classes.
std::string table_lines(const ImagePredictor& predictor, const ImagePrediction& one, int64_t top) {
  std::string lines;
  for (const int64_t index : one.likeliest(top)) {
    lines += join_text(tsv_field(one.image), "\t", tsv_field(predictor.label(index)), "\t",
                       format_fixed(one.probabilities[static_cast<size_t>(index)], 6), "\n");
  }
  return lines;
}

// Classes are a list, because two of them may have one name, as two of ImageNet's do.
std::string json_line(const ImagePredictor& predictor, const ImagePrediction& one, int64_t top) {
  Json classes = Json::array();
  for (const int64_t index : one.likeliest(top)) {
    classes.push_back(
        {{"label", predictor.label(index)}, {"probability", one.probabilities[static_cast<size_t>(index)]}});
  }
  const Json object = {{"image", one.image},
                       {"prediction", classes.front()["label"]},
                       {"probability", classes.front()["probability"]},
                       {"classes", classes}};
  return json_text(object) + "\n";
}

}  // namespace

LabelledImages predict_images(const ImagesToPredict& asked, c10::Device device) {
  ImagePredictor predictor(load_vision_model(asked.model), device);
  const int64_t top = asked.top.value_or(asked.json ? predictor.classes() : 1);
  LabelledImages labelled{.text = asked.json ? "" : "image\tprediction\tprobability\n"};
  ProgressLine line("predicting");
  const auto take = [&](const ImagePrediction& one) {
    if (!one.failure.empty()) {
      ++labelled.unreadable;
      notice(one.failure);
      return;
    }
    ++labelled.count;
    labelled.text += asked.json ? json_line(predictor, one, top) : table_lines(predictor, one, top);
  };
  predictor.predict(predictor.list(asked.images), take, [&line](int64_t done, int64_t total) {
    check_interrupted();
    line.update(static_cast<double>(done), static_cast<double>(total));
  });
  return labelled;
}

}  // namespace headshare
