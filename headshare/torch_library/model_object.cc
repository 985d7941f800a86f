// A whole model for Python (python/headshare/models.py).
#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/convert/output/output_directory.h"
#include "headshare/models/checkpoint.h"
#include "headshare/torch_library/borrowing.h"
#include "headshare/torch_library/classes.h"
#include "headshare/torch_library/tokenizer_object.h"

namespace headshare {
namespace {

using Inputs = c10::Dict<std::string, Tensor>;
using Handles = std::vector<c10::intrusive_ptr<TokenizerObject>>;

// Models are asked for these, with the inputs that an answer takes. Optional ones may be missing.
struct Question {
  std::string what;  // "hidden", "logits", "loss", "scores", "pooled"
  Inputs inputs;

  Tensor input(const std::string& name) const {
    HS_CHECK(inputs.contains(name), "'", what, "' needs the input ", name);
    return inputs.at(name);
  }
  // Throws Error for an input that the model does not read.
  void allow(const std::vector<std::string>& known) const {
    for (const auto& one : inputs) {
      const bool found = std::find(known.begin(), known.end(), one.key()) != known.end();
      HS_CHECK(found, "this model reads no '", one.key(), "'; its inputs are ", c10::Join(", ", known));
    }
  }
  Tensor optional(const std::string& name) const { return inputs.contains(name) ? inputs.at(name) : Tensor(); }
  Tensor ids(const std::string& name = "ids") const {
    const Tensor ids = input(name);
    HS_CHECK(ids.dim() == 2 && ids.scalar_type() == at::kLong, name, " holds ", ids.scalar_type(), " ", ids.sizes(),
             "; token ids are wanted, int64 [B, T]");
    return ids;
  }
  [[noreturn]] void refuse(const std::string& known) const {
    throw Error("this model gives " + known + ", not '" + what + "'");
  }
};

Tensor mean(const SummedLoss& loss) {
  HS_CHECK(loss.tokens > 0, "no token has a target: a mean loss of nothing");
  return loss.sum / loss.tokens;
}

Tensor answer(DecoderImpl& model, const Question& asked) {
  asked.allow({"ids", "targets"});
  const Tensor ids = asked.ids();
  if (asked.what == "hidden") return model.hidden(ids);
  if (asked.what == "logits") return model.logits(model.hidden(ids));
  if (asked.what == "loss") return mean(model.loss(ids, asked.ids("targets")));
  asked.refuse("hidden, logits and loss");
}

Tensor task_scores(EncoderImpl& model, const EncoderInput& input, const Question& asked) {
  switch (model.options().task_head.kind) {
    case TaskHeadKind::kNone:
      break;
    case TaskHeadKind::kText:
      return model.text_scores(input);
    case TaskHeadKind::kWords:
      return model.word_scores(input, asked.input("words"));
    case TaskHeadKind::kToken:
      return model.token_scores(input);
  }
  throw Error("this encoder has no head of a task, which gives scores; `headshare finetune` trains one");
}

Tensor answer(EncoderImpl& model, const Question& asked) {
  asked.allow({"ids", "targets", "visible", "segments", "words"});
  const EncoderInput input{
      .ids = asked.ids(), .visible = asked.optional("visible"), .segments = asked.optional("segments")};
  if (asked.what == "hidden") return model.hidden(input);
  if (asked.what == "logits") return model.logits(model.hidden(input));
  if (asked.what == "loss") return mean(model.loss(input, asked.ids("targets")));
  if (asked.what == "pooled") return model.pooled(input);
  if (asked.what == "scores") return task_scores(model, input, asked);
  asked.refuse("hidden, logits, loss, pooled and scores");
}

Tensor answer(EncoderDecoderImpl& model, const Question& asked) {
  asked.allow({"source", "source_visible", "ids", "targets"});
  const PaddedIds source{.ids = asked.ids("source"), .visible = asked.optional("source_visible")};
  const Tensor ids = asked.ids();
  if (asked.what == "loss") return mean(model.loss(source, ids, asked.ids("targets")));
  const EncodedSource encoded = model.encode(source);
  if (asked.what == "hidden") return model.hidden(ids, encoded);
  if (asked.what == "logits") return model.logits(model.hidden(ids, encoded));
  asked.refuse("hidden, logits and loss");
}

Tensor answer(torch::nn::Module& module, const Question& asked) {
  if (auto* decoder = dynamic_cast<DecoderImpl*>(&module)) return answer(*decoder, asked);
  if (auto* encoder = dynamic_cast<EncoderImpl*>(&module)) return answer(*encoder, asked);
  return answer(dynamic_cast<EncoderDecoderImpl&>(module), asked);
}

Borrowing::Made made(const ModelOptions& options, const Handles& tokenizers) {
  const std::shared_ptr<torch::nn::Module> module = options.kind().make(options);
  if (auto* const translator = dynamic_cast<EncoderDecoderImpl*>(module.get())) return {module, &translator->clock()};
  auto* const transformer = dynamic_cast<TransformerImpl*>(module.get());
  HS_CHECK(transformer != nullptr, "the model is ", options.kind().what_it_does(options),
           ", and Python loads decoders, encoders and encoder-decoders; write it for transformers with `headshare "
           "convert --to hf`");
  if (!tokenizers.empty()) transformer->read_words(tokenizers.back()->tokenizer());
  return {module, &transformer->clock()};
}

class ModelObject : public torch::CustomClassHolder {
 public:
  // `config` is what model_config() gives. There are no tokenizers, one, or the source's and the target's.
  ModelObject(const std::string& config, Handles tokenizers)
      : options_(options_of_config(nlohmann::json::parse(config), "the model's options")),
        tokenizers_(std::move(tokenizers)),
        borrowing_([this] { return made(options_, tokenizers_); }) {}

