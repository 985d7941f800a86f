#include "headshare/tasks/images/evaluate_images.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/image_tensors.h"
#include "headshare/models/size.h"

namespace headshare {
namespace {

constexpr int64_t kTop = 5;
constexpr int64_t kLeastClassesForTop = 10;
constexpr int64_t kScoredAtOnce = 128;

std::string image_signature(const std::string& name, const VisionOptions& model, int64_t images) {
  return join_text(name, "|task:image|classes:", model.classes, "|image-size:", model.image_size,
                   "|channels:", model.channels, "|images:", images);
}

// Throws Error where the data has other classes than the model.
void check_classes(const std::vector<std::string>& found, const VisionOptions& model, const std::string& directory) {
  const std::vector<std::string>& known = model.images.labels;
  if (known.empty() && static_cast<int64_t>(found.size()) == model.classes) return;
  HS_CHECK(found.size() == known.size(), directory, " has ", found.size(), " classes, and the model tells ",
           model.classes, " apart; give images of the model's classes");
  for (size_t i = 0; i < found.size(); ++i) {
    HS_CHECK(found[i] == known[i], "class ", i, " of ", directory, " is ", found[i], ", and that of the model is ",
             known[i], "; give images of the model's classes");
  }
}

// Adds the names of the classes that the model tells, [B].
void add_answers(const VisionOptions& model, const Tensor& classes, std::vector<std::string>* answers) {
  const auto* begin = classes.const_data_ptr<int64_t>();
  for (const int64_t index : std::span(begin, static_cast<size_t>(classes.numel()))) {
    answers->push_back(class_name(model, index));
  }
}

const ImageSet& chosen_part(const ImageData& data, const ImageTaskOptions& options) {
  const ImagesToScore part = options.score;
  const bool test = part == ImagesToScore::kTest || (part == ImagesToScore::kAuto && !data.test.empty());
  HS_CHECK(!test || !data.test.empty(), options.data.images, " has no test images; choose another --image-part");
  return test ? data.test : part == ImagesToScore::kTrain ? data.train : data.validation;
}

TextScores shown_scores(const Evaluation& found) {
  TextScores scores;
  scores.object = {{"loss", found.loss}, {"images", found.targets}};
  for (const Score& one : found.scores) {
    scores.object[one.name] = one.value;
    scores.text += join_text(one.name, std::string(10 - one.name.size(), ' '), format_fixed(one.value, 4), "\n");
  }
  scores.object["signature"] = found.scores.front().signature;
  scores.text += join_text("loss      ", format_fixed(found.loss, 4), " nats, mean of ", found.targets, " images\n",
                           "signature ", found.scores.front().signature, "\n");
  return scores;
}

}  // namespace

Evaluation evaluate_images(VisionTransformer model, const ImageSet& set, int64_t batch,
                           const Task::Progress& progress) {
  const at::NoGradGuard no_grad;
  const VisionOptions& options = model->options();
  const bool with_top = options.classes >= kLeastClassesForTop;
  Evaluation result{.targets = set.size()};
  double nats = 0;
  int64_t right = 0, in_top = 0;
  for (int64_t first = 0; first < set.size(); first += batch) {
    std::vector<int64_t> chosen(static_cast<size_t>(std::min(batch, set.size() - first)));
    std::iota(chosen.begin(), chosen.end(), first);
    const ImageTensors images = image_tensors(plain_batch(set, chosen, scale_of(options)), options, model->device());
    const Tensor scores = model->scores(images.pixels);  // [B, classes]
    nats += at::cross_entropy_loss(scores, images.labels, {}, at::Reduction::Sum).item<double>();
    const Tensor found = scores.argmax(1);
    add_answers(options, found.to(at::kCPU), &result.outputs);
    const Tensor hits = (found == images.labels).to(at::kCPU, at::kDouble);
    right += hits.sum().item<int64_t>();
    const auto* block = hits.const_data_ptr<double>();
    result.blocks.insert(result.blocks.end(), block, block + hits.numel());
    if (with_top) {
      const Tensor top = std::get<1>(scores.topk(kTop, 1));
      in_top += (top == images.labels.unsqueeze(1)).sum().item<int64_t>();
    }
    if (progress) progress(std::min(first + batch, set.size()), set.size());
  }
  const auto share = [&](int64_t count) { return static_cast<double>(count) / static_cast<double>(set.size()); };
  const auto add = [&](const std::string& name, int64_t count) {
    result.scores.push_back(
        {.name = name, .value = share(count), .signature = image_signature(name, options, set.size())});
  };
  result.loss = nats / static_cast<double>(set.size());
  add("accuracy", right);
  if (with_top) add("top-5", in_top);
  return result;
}

TextScores score_images(const TextToScore& asked, const ImageTaskOptions& options) {
  HS_CHECK(!asked.context, "--context is about texts, and this model reads images; leave it out");
  LoadedVision loaded = load_vision_model(asked.model);
  loaded.model->to(asked.device);
  const VisionOptions& model = loaded.model->options();
  const ImageData data = open_images(options.data, model.image_size, model.channels, asked.progress);
  check_classes(data.classes, model, options.data.images);
  return shown_scores(evaluate_images(loaded.model, chosen_part(data, options),
                                      asked.batch_size.value_or(kScoredAtOnce), asked.progress));
}

}  // namespace headshare
