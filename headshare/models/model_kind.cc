#include "headshare/models/model_kind.h"

#include "headshare/base/error.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/record_list.h"
#include "headshare/models/encoder_decoder_options.h"
#include "headshare/models/vision_options.h"

namespace headshare {
namespace {

using Kinds = RecordList<const ModelKind*>;

Kinds& kinds() {
  static Kinds list({&kind_of<DecoderOptions>(), &kind_of<EncoderOptions>(), &kind_of<EncoderDecoderOptions>(),
                     &kind_of<VisionOptions>()});
  return list;
}

}  // namespace

void ModelKind::set_scheme(const std::string& scheme, ModelOptions* options) const {
  AttentionOptions& attention = options->common().attention;
  attention.scheme = scheme;
  attention.key_width.reset();
  attention.scale.reset();
}

std::vector<const ModelKind*> model_kinds() {
  std::vector<const ModelKind*> list;
  for (const auto& one : kinds().all()) list.push_back(*one);
  return list;
}

const ModelKind& model_kind(const std::string& name) {
  std::vector<std::string> known;
  for (const ModelKind* one : model_kinds()) {
    if (one->name() == name) return *one;
    known.push_back(one->name());
  }
  throw Error(join_text("there is no kind of model ", brief_text(name), did_you_mean(name, known)));
}

AddedModelKind::AddedModelKind(const ModelKind& kind) {
  HS_CHECK(&kind.beginning().kind() == &kind, "the kind of model ", kind.name(),
           " is not the one that kind_of() names for its options");
  for (const ModelKind* one : model_kinds()) {
    HS_CHECK(one->name() != kind.name(), "there is a kind of model ", kind.name(), " already");
  }
  record_ = kinds().add(&kind);
}
AddedModelKind::~AddedModelKind() { kinds().take_out(static_cast<const ModelKind* const*>(record_)); }

std::string with_article(const ModelKind& kind) {
  const std::string name = kind.name();
  return (std::string("aeiou").find(name.front()) == std::string::npos ? "a " : "an ") + name;
}

std::string savings_text(const TransformerOptions& o) {
  return (o.layer_groups ? join_text(", layer-groups ", *o.layer_groups) : "") +
         (o.share_kv_layers > 1 ? join_text(", share-kv-layers ", o.share_kv_layers) : "") +
         (o.embedding_width ? join_text(", embedding-width ", *o.embedding_width) : "");
}

void refuse_source(const ModelOptions& options, const std::string& where, const std::string& cannot) {
  HS_CHECK(!options.kind().reads_source(), where, " is ", with_article(options.kind()), ", which ", cannot,
           "; a decoder or an encoder is needed here");
}

void refuse_shared_memory(const TransformerOptions& o, const std::string& cannot) {
  HS_CHECK(o.share_kv_layers == 1, cannot, " keys and values that ", o.share_kv_layers,
           " layers share; train a model without --share-kv-layers for that");
}

nlohmann::json option_values(ModelOptions options) { return to_json(options.kind().fields(options)); }

nlohmann::json stored_option_values(ModelOptions options) { return to_json(options.kind().stored_fields(options)); }

}  // namespace headshare
