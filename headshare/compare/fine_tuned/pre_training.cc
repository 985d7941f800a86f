#include "headshare/compare/fine_tuned/pre_training.h"

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/compare/embeddings.h"
#include "headshare/compare/variants.h"
#include "headshare/tasks/finetune/fine_tuning_options.h"
#include "headshare/tasks/masked/masked_language_model.h"

namespace headshare {
namespace {

std::string pre_training_task(const ComparisonOptions& options) {
  const bool hashed = !options.embeddings.empty() || is_hashed(options.own<MaskedOptions>().encoder.embedding);
  return hashed ? kEmbeddingTask : task_family(options.task).begins_with().front();
}

}  // namespace

ComparisonOptions pre_training(const ComparisonOptions& options) {
  ComparisonOptions encoders = options;
  encoders.task = pre_training_task(options);
  encoders.own<BenchmarkOptions>() = {};
  encoders.seeds = options.own<BenchmarkOptions>().encoder_seeds.value_or(options.seeds);
  encoders.until_decided = 0;
  encoders.reference = encoders.peop_reference = "";
  encoders.peop = false;
  encoders.schemes.clear();
  for (const Variant& one : attention_variants(options)) {
    const bool plain = one.name == one.scheme;  // the other variants stand in --variants
    if (plain && is_trained(one.scheme)) encoders.schemes.push_back(one.scheme);
  }
  return encoders;
}

bool has_encoders(const ComparisonOptions& options) { return !options.own<BenchmarkOptions>().encoders.empty(); }

void check_pre_training(const ComparisonOptions& options) {
  const std::optional<int64_t> encoder_seeds = options.own<BenchmarkOptions>().encoder_seeds;
  HS_CHECK(!has_encoders(options) || !encoder_seeds,
           "--encoder-seeds is of pre-training, and the --encoders are trained already; leave it out");
  HS_CHECK(!encoder_seeds || *encoder_seeds == 1 || *encoder_seeds >= options.seeds, "--encoder-seeds ",
           encoder_seeds.value_or(0), " is less than --seeds ", options.seeds,
           ", and each seed begins with its own encoder; use 1 for one encoder for all, or at least ", options.seeds);
  HS_CHECK(has_encoders(options) || options.until_decided == 0 || encoder_seeds, "--until-decided adds seeds of ",
           "fine-tuning, and each begins with its own encoder; use --encoder-seeds ", options.max_seeds,
           ", --encoder-seeds 1 for one encoder for all seeds, or --encoders of a finished comparison");
  if (!has_encoders(options)) return;
  ComparisonOptions given = options;
  ComparisonOptions untouched = preset_options(options.task, options.preset, options);
  const nlohmann::json defaults = to_json(fields(untouched));
  Fields list = fields(static_cast<TaskOptions&>(given));
  std::erase_if(list, [](const Field& one) { return one.name == "scheme"; });
  append(&list, task_family(pre_training_task(options)).fields(given));
  append(&list, fields(given.train));
  for (Field& one : fields(given)) {
    if (one.name == "match" || one.name == "sweep" || one.name == "variants") list.push_back(std::move(one));
  }
  for (const Field& one : list) {
    HS_CHECK(one.name == "seed" || one.value() == defaults.at(one.name), "--", one.name,
             " is of pre-training, and the --encoders are trained already; leave it out");
  }
}

}  // namespace headshare
