// A ModelKind tells the program what it needs to know of decoders, encoders, encoder-decoders, vision transformers, or
// a kind that another program adds. Each has a file in kinds/ and a line in model_kind.cc.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "headshare/models/greedy_decoding.h"
#include "headshare/models/model_options.h"
#include "headshare/models/size.h"
#include "headshare/ops/layer.h"

namespace headshare {

class ModelKind {
 public:
  virtual ~ModelKind() = default;

  virtual std::string name() const = 0;  // "encoder-decoder", as config.json and --kind have it
  // Names the models that `cost` counts: "masked-LM encoder".
  virtual std::string title(const ModelOptions&) const { return name(); }
  // Says what such a model is and does: "an encoder, which fills masked tokens (`headshare fill`)".
  virtual std::string what_it_does(const ModelOptions& options) const = 0;
  // Says how to get such a model: "an encoder is needed here, as `headshare train --task mlm` makes it".
  virtual std::string needed() const = 0;
  // Returns the first version of the format of checkpoints that has such models.
  virtual int64_t since(const ModelOptions& options) const = 0;

  // Tells whether a token sees only earlier ones; such a model continues text.
  virtual bool is_causal() const { return false; }
  // Tells whether decoding keeps keys and values of tokens already seen.
  virtual bool keeps_cache() const { return false; }
  // Tells whether the model reads text, through a tokenizer.
  virtual bool reads_text() const { return true; }
  // Tells whether the model reads one sequence and writes another.
  virtual bool reads_source() const { return false; }
  // Names the sizes of what the model reads and writes, as tables and messages list them.
  virtual std::vector<std::pair<std::string, int64_t>> input_sizes(const ModelOptions& options) const {
    return {{"vocabulary", options.common().vocabulary}, {"context", options.common().context}};
  }
  // Returns the number of tokens that the model reads; `vocabulary` counts those that it writes.
  virtual int64_t source_vocabulary(const ModelOptions& options) const { return options.common().vocabulary; }
  // Tells whether the model has no vocabulary: its tokenizer gives words, and the model hashes them.
  virtual bool hashes_words(const ModelOptions&) const { return false; }

  // Returns the kind's default options, not resolved.
  virtual ModelOptions beginning() const = 0;
  // These list every option that a user sets; the ones among them that other kinds lack; and everything that
  // config.json holds.
  virtual Fields fields(ModelOptions& options) const = 0;
  virtual Fields own_fields(ModelOptions&) const { return {}; }
  virtual Fields stored_fields(ModelOptions& options) const = 0;
  // Returns the options whose cost is asked for where a user says nothing.
  virtual ModelOptions costed() const { return beginning(); }
  // Returns the options with the head that such a model can be trained with.
  virtual ModelOptions trainable(const ModelOptions& options) const { return options; }
  // Fills in defaults and checks sizes. Throws Error.
  virtual ModelOptions resolve(const ModelOptions& options) const = 0;
  // Takes back the kind's own options that resolve() filled in, so that other sizes get their own defaults.
  virtual void forget_defaults(ModelOptions*) const {}
  // Gives every attention the scheme, with the widths that are the scheme's defaults.
  virtual void set_scheme(const std::string& scheme, ModelOptions* options) const;

  // These note in config.json the options that are no fields, and read them from there. `where` leads the Error.
  virtual void note_more(const ModelOptions&, nlohmann::json* /*config*/) const {}
  virtual void take_more(const nlohmann::json& /*config*/, const std::string& /*where*/, ModelOptions*) const {}

  // Makes a module with uninitialised parameters; under DeclareOn(kMeta) it takes no memory.
  virtual std::shared_ptr<torch::nn::Module> make(const ModelOptions& resolved) const = 0;

  // Returns the attention of each of its sites, first the one that is measured.
  virtual std::vector<AttentionOptions> attentions(const ModelOptions& resolved) const {
    return {resolved.common().attention};
  }
  // Counts exactly, without allocating.
  virtual ModelSize measure(const ModelOptions& resolved) const = 0;
  // Returns a stack of blocks whose activations take about as much memory as those of the model.
  virtual TransformerOptions as_one_stack(const ModelOptions& resolved) const { return resolved.common(); }
  // Returns the bytes that looking up its inputs keeps for the gradient, besides rows of a table.
  virtual double lookup_bytes(const ModelOptions&, const TrainingShape&) const { return 0; }

  // Makes a decoding with a model of this kind; null where it cannot decode.
  virtual std::unique_ptr<GreedyDecoding> decoding(const std::shared_ptr<torch::nn::Module>&) const { return nullptr; }
};

// These functions call the functions of options that are found where a kind is made: members of the same names hide
// them there.
namespace of_options {
template <class Options>
Fields fields_of(Options& options) {
  return fields(options);
}
template <class Options>
Fields stored_fields_of(Options& options) {
  return stored_fields(options);
}
template <class Options>
Options resolved(const Options& options) {
  static_assert(std::same_as<decltype(resolve(options)), Options>, "another kind's resolve() would drop options");
  return resolve(options);
}
}  // namespace of_options

// ModelKindOf serves a kind whose options have fields(), stored_fields() and resolve() and whose module is made of
// them.
template <class Options, class Model>
class ModelKindOf : public ModelKind {
 public:
  ModelOptions beginning() const override { return Options(); }
  Fields fields(ModelOptions& options) const override { return of_options::fields_of(options.as<Options>()); }
  Fields stored_fields(ModelOptions& options) const override {
    return of_options::stored_fields_of(options.as<Options>());
  }
  ModelOptions resolve(const ModelOptions& options) const override {
    return of_options::resolved(options.as<Options>());
  }
  std::shared_ptr<torch::nn::Module> make(const ModelOptions& resolved) const override {
    return Model(resolved.as<Options>()).ptr();
  }
};

// Lists the kinds that the program brings, in the order of help, and those that were added.
std::vector<const ModelKind*> model_kinds();

// Returns the kind of that name. Throws Error with the nearest name for an unknown one.
const ModelKind& model_kind(const std::string& name);

// An AddedModelKind adds a kind while it lives: for tests, and for programs that bring one of their own.
class AddedModelKind {
 public:
  // Throws Error for another object than kind_of() gives, and for a name that there is.
  explicit AddedModelKind(const ModelKind& kind);
  ~AddedModelKind();
  AddedModelKind(const AddedModelKind&) = delete;
  AddedModelKind& operator=(const AddedModelKind&) = delete;

 private:
  const void* record_;
};

// Returns "a decoder", "an encoder".
std::string with_article(const ModelKind& kind);

// Says by what a model saves parameters besides its attention, ", layer-groups 1, embedding-width 128"; "" where it
// does not.
std::string savings_text(const TransformerOptions& options);

// Throws Error led by `where` for a model that reads a source: `cannot` says what has not been built for them ("is not
// analysed").
void refuse_source(const ModelOptions& options, const std::string& where, const std::string& cannot);

// Throws Error for layers that share keys and values: `cannot` says what has not been built for them ("`convert` does
// not rewrite").
void refuse_shared_memory(const TransformerOptions& options, const std::string& cannot);

// These return the values of all options that a user sets, and of all that a checkpoint's config.json holds.
nlohmann::json option_values(ModelOptions options);
nlohmann::json stored_option_values(ModelOptions options);

}  // namespace headshare
