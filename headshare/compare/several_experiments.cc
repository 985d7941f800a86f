#include "headshare/compare/several_experiments.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/compare/embeddings.h"
#include "headshare/compare/variants.h"
#include "headshare/data/hash.h"

namespace headshare {

SeveralExperiments::SeveralExperiments(const ComparisonOptions& options, const Progress& progress) {
  for (const Variant& variant : chosen_variants(options)) {
    const ComparisonOptions cell = with_variant(options, variant);
    const TokenizerKind kind = cell.own<TextOptions>().tokenizer.kind;
    const bool there =
        std::any_of(experiments_.begin(), experiments_.end(), [&](const auto& one) { return one.first == kind; });
    if (!there) experiments_.emplace_back(kind, task_family(cell.task).open(cell, progress));
  }
}

Subject SeveralExperiments::subject() const {
  Subject subject = experiments_.front().second->subject();
  if (experiments_.size() == 1) return subject;
  std::string content = subject.fingerprint;
  for (size_t i = 1; i < experiments_.size(); ++i) {
    const Subject other = experiments_[i].second->subject();
    subject.data += "; and " + other.data;
    content += other.fingerprint;
  }
  subject.fingerprint = content_hash(content);
  return subject;
}

bool SeveralExperiments::has(Part part) const {
  return std::all_of(experiments_.begin(), experiments_.end(),
                     [part](const auto& one) { return one.second->has(part); });
}

const Experiment& SeveralExperiments::of(const TaskOptions& options) const {
  const TokenizerKind kind = options.own<TextOptions>().tokenizer.kind;
  for (const auto& [own, experiment] : experiments_) {
    if (own == kind) return *experiment;
  }
  return *experiments_.front().second;  // these options belong to no cell
}

void SeveralExperiments::share(const fs::path& home, TaskOptions* options) const {
  if (has_vocabulary(options->own<TextOptions>().tokenizer.kind)) of(*options).share(home, options);
}

}  // namespace headshare
