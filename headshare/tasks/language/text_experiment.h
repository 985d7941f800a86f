// Experiments on running text have in common the text, and sizes that a comparison on it starts with.
#pragma once

#include "headshare/tasks/family.h"
#include "headshare/tasks/language/language_model.h"

namespace headshare {

class TextExperiment : public Experiment {
 public:
  explicit TextExperiment(LanguageData data, const TaskOptions& options)
      : data_(std::move(data)), files_(options.own<TextOptions>().data.text) {}

  bool has(Part part) const override { return !data_.part(part).empty(); }

  void share(const fs::path& home, TaskOptions* options) const override;

 protected:
  // Returns a subject in which the family fills in what is its own.
  Subject text_subject() const;

  LanguageData data_;

 private:
  std::vector<std::string> files_;
};

// Sets model, batches, steps and rate of a comparison on text.
void set_text_preset(Preset preset, TaskOptions* options, TrainOptions* train);

}  // namespace headshare
