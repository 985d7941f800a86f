#include "headshare/models/vision_options.h"

#include <algorithm>
#include <set>

#include "headshare/base/error.h"

namespace headshare {
namespace {

const EnumNames<ImagePooling>& pooling_names() {
  static const EnumNames<ImagePooling> names = {{ImagePooling::kClassToken, "class_token"},
                                                {ImagePooling::kMean, "mean"}};
  return names;
}

const EnumNames<DistillationToken>& distillation_token_names() {
  static const EnumNames<DistillationToken> names = {{DistillationToken::kNone, "none"},
                                                     {DistillationToken::kWithoutHead, "without_head"},
                                                     {DistillationToken::kWithHead, "with_head"}};
  return names;
}

// Names the options of TransformerOptions that an image gives no meaning: what counts tokens along a line, and what
// belongs to a vocabulary.
std::set<std::string> options_of_text() {
  std::set<std::string> names = {"context",      "embedding-width", "tie-embeddings",   "local-window",
                                 "global-every", "global-first",    "local-rotary-base"};
  AttentionOptions attention;
  for (const Field& one : rotary_fields(attention)) names.insert(one.name);
  return names;
}

void check_positions(const VisionOptions& o) {
  HS_CHECK(o.positions != PositionKind::kRotary && o.positions != PositionKind::kAlibi,
           "rotary and alibi positions count along a line, and patches have rows and columns; choose --positions "
           "learned, sinusoidal or none");
  HS_CHECK(!o.attention.window,
           "a local window counts along a line, and patches have rows and columns; leave --local-window out");
  HS_CHECK(o.norms != NormPlacement::kBeforeExceptFirst,
           "pre_except_first leaves the first norm out because the embedding is normed, and patches are not; choose "
           "--norms pre or post");
  HS_CHECK(!o.embedding_width, "a vision transformer has no factorised embeddings; leave --embedding-width out");
}

void check_sizes(const VisionOptions& o) {
  HS_CHECK(o.patch_size >= 1 && o.image_size >= 1 && o.channels >= 1,
           "image-size, patch-size and channels must be at least 1, not ", o.image_size, ", ", o.patch_size, " and ",
           o.channels);
  HS_CHECK(o.image_size % o.patch_size == 0, "patches must fill the image: image-size ", o.image_size, " / patch-size ",
           o.patch_size, " leaves ", o.image_size % o.patch_size, "; choose --image-size ",
           std::max<int64_t>(1, o.image_size / o.patch_size) * o.patch_size, " or another --patch-size");
  HS_CHECK(o.class_token || o.pooling != ImagePooling::kClassToken,
           "the head reads the class token, and there is none; choose --pooling mean or --class-token");
  HS_CHECK(o.class_token || o.distillation_token == DistillationToken::kNone,
           "a distillation token stands beside a class token; set --class-token or --distillation-token none");
  HS_CHECK(o.distillation_token != DistillationToken::kWithHead || o.pooling == ImagePooling::kClassToken,
           "the head of the distillation token stands beside one that reads the class token; choose --pooling "
           "class_token or --distillation-token none");
}

void check_labels(const VisionOptions& o) {
  const auto count = [](const auto& list) { return static_cast<int64_t>(list.size()); };
  HS_CHECK(o.classes >= 0, "classes must be at least 0, not ", o.classes);
  HS_CHECK(o.images.labels.empty() || count(o.images.labels) == o.classes, "a model of ", o.classes, " classes has ",
           o.images.labels.size(), " labels");
  for (const auto& [name, list] : {std::pair("means", &o.images.mean), {"deviations", &o.images.deviation}}) {
    HS_CHECK(list->empty() || count(*list) == o.channels, "a model of ", o.channels, " channels has ", list->size(),
             " ", name, " of pixels");
  }
  for (const double one : o.images.deviation) {
    HS_CHECK(one > 0, "the deviation of pixels must be above 0, not ", one);
  }
}

}  // namespace

VisionOptions::VisionOptions() {
  activation = ActivationKind::kGeluErf;
  norms = NormPlacement::kBefore;
  norm_epsilon = 1e-6;
  attention.projection_bias = true;
}

int64_t leading_tokens(const VisionParts& o) {
  return (o.class_token ? 1 : 0) + (o.distillation_token == DistillationToken::kNone ? 0 : 1);
}

int64_t image_tokens(const VisionParts& o) {
  const int64_t side = o.image_size / o.patch_size;
  return leading_tokens(o) + side * side;
}

Fields fields(VisionParts& o) {
  return {
      field("image-size", &o.image_size, "rows and columns of an image in pixels",
            {.min = 1, .max = 1 << 14, .aliases = {"img-size"}}),
      field("patch-size", &o.patch_size, "rows and columns of a patch in pixels; each patch is a token",
            {.min = 1, .max = 1 << 14}),
      field("channels", &o.channels, "numbers of a pixel: 3 of colour, 1 of grey",
            {.min = 1, .max = 64, .aliases = {"num-channels", "in-chans"}}),
      field("class-token", &o.class_token, "a learned token before the patches, which --pooling class_token reads"),
      field("distillation-token", &o.distillation_token,
            "a second learned token (DeiT), with a head of its own, whose logits are averaged with the first's, or "
            "without one",
            distillation_token_names()),
      field("pooling", &o.pooling, "what the head reads: the class token, or the mean of the patches", pooling_names(),
            {.aliases = {"global-pool"}}),
  };
}

Fields fields(VisionOptions& o) {
  Fields list = fields(static_cast<TransformerOptions&>(o));
  const std::set<std::string> left_out = options_of_text();
  std::erase_if(list, [&](const Field& one) { return left_out.contains(one.name); });
  list.push_back(norms_field(&o.norms));
  append(&list, fields(static_cast<VisionParts&>(o)));
  return list;
}

Fields stored_fields(VisionOptions& o) {
  Fields list = fields(o);
  list.push_back(field("classes", &o.classes, "classes that the head tells apart; 0: no head",
                       {.min = 0, .max = 1 << 20, .aliases = {"num-classes", "num-labels"}}));
  return list;
}

VisionOptions resolve(VisionOptions o) {
  check_positions(o);
  check_sizes(o);
  check_labels(o);
  o.context = image_tokens(o);
  o.vocabulary = std::max<int64_t>(1, o.classes);
  o.tie_embeddings = false;
  EncoderOptions encoder;  // patches see each other as an encoder's tokens do
  static_cast<TransformerOptions&>(encoder) = o;
  static_cast<TransformerOptions&>(o) = resolve(encoder);
  return o;
}

}  // namespace headshare