  // Reads a checkpoint or run directory: the model, and the values of its parameters in their order.
  static std::tuple<c10::intrusive_ptr<ModelObject>, std::vector<Tensor>> read(const std::string& path);

  std::string kind() const { return options_.kind().name(); }
  std::string config() const { return model_config(options_).dump(); }
  std::vector<ParameterDescription> parameters() const { return borrowing_.parameters(); }
  Handles tokenizers() const { return tokenizers_; }

  // Gives what answer() gives to the inputs, with these parameters; in training, with dropout, where there is a seed.
  Tensor ask(const std::string& what, const Inputs& inputs, const std::vector<Tensor>& parameters,
             std::optional<int64_t> seed) const {
    for (const auto& one : inputs) {
      HS_CHECK(parameters.empty() || one.value().device() == parameters.front().device(), one.key(), " is on ",
               one.value().device(), ", the model on ", parameters.front().device());
    }
    return borrowing_.run<torch::nn::Module>(
        parameters, seed, [&](torch::nn::Module& module) { return answer(module, {.what = what, .inputs = inputs}); });
  }

  // Writes a checkpoint. The directory appears whole or not at all.
  void save(const std::string& directory, const std::vector<Tensor>& parameters, bool overwrite) const {
    OutputDirectory output(directory, overwrite ? Overwrite::kYes : Overwrite::kNo, headshare_output(), InputPaths());
    borrowing_.run<torch::nn::Module>(parameters, std::nullopt, [&](torch::nn::Module& module) {
      output.write([&](const fs::path& path) {
        const Tokenizer* const target = tokenizers_.empty() ? nullptr : tokenizers_.back()->tokenizer().get();
        const Tokenizer* const source = tokenizers_.size() < 2 ? nullptr : tokenizers_.front()->tokenizer().get();
        save_model(path, options_, module, target, source);
      });
    });
  }

 private:
  ModelOptions options_;
  Handles tokenizers_;
  Borrowing borrowing_;
};

Handles handles_of(const TokenizerPair& tokenizers) {
  Handles handles;
  if (!tokenizers.joint()) handles.push_back(c10::make_intrusive<TokenizerObject>(tokenizers.source));
  if (tokenizers.target != nullptr) handles.push_back(c10::make_intrusive<TokenizerObject>(tokenizers.target));
  return handles;
}

std::tuple<c10::intrusive_ptr<ModelObject>, std::vector<Tensor>> ModelObject::read(const std::string& path) {
  const fs::path directory = find_checkpoint(path);
  AnyModel loaded = {.options = read_options(directory), .module = nullptr};
  TokenizerPair tokenizers;
  if (loaded.options.kind().reads_source() && fs::exists(directory / "tokenizer.json")) {
    const LoadedTranslator translator = load_translator(directory);
    loaded.module = translator.model.ptr();
    tokenizers = translator.tokenizers;
  } else {
    loaded = load_any_model(directory);
    tokenizers.source = tokenizers.target = load_own_tokenizer(directory);
  }
  const auto object = c10::make_intrusive<ModelObject>(model_config(loaded.options).dump(), handles_of(tokenizers));
  const NamedTensors named = model_tensors(*loaded.module);
  std::vector<Tensor> values;
  for (const ParameterDescription& one : object->parameters()) values.push_back(named.at(std::get<0>(one)).detach());
  return {object, values};
}

}  // namespace

void register_model(torch::Library* library) {
  library->class_<ModelObject>("Model")
      .def(torch::init<std::string, Handles>())
      .def_static("read", &ModelObject::read)
      .def("kind", &ModelObject::kind)
      .def("config", &ModelObject::config)
      .def("parameters", &ModelObject::parameters)
      .def("tokenizers", &ModelObject::tokenizers)
      .def("ask", &ModelObject::ask)
      .def("save", &ModelObject::save)
      .def_pickle(
          [](const c10::intrusive_ptr<ModelObject>& model) { return std::tuple(model->config(), model->tokenizers()); },
          [](std::tuple<std::string, Handles> state) {
            return c10::make_intrusive<ModelObject>(std::get<0>(state), std::get<1>(state));
          });
}

}  // namespace headshare
