#include "headshare/convert/export.h"

#include "headshare/base/error.h"
#include "headshare/models/size.h"

namespace headshare {
namespace {

constexpr double kReadBack = 1e-4;  // relative: float32 on another path of the same operations

// Folds that may help, the smallest cache first.
std::vector<ExactTarget> folds_to_try(const ModelOptions& model) {
  std::vector<ExactTarget> folds;
  if (model.find<EncoderDecoderOptions>() == nullptr) {
    const AttentionOptions& attention = model.common().attention;
    const MemoryHeads heads = memory_heads(attention);
    if (heads.keys == heads.values && heads.keys == 1) folds.push_back({.scheme = "mqa"});
    if (heads.keys == heads.values && heads.keys > 1 && heads.keys < attention.heads) {
      folds.push_back({.scheme = "gqa", .groups = heads.keys});
    }
  }
  folds.push_back({.scheme = "mha"});
  return folds;
}

AnyModel as_model(const ModelToWrite& model) {
  AnyModel made{.options = model.options, .module = model.options.kind().make(model.options)};
  load_tensors(*made.module, model.tensors, "the model");
  made.module->eval();
  return made;
}

std::string fold_text(const ExportPlan& plan, const ModelOptions& model) {
  const auto cache = [](const ModelOptions& options) { return measure(options).cache_bytes_per_token; };
  const std::string rewritten = join_text("the heads of ", model.common().attention.scheme, " are written as ",
                                          plan.fold->scheme, ", with the same outputs");
  if (cache(model) == cache(plan.options)) return rewritten;
  return join_text(rewritten, "; headshare caches ", cache(model), " bytes per token in float32, ", plan.fold->scheme,
                   " ", cache(plan.options));
}

}  // namespace

ExportPlan plan_export(const ForeignFormat& format, const std::string& form, const ModelOptions& model) {
  refuse_shared_memory(model.common(), join_text("the format ", format.name, " has no place for"));
  const std::string as_it_is = format.why_not_write(model, form);
  if (as_it_is.empty()) return {.format = &format, .form = form, .options = model};
  std::string reason;
  for (const ExactTarget& fold : folds_to_try(model)) {
    try {
      const ModelOptions folded = exact_model_options(model, fold);
      reason = format.why_not_write(folded, form);
      if (reason.empty()) return {.format = &format, .form = form, .fold = fold, .options = folded};
    } catch (const Error& error) {
      reason = join_text(as_it_is, "; nor can its heads be rewritten: ", error.what());
    }
  }
  throw Error(reason);
}

std::vector<std::string> export_losses(const ExportPlan& plan, const ModelOptions& model) {
  std::vector<std::string> losses;
  if (plan.fold) losses.push_back(fold_text(plan, model));
  if (plan.format->losses) {
    for (const std::string& one : plan.format->losses(plan.options, plan.form)) losses.push_back(one);
  }
  return losses;
}

ModelToWrite prepared_for_export(const ModelToWrite& model, const ExportPlan& plan) {
  if (!plan.fold) return model;
  ExactReport report;
  const AnyModel folded = fold_exactly(as_model(model), *plan.fold, /*biased=*/true, &report);
  ModelToWrite written = model;
  written.options = folded.options;
  written.tensors = model_tensors(*folded.module);
  return written;
}

double check_export(const ModelToWrite& model, const ExportPlan& plan, const fs::path& directory) {
  HS_CHECK(plan.format->read_back, "nothing here reads the format ", plan.format->name, " back; leave --verify out");
  const double change = relative_change(as_model(model), read_model(plan.format->read_back(directory)));
  HS_CHECK(change <= kReadBack, "what was written gives outputs that differ by ", change, " of the largest, and ",
           kReadBack, " is allowed; nothing was kept");
  return change;
}

}  // namespace headshare
