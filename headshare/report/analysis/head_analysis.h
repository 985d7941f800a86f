// Holds how redundant a model's heads are, as plain facts: what `headshare analyze` found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headshare/metrics/model_size.h"

namespace headshare {

// Widths are given for this share of energy.
inline constexpr double kEnergyShare = 0.9;

// Squared singular values say how a map's energy, its squared Frobenius norm, is spread over dimensions.
struct Spectrum {
  std::vector<double> values;    // singular values, falling
  int64_t value_dimensions = 1;  // dimensions that one value stands for: 2 of a complex map
  int64_t dimensions = 0;        // of the keys behind the map; those beyond `values` have no energy

  double energy() const;
  // Returns the share of the energy that each value holds; they sum to 1. The shares are zeros where there is no
  // energy.
  std::vector<double> shares() const;
  // Returns the least width whose values hold at least `share` of the energy.
  int64_t width_for(double share) const;
};

// This tells for each pair how alike two heads are: [H][H], symmetric.
using HeadSimilarity = std::vector<std::vector<double>>;

// These are the two different heads with the largest similarity, counted from 0; nothing where there is one head.
struct HeadPair {
  size_t first = 0;
  size_t second = 0;
  double similarity = 0;
};
std::optional<HeadPair> most_alike(const HeadSimilarity& heads);
// Returns the mean over all pairs of different heads; nothing where there is one head.
std::optional<double> mean_similarity(const HeadSimilarity& heads);

// Where queries and keys are normed, P_h has the scores of a text's tokens (SeenScores); without a text it is unknown,
// and all but `layer` is empty.
struct LayerAnalysis {
  std::string layer;            // "layer 3"
  std::vector<Spectrum> heads;  // of each P_h = W_Q^h (W_K^h)^T
  Spectrum joint;               // of W_Q W_K^T, all heads' maps side by side in both: the sum of all P_h
  Spectrum stacked;        // of all P_h beside one another, on the side (queries or keys) that needs more dimensions
  HeadSimilarity weights;  // cosine of P_h and P_g
  HeadSimilarity maps;     // 1 - mean Jensen-Shannon divergence of attention, in bits; empty without a text
};

// This is what a conversion would do to one layer. Errors are relative and those that `convert` reports.
struct LayerCost {
  double scores = 0;
  double values = 0;                  // of what heads make of values
  std::optional<double> output = {};  // |change of the layer's output| / |output| on the text, each layer alone

  double larger() const;  // of the errors of scores and values
};

// This is a way to make the heads of the model share, with what it would cost and save.
struct ConversionAnalysis {
  std::string scheme;             // "collaborative"; of the model as it is its own
  std::string name;               // "collaborative 384" (its key width), "gqa:4"
  std::string command;            // for `headshare convert MODEL OUT`: "--to collaborative --key-width 384"
  std::string impossible;         // why it is; the rest is empty then
  std::vector<LayerCost> layers;  // of each layer; empty of the model as it is, and where weights cannot be converted
  ModelSize size = {};
  std::optional<double> milliseconds = {};  // measured: one attention layer, see HeadAnalysis::timed_tokens

  // They return means over layers; nothing where there are none.
  std::optional<double> scores() const;
  std::optional<double> values() const;
  std::optional<double> larger() const;
  std::optional<double> output() const;  // nothing without a text
};

// This is where a head of a layer looks in an image: the attention of the class token, or without one the mean over all
// patches.
struct HeadLook {
  std::vector<double> patches;  // the weight of each, row by row; with `tokens` their sum is 1
  double tokens = 0;            // of the tokens before the patches together
};

struct LookedAtImage {
  std::string name;                                // its file
  std::string picture;                             // as the model sees it: a PNG file in base64
  int64_t rows = 0, columns = 0;                   // of patches
  std::vector<std::vector<HeadLook>> layers = {};  // [layers in the order of the computation][heads]
};

struct HeadAnalysis {
  std::string model;   // as it was named
  std::string kind;    // "decoder"
  std::string scheme;  // of the model's attention
  int64_t layers = 0;  // with parameters of their own
  int64_t depth = 0;   // times a layer is applied
  int64_t heads = 0;
  int64_t head_width = 0;      // in which a query is compared with a key
  int64_t full_key_width = 0;  // of all heads together
  bool rotary = false;
  std::vector<std::string> text = {};  // the sample's files; empty without
  int64_t text_tokens = 0;             // tokens of the text that weigh maps and errors
  int64_t map_tokens = 0;              // tokens whose attention maps and outputs were compared
  int64_t iterations = 0;              // most iterations of each decomposition
  int64_t convert_iterations = 0;      // iterations that `headshare convert` takes by default
  int64_t timed_tokens = 0;            // in the cache of a decoding step, or read at once by an encoder
  // While times were measured, threads waited for a core a tenth of the time or longer: other programs had it.
  bool busy = false;
  // A sentence says why no conversion of weights keeps what heads compare; conversions then have sizes and times only.
  std::string refusal = {};
  std::vector<LayerAnalysis> layer = {};
  ConversionAnalysis before = {};  // the model as it is
  std::vector<ConversionAnalysis> conversions = {};
  bool class_token = true;                 // the images below are seen by it
  std::vector<LookedAtImage> images = {};  // that were named, where the model reads images

  bool decodes() const { return before.size.cache_bytes_per_token > 0; }
  bool has_text() const { return !text.empty(); }
  bool has_spectra() const { return !layer.empty() && !layer.front().heads.empty(); }
};

}  // namespace headshare
