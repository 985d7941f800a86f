#include "headshare/compare/check_comparison.h"

#include <algorithm>
#include <map>
#include <optional>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/compare/compare_tuned.h"
#include "headshare/compare/embeddings.h"
#include "headshare/compare/variants.h"
#include "headshare/metrics/statistics.h"
#include "headshare/models/embeddings/idle_options.h"
#include "headshare/tasks/idle_options.h"
#include "headshare/tasks/masked/masked_language_model.h"
#include "headshare/tasks/translation/translation_options.h"

namespace headshare {
namespace {

// The references must be among what is compared; what is not trained is not fine-tuned either.
void check_references(const ComparisonOptions& options) {
  std::vector<Variant> variants = chosen_variants(options);
  if (fine_tunes(options)) std::erase_if(variants, [](const Variant& one) { return !is_trained(one.scheme); });
  chosen_references(options, variants);
}

void check_seeds_to_add(const ComparisonOptions& options) {
  HS_CHECK(options.seeds >= static_cast<int64_t>(kFewestToJudge), "--until-decided judges differences, which takes ",
           kFewestToJudge, " seeds to begin with, not --seeds ", options.seeds);
  HS_CHECK(options.max_seeds >= options.seeds, "--max-seeds ", options.max_seeds, " is less than --seeds ",
           options.seeds, "; ask for more, or leave --until-decided out");
}

// Throws Error when no variant can be trained with a setting of the sweep.
void check_setting(const ComparisonOptions& options) {
  check_schedule(options.train.schedule, options.train.steps);
  const std::vector<Variant> variants = chosen_variants(options);
  const bool any =
      std::any_of(variants.begin(), variants.end(), [&](const Variant& one) { return why_not(options, one).empty(); });
  HS_CHECK(any, "no scheme can be trained with these options; ", variants.front().name, ": ",
           why_not(options, variants.front()));
}

// Some models may have token embeddings that read options which those of others do not.
void check_embedding_options(const ComparisonOptions& options) {
  std::vector<TokenEmbeddingKind> kinds;
  for (const SweepSetting& setting : sweep_settings(options)) {
    const ComparisonOptions set = with_setting(options, setting);
    for (const Variant& one : chosen_variants(set)) {
      kinds.push_back(with_variant(set, one).own<MaskedOptions>().encoder.embedding.kind);
    }
  }
  check_read_by(kinds, options.own<MaskedOptions>().encoder.embedding);
}

// What chooses the schemes of an encoder-decoder's three sites; empty where --scheme chooses that of one.
std::vector<std::string> schemes_of_all_sites(const ComparisonOptions& options) {
  const EncoderDecoderParts& model = options.own<TranslationTaskOptions>().model;
  std::vector<std::string> sites = {model.encoder_scheme, model.decoder_scheme, model.cross_scheme};
  if (std::count(sites.begin(), sites.end(), "auto") > 0) sites.clear();
  return sites;
}

// A table of schemes would show one model under two names.
void check_schemes_matter(const ComparisonOptions& options) {
  std::map<std::vector<std::string>, std::string> schemes;
  for (const Variant& one : chosen_variants(options)) {
    const std::vector<std::string> sites = schemes_of_all_sites(with_variant(options, one));
    if (sites.empty()) continue;
    const auto [known, added] = schemes.emplace(sites, one.scheme);
    HS_CHECK(added || known->second == one.scheme,
             "--encoder-scheme, --decoder-scheme and --cross-scheme leave no site to --schemes: ", known->second,
             " and ", one.scheme, " would be the same model; leave one of these options out, or compare --variants");
  }
}

ComparisonOptions without_embedding_options(ComparisonOptions options) {
  TokenEmbeddingOptions& embedding = options.own<MaskedOptions>().encoder.embedding;
  embedding = {.kind = embedding.kind};
  return options;
}

}  // namespace

IdleOptions idle_options(const ComparisonOptions& options) {
  std::optional<IdleOptions> idle;
  for (const SweepSetting& setting : sweep_settings(options)) {
    const ComparisonOptions set = with_setting(options, setting);
    for (const Variant& variant : chosen_variants(set)) {
      const ComparisonOptions one = with_variant(set, variant);
      const IdleOptions more = idle_options(one, one.train);
      if (!idle) idle = more;
      std::erase_if(*idle, [&](const IdleOption& before) {
        return std::none_of(more.begin(), more.end(), [&](const IdleOption& now) { return now.name == before.name; });
      });
    }
  }
  if (options.until_decided == 0) idle->push_back({"max-seeds", "is about --until-decided, which is not given"});
  return *idle;
}

void check_comparison(const ComparisonOptions& options) {
  check_embeddings(options);
  check_embedding_options(options);
  const ComparisonOptions one =
      options.embeddings.empty() ? options : with_variant(options, chosen_variants(options).front());
  check_task(without_embedding_options(one), preset_options(options.task, options.preset, options));
  check_pre_training(options);
  check_scheme_steps(options);
  if (options.until_decided > 0) check_seeds_to_add(options);
  // Of --encoders their own comparison says what they are.
  if (!has_encoders(options)) check_references(options);
  for (const SweepSetting& setting : sweep_settings(options)) {
    check_schemes_matter(with_setting(options, setting));
    check_setting(with_setting(options, setting));
  }
}

}  // namespace headshare
