#include "headshare/tasks/language/text_experiment.h"

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/data/hash.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

std::string file_names(const std::vector<std::string>& paths) {
  std::string names;
  for (const std::string& path : paths) names += (names.empty() ? "" : ", ") + fs::path(path).filename().string();
  return names;
}

// Hashes the parts, because the counts in a description are rounded: a text with a word mended would look the same.
std::string content(const TextSplits& s) {
  return content_hash(s.train.fingerprint() + s.validation.fingerprint() + s.test.fingerprint());
}

struct Sizes {
  int64_t layers, d_model, heads, context, batch, steps, vocabulary;
  double learning_rate;
};

Sizes text_sizes(Preset preset) {
  if (preset == Preset::kQuick) return {2, 96, 6, 96, 12, 400, 1024, 3e-3};
  if (preset == Preset::kSmall) return {4, 192, 6, 128, 16, 2000, 8192, 2e-3};
  return {6, 384, 6, 256, 32, 10000, 16384, 6e-4};
}

}  // namespace

void TextExperiment::share(const fs::path& home, TaskOptions* options) const {
  const fs::path path = home / "tokenizer.json";
  save_tokenizer(*data_.tokenizer, path);
  options->own<TextOptions>().tokenizer_path = path.string();
}

Subject TextExperiment::text_subject() const {
  const TextSplits& s = data_.splits;
  const auto count = [](const TokenData& part) { return format_count(static_cast<double>(part.size())); };
  Subject subject;
  subject.data = join_text(file_names(files_), ": ", count(s.train), " + ", count(s.validation), " + ", count(s.test),
                           " tokens to train, validate and test on; ", data_.tokenizer->kind(), " tokenizer with ",
                           data_.tokenizer->vocabulary_size(), " (", fingerprint(*data_.tokenizer), ")");
  subject.direction = Direction::kLowerIsBetter;
  subject.block = "text windows";
  subject.has_test_part = !s.test.empty();
  subject.unknown_share = unknown_share(subject.has_test_part ? s.test : s.validation, *data_.tokenizer);
  subject.fingerprint = content(s);
  return subject;
}

void set_text_preset(Preset preset, TaskOptions* options, TrainOptions* train) {
  const Sizes sizes = text_sizes(preset);
  options->model.layers = sizes.layers;
  options->model.attention.d_model = sizes.d_model;
  options->model.attention.heads = sizes.heads;
  options->model.context = sizes.context;
  options->batch_size = sizes.batch;
  TextOptions& text = options->own<TextOptions>();
  text.tokenizer.vocabulary_size = sizes.vocabulary;
  text.data.test_fraction = 0.1;
  train->steps = sizes.steps;
  train->schedule.learning_rate = sizes.learning_rate;
}

}  // namespace headshare
