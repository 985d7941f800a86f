#include "headshare/convert/hf/gpt2.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/convert/hf/mapping.h"

namespace headshare {
namespace {

using Directory = std::shared_ptr<const HfDirectory>;

// GPT2Config's keys.
const std::vector<HfKey>& gpt2_keys() {
  static const std::vector<HfKey> list = {
      {.theirs = "vocab_size", .ours = "vocabulary"},
      {.theirs = "n_positions", .ours = "context", .general = "max_position_embeddings"},
      {.theirs = "n_embd", .ours = "d-model", .general = "hidden_size"},
      {.theirs = "n_layer", .ours = "layers", .general = "num_hidden_layers"},
      {.theirs = "n_head", .ours = "heads", .general = "num_attention_heads"},
      {.theirs = "n_inner", .ours = "feed-forward-width"},
      {.theirs = "resid_pdrop", .ours = "dropout"},
      {.theirs = "attn_pdrop", .ours = "attention-dropout"},
      {.theirs = "layer_norm_epsilon", .ours = "norm-epsilon"},
      {.theirs = "initializer_range", .ours = "init-deviation"},
  };
  return list;
}

std::string layer_prefix(int64_t layer) { return join_text("h.", layer, "."); }

// Which part of a foreign tensor becomes ours: columns first .. first + count - 1, times a factor.
struct Part {
  int64_t first = 0;
  int64_t count = 0;  // 0: all
  double factor = 1;
};

// "transformer.h.0.ln_1.weight" and "h.0.ln_1.weight" are one: with and without the language model around it.
std::string plain_name(const std::string& full) {
  constexpr std::string_view kPrefix = "transformer.";
  return full.starts_with(kPrefix) ? full.substr(kPrefix.size()) : full;
}

class Gpt2Mapping {
 public:
  Gpt2Mapping(Directory directory, const DecoderOptions& options)
      : directory_(directory),
        mapping_(std::move(directory), plain_name),
        E_(options.attention.d_model),
        F_(*options.feed_forward_width) {}

  void map_embeddings(const DecoderOptions& options) {
    const std::vector<int64_t> shape = {options.vocabulary, E_};
    mapping_.copy("wpe.weight", {options.context, E_}, "position_embedding");
    if (options.tie_embeddings) {
      mapping_.copy_tied({"wte.weight", "lm_head.weight"}, shape, "token_embedding");
    } else {
      mapping_.copy("wte.weight", shape, "token_embedding", mapping_.tied_advice("lm_head.weight"));
      mapping_.copy("lm_head.weight", shape, "output_embedding", kUntiedAdvice);
    }
  }

  void map_norm(const std::string& source, const std::string& target) {
    mapping_.copy(source + ".weight", {E_}, target + ".weight");
    mapping_.copy(source + ".bias", {E_}, target + ".bias");
  }

  void map_block(int64_t layer, double query_factor) {
    const std::string source = layer_prefix(layer);
    const std::string target = join_text("blocks.", layer, ".");
    const std::string scheme = target + "attention.scheme.";
    map_norm(source + "ln_1", target + "attention_norm");
    const std::string joint = source + "attn.c_attn";
    const std::string weight = mapping_.take(joint + ".weight", {E_, 3 * E_});
    const std::string bias = mapping_.take(joint + ".bias", {3 * E_});
    for (const auto& [name, index] : {std::pair("query", 0), {"key", 1}, {"value", 2}}) {
      const Part part{.first = index * E_, .count = E_, .factor = index == 0 ? query_factor : 1};
      add(weight, part, scheme + name + ".weight", /*transposed=*/true);
      add(bias, part, scheme + name + ".bias", /*transposed=*/false);
    }
    linear(source + "attn.c_proj", E_, E_, scheme + "output");
    map_norm(source + "ln_2", target + "feed_forward_norm");
    linear(source + "mlp.c_fc", E_, F_, target + "feed_forward.expand");
    linear(source + "mlp.c_proj", F_, E_, target + "feed_forward.contract");
  }

  // Old checkpoints store the causal mask and the number that stands for minus infinity.
  void leave_out_masks(int64_t layers) {
    for (int64_t layer = 0; layer < layers; ++layer) {
      for (const char* name : {"attn.bias", "attn.masked_bias"}) mapping_.leave_out(layer_prefix(layer) + name);
    }
  }

  void finish(ForeignModel* foreign) { mapping_.finish("GPT-2", foreign); }

 private:
  // Conv1D [in, out] and its bias.
  void linear(const std::string& source, int64_t in, int64_t out, const std::string& target) {
    add(mapping_.take(source + ".weight", {in, out}), {}, target + ".weight", /*transposed=*/true);
    add(mapping_.take(source + ".bias", {out}), {}, target + ".bias", /*transposed=*/false);
  }

  // A Conv1D's weight, which is transposed, or its bias.
  void add(const std::string& full, const Part& part, const std::string& target, bool transposed) {
    std::vector<std::string> steps;
    if (part.count > 0) steps.push_back(join_text("columns ", part.first, "..", part.first + part.count - 1));
    if (transposed) steps.push_back("transposed");
    if (part.factor != 1) steps.push_back(join_text("times ", part.factor));
    std::string taken;
    for (const std::string& step : steps) taken += (taken.empty() ? "" : ", ") + step;
    mapping_.add(full, taken, target, [from = directory_, full, part, transposed] {
      Tensor values = from->read(full);
      if (part.count > 0) values = values.narrow(-1, part.first, part.count);
      if (transposed) values = values.t();
      return part.factor == 1 ? values : values * part.factor;
    });
  }

  Directory directory_;
  HfMapping mapping_;
  int64_t E_, F_;
};

}  // namespace

DecoderOptions gpt2_options(const HfConfig& config) {
  refuse_what_we_lack(config);
  refuse_other_classes(config, {"GPT2Model", "GPT2LMHeadModel"});
  // GPT2Config's defaults, where they are not ours.
  DecoderOptions options{.context = 1024, .layers = 12, .dropout = 0.1};
  options.attention = {.d_model = 768, .heads = 12, .projection_bias = true, .attention_dropout = 0.1};
  read_keys(config, gpt2_keys(), stored_fields(options));
  options.activation = read_activation(config, "activation_function", ActivationKind::kGeluTanh);
  options.tie_embeddings = config.flag("tie_word_embeddings", true);
  if (!config.flag("scale_attn_weights", true)) options.attention.scale = 1;
  return resolve_read(config, options);
}

ForeignModel map_gpt2(const Directory& directory) {
  const DecoderOptions options = gpt2_options(*directory);
  ForeignModel foreign{.options = options, .tokenizer = directory->tokenizer()};
  const bool by_layer = directory->flag("scale_attn_by_inverse_layer_idx", false);
  Gpt2Mapping mapping(directory, options);
  mapping.map_embeddings(options);
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    mapping.map_block(layer, by_layer ? 1.0 / static_cast<double>(layer + 1) : 1.0);
  }
  mapping.map_norm("ln_f", "norm");
  mapping.leave_out_masks(options.layers);
  mapping.finish(&foreign);
  if (by_layer) foreign.notes.push_back("scale_attn_by_inverse_layer_idx is a factor on the query weights now");
  const nlohmann::json& embedding_dropout = directory->value("embd_pdrop");
  if (!embedding_dropout.is_null() && embedding_dropout != options.dropout) {
    foreign.notes.push_back(join_text("one dropout serves embeddings and residual branches: resid_pdrop ",
                                      options.dropout, " is kept, embd_pdrop ", brief_json(embedding_dropout),
                                      " is not"));
  }
  return foreign;
}

}  // namespace headshare
