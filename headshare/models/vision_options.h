// A vision transformer is made of these options.
#pragma once

#include <string>
#include <vector>

#include "headshare/models/blocks/options.h"

namespace headshare {

// The head reads the class token, or the mean of the patches.
enum class ImagePooling { kClassToken, kMean };

// DeiT has a second token beside the class token, which learns from a teacher (Touvron et al., 2021, section 4). It has
// a head of its own, or none: transformers' DeiTForImageClassification keeps the token and reads the class token alone.
enum class DistillationToken { kNone, kWithoutHead, kWithHead };

// A user sets these options besides those of all transformers.
struct VisionParts {
  int64_t image_size = 224;  // rows and columns of an image, a multiple of patch_size
  int64_t patch_size = 16;   // P, rows and columns of a patch
  int64_t channels = 3;      // C: 3 of colour, 1 of grey
  bool class_token = true;
  DistillationToken distillation_token = DistillationToken::kNone;
  ImagePooling pooling = ImagePooling::kClassToken;
};

// These say what a model was trained to tell apart, and how pixels become numbers: (pixel / 255 - mean) / deviation.
struct ImageLabels {
  std::vector<std::string> labels = {};  // the name of each class, or none
  std::vector<double> mean = {};         // for each channel; none: 0
  std::vector<double> deviation = {};    // likewise; none: 1
};

// The default options are ViT's (Dosovitskiy et al., 2021), except for sizes and dropout. resolve() sets `context` to
// the tokens of an image and `vocabulary` to the number of classes, at least 1.
struct VisionOptions : TransformerOptions, VisionParts {
  VisionOptions();

  int64_t classes = 0;  // the head tells so many apart; 0: there is no head
  ImageLabels images = {};
};

// Returns how many tokens stand before the patches: the class token, the distillation token.
int64_t leading_tokens(const VisionParts& parts);
// Returns how many tokens an image is: those and its patches.
int64_t image_tokens(const VisionParts& parts);

// Lists the options that images add, and every option that a user sets. What makes no sense of an image is left out:
// the vocabulary, the context, rotary positions, local windows, factorised and tied embeddings.
Fields fields(VisionParts& parts);
Fields fields(VisionOptions& options);

// Lists those and the rest of what a checkpoint's config.json holds as options.
Fields stored_fields(VisionOptions& options);

// Fills in defaults and checks sizes. Throws Error, also for positions that count along a line: rotary and alibi.
VisionOptions resolve(VisionOptions options);

template <>
const ModelKind& kind_of<VisionOptions>();

}  // namespace headshare
