// These options say what an attention layer is made of: some all schemes have, others one scheme brings
// (SchemeRecord::options). `resolve` fills in what was left to its default; the resolved options go into every
// checkpoint, so that nothing is ever inferred from shapes again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headshare/attention/rotary_scaling.h"
#include "headshare/base/options/field.h"
#include "headshare/base/options/own_options.h"

namespace headshare {

// This names the dropout mask that a head's weights get. The factorised kernel can use only one mask for all heads; a
// comparison gives all its schemes the same kind.
enum class DropoutMaskKind { kPerHead, kShared };

const EnumNames<DropoutMaskKind>& dropout_mask_names();

// An output gate multiplies what heads found by numbers between 0 and 1, one for each head or for each of its elements.
enum class OutputGate { kNone, kHead, kElement };

// Several layers may read what one of them remembers (docs/mathematics.md#layers-that-share-keys-and-values).
enum class MemoryUse {
  kOwn,       // the layer reads what it remembers, and no other layer does
  kLent,      // layers above read it, too
  kBorrowed,  // the layer remembers nothing and reads what a layer below lends
};

struct AttentionOptions {
  std::string scheme = "mha";              // a SchemeRecord::name
  int64_t d_model = 256;                   // E
  int64_t heads = 4;                       // H
  std::optional<int64_t> head_width = {};  // D; default E / H
  std::optional<int64_t> key_width = {};   // R, for mha (default H D) and collaborative (default E / 2, even)
  std::optional<double> scale = {};     // s; default 1 / sqrt(D); narrowed mha sqrt(H / R), collaborative sqrt(H / E)
  bool projection_bias = false;         // on queries, keys, values and output: all schemes or none
  bool content_bias = false;            // u_h: every scheme's option (docs/mathematics.md#content-bias)
  bool qk_norm = false;                 // RMS norms over each query and key before they are compared
  OutputGate gate = OutputGate::kNone;  // heads times sigmoid(x W_G + b_G), before O (docs/mathematics.md#gates)
  bool sinks = false;       // each head may look at a key of value 0, whose score it learns (docs/mathematics.md#sinks)
  bool kv_shift = false;    // heads of keys and values mix a token and the one before (docs/mathematics.md#shifts)
  bool key_offset = false;  // what does not turn in a key is that of the token before (docs/mathematics.md#shifts)
  std::optional<int64_t> window = {};  // a token sees so many to either side (docs/mathematics.md#windows); default all
  OwnOptions own = {};                 // of single schemes: own.get<GqaOptions>()
  double attention_dropout = 0;        // on the attention weights, in training
  DropoutMaskKind attention_dropout_mask = DropoutMaskKind::kPerHead;
  // The model sets these; the user sets the base, the scaling and the dimensions (rotary_fields()):
  bool rotary = false;                            // positions are rotated into queries and keys
  double rotary_base = 10000;                     // of the frequencies
  RotaryScaling rotary_scaling = {};              // slows the rotation down
  std::optional<int64_t> rotary_dimensions = {};  // so many dimensions turn, the last of each head; default all
  bool alibi = false;                             // scores fall with distance, by a slope per head
  MemoryUse memory = MemoryUse::kOwn;             // of each layer its own (layer_attention())
  double init_deviation = 0.02;                   // projections start from N(0, this^2)
  double output_deviation = 0.02;                 // the output projection, which GPT-2 starts smaller
};

// Returns the options that a user sets, with those of every scheme. Sizes (d-model, heads) belong to the model's list.
Fields fields(AttentionOptions& options);

// Returns the options of rotary positions, which a user sets, too.
Fields rotary_fields(AttentionOptions& options);

// Fills in every default and checks that the sizes fit together; throws Error with the numbers and
// the way out.
AttentionOptions resolve(AttentionOptions options);

// Tells whether a key bias can reach the output at all: softmax deletes what is constant along a row, and only rotating
// or norming the key afterwards makes it differ from key to key, or a shift, which the first token has half of. A sink
// does not share what is constant among keys.
inline bool key_bias_matters(const AttentionOptions& options) {
  return options.rotary || options.qk_norm || options.sinks || options.kv_shift;
}

// Tells whether the layer makes keys and values, or whatever else the scheme remembers, of what it reads.
inline bool remembers(const AttentionOptions& options) { return options.memory != MemoryUse::kBorrowed; }

// Tells whether values have their bias before they are averaged. Elsewhere it is added after, because the weights of
// the keys sum to one: not beside a sink, and shares of two tokens do not have to sum to one either. Values that other
// layers read, too, take their bias along.
inline bool values_have_bias(const AttentionOptions& options) {
  return options.sinks || options.kv_shift || options.memory != MemoryUse::kOwn;
}

}  // namespace headshare
