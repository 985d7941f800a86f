#include "headshare/metrics/translation/signature.h"

#include "headshare/base/error.h"

namespace headshare {

std::string signature(const TranslationMetric& metric, const SignatureContext& context) {
  std::string text = join_text("nrefs:", context.references);
  if (context.bootstrap) text += join_text("|bs:", *context.bootstrap);
  if (context.randomisation) text += join_text("|ar:", *context.randomisation);
  if (context.bootstrap || context.randomisation) text += join_text("|seed:", context.seed);
  for (const auto& [name, value] : metric.settings()) text += join_text("|", name, ":", value);
  return text + "|version:" + context.version;
}

}  // namespace headshare
