// This program is for tests/oracles/ and bench/ only: it writes what a model computes from token ids.
//   model_tool MODEL INPUT OUT [gradients]
// MODEL is a checkpoint directory; a tokenizer is not needed for ids. INPUT is a JSON object of rows of equal length:
// "ids" (or for encoders "tokens", their texts, such as "<s>" or "the") and, for encoders where wanted, "visible" (1,
// or 0 for padding), "segments", "targets" (-100: none) and "words" ([B, 2, T]); or "text", for an encoder with a
// tokenizer whose token embedding alone is asked: OUT has `embedded` [1, T, W] for its tokens. OUT is safetensors with
// `hidden` [B, T, E] and what the model can answer: `logits` [B, T, V], `pooled` [B, E], `scores` of a task's head,
// `three_way` [B, T, 3]. For an encoder-decoder the rows are "source", with "visible", and "ids", the target behind its
// start; OUT has `memory` [B, S, E] too, and with "generate": N the likeliest tokens one by one, `generated` int64 [B,
// 1 + N], in which the end is repeated. OUT also has a mean `loss` (a decoder's over the next tokens, else over the
// targets) and, when asked, its gradient by every parameter as `gradient.NAME`.
#include <ATen/ATen.h>

#include <cstdio>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/models/checkpoint.h"
#include "headshare/text/tokenizer_file.h"

namespace {

using namespace headshare;

// Reads the rows under `key`; undefined where the object has none.
Tensor read_rows(const nlohmann::json& object, const char* key) {
  if (!object.contains(key)) return {};
  std::vector<Tensor> tensors;
  for (const auto& row : object.at(key).get<std::vector<std::vector<int64_t>>>()) {
    tensors.push_back(at::tensor(row, at::kLong));
  }
  return at::stack(tensors);
}

// Returns the ids of tokens that are given by their texts.
nlohmann::json ids_of(const nlohmann::json& tokens, const Tokenizer& tokenizer) {
  nlohmann::json ids = nlohmann::json::array();
  for (const auto& row : tokens.get<std::vector<std::vector<std::string>>>()) {
    ids.push_back(nlohmann::json::array());
    for (const std::string& token : row) {
      const std::vector<int32_t> found = tokenizer.encode_with_special(token);
      HS_CHECK(found.size() == 1, "'", token, "' is ", found.size(), " tokens, not one");
      ids.back().push_back(found.front());
    }
  }
  return ids;
}

Tensor read_words(const nlohmann::json& object) {
  std::vector<Tensor> rows;
  for (const auto& row : object.at("words").get<std::vector<std::vector<std::vector<double>>>>()) {
    rows.push_back(at::stack({at::tensor(row.at(0)), at::tensor(row.at(1))}));
  }
  return at::stack(rows);
}

NamedTensors results(Decoder& model, const nlohmann::json& object) {
  NamedTensors out;
  const Tensor ids = read_rows(object, "ids");
  const int64_t last = ids.size(1) - 1;
  out["hidden"] = model->hidden(ids);
  out["logits"] = model->logits(out["hidden"]);
  const SummedLoss loss = model->loss(ids.narrow(1, 0, last), ids.narrow(1, 1, last).contiguous());
  out["loss"] = loss.sum / loss.tokens;
  return out;
}

Tensor task_scores(Encoder& model, const EncoderInput& input, const nlohmann::json& object) {
  switch (model->options().task_head.kind) {
    case TaskHeadKind::kNone:
      break;
    case TaskHeadKind::kText:
      return model->text_scores(input);
    case TaskHeadKind::kWords:
      return model->word_scores(input, read_words(object));
    case TaskHeadKind::kToken:
      return model->token_scores(input);
  }
  return {};
}

NamedTensors results(Encoder& model, const nlohmann::json& object) {
  EncoderInput input{.ids = read_rows(object, "ids"), .segments = read_rows(object, "segments")};
  if (object.contains("visible")) input.visible = read_rows(object, "visible").to(at::kBool);
  NamedTensors out;
  out["hidden"] = model->hidden(input);
  if (model->options().pooler) out["pooled"] = model->pooled(input);
  if (model->options().masked_head) out["logits"] = model->logits(out["hidden"]);
  const Tensor scores = task_scores(model, input, object);
  if (scores.defined()) out["scores"] = scores;
  if (model->options().three_way_head) {
    const Tensor places = at::arange(input.ids.numel());
    out["three_way"] = model->three_way_scores(input, places).unflatten(0, input.ids.sizes());
  }
  if (!object.contains("targets")) return out;
  const SummedLoss loss = model->loss(input, read_rows(object, "targets"));
  out["loss"] = loss.sum / loss.tokens;
  return out;
}

// Returns the likeliest token that may follow the last one, [B].
Tensor next_tokens(EncoderDecoder& model, const Tensor& last, const EncodedSource& source, TranslationState* state) {
  const TargetMarks& marks = model->options().marks;
  Tensor scores = model->logits(model->hidden(last.unsqueeze(1), source, state)).squeeze(1);
  if (marks.never_produced) scores.select(1, *marks.never_produced).fill_(-std::numeric_limits<float>::infinity());
  const bool first = state->length() == 1;
  return first && marks.forced_first ? at::full_like(last, *marks.forced_first) : scores.argmax(1);
}

Tensor generated(EncoderDecoder& model, const EncodedSource& source, int64_t count) {
  const TargetMarks& marks = model->options().marks;
  std::vector<Tensor> tokens = {at::full({source.memory.size(0)}, marks.start, at::kLong)};
  TranslationState state = model->new_state(count);
  Tensor ended = at::zeros({source.memory.size(0)}, at::kBool);
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(next_tokens(model, tokens.back(), source, &state).masked_fill(ended, marks.end));
    ended = ended.logical_or(tokens.back() == marks.end);
  }
  return at::stack(tokens, 1);
}

NamedTensors results(EncoderDecoder& model, const nlohmann::json& object) {
  PaddedIds source{.ids = read_rows(object, "source")};
  if (object.contains("visible")) source.visible = read_rows(object, "visible").to(at::kBool);
  const EncodedSource encoded = model->encode(source);
  NamedTensors out;
  out["memory"] = encoded.memory;
  if (object.contains("generate")) out["generated"] = generated(model, encoded, object.at("generate").get<int64_t>());
  if (!object.contains("ids")) return out;
  const Tensor ids = read_rows(object, "ids");
  out["hidden"] = model->hidden(ids, encoded);
  out["logits"] = model->logits(out["hidden"]);
  if (!object.contains("targets")) return out;
  const SummedLoss loss = model->loss(source, ids, read_rows(object, "targets"));
  out["loss"] = loss.sum / loss.tokens;
  return out;
}

Tensor embedded(const fs::path& checkpoint, const EncoderOptions& options, const std::string& text) {
  const NamedTensors tensors = read_tensors(checkpoint / "model.safetensors");
  const std::shared_ptr<Tokenizer> tokenizer = load_tokenizer(checkpoint / "tokenizer.json");
  const EmbeddingHost host = {
      .declare = [&](const std::string& name, at::IntArrayRef, Init) { return tensors.at(name); },
      .dropout = [](const Tensor& x, uint64_t) { return x; }};
  const EmbeddingSize size = {options.vocabulary, embedding_width(options), options.init_deviation};
  const auto embedding = make_token_embedding(options.embedding, size, host);
  embedding->read_words(tokenizer);
  std::vector<int64_t> ids;
  for (const int32_t id : tokenizer->encode(text)) ids.push_back(id);
  return embedding->lookup({.ids = at::tensor(ids, at::kLong).unsqueeze(0)}, LookupGradient::kWhole);
}

template <class Model>
void write_results(Model model, const nlohmann::json& object, bool gradients, const fs::path& path) {
  const at::AutoGradMode mode(gradients);
  NamedTensors out = results(model, object);
  if (gradients) {
    out.at("loss").backward();
    for (const Declared& one : declared_parameters(*model)) {
      const Tensor gradient = one.tensor.grad();
      out["gradient." + one.name] = gradient.defined() ? gradient : at::zeros_like(one.tensor);
    }
  }
  write_tensors(path, out);
}

}  // namespace

int main(int count, char** arguments) {
  const bool gradients = count == 5 && std::string(arguments[4]) == "gradients";
  if (count != 4 && !gradients) {
    std::fprintf(stderr, "usage: model_tool MODEL INPUT OUT [gradients]\n");
    return 2;
  }
  try {
    const fs::path checkpoint = find_checkpoint(arguments[1]);
    auto input = nlohmann::json::parse(read_file(arguments[2]));
    const ModelOptions options = read_options(checkpoint);
    if (input.contains("text")) {
      const std::string text = input.at("text").get<std::string>();
      write_tensors(arguments[3], {{"embedded", embedded(checkpoint, options.as<EncoderOptions>(), text)}});
    } else if (input.contains("tokens")) {
      const LoadedEncoder loaded = load_encoder_model(checkpoint);
      input["ids"] = ids_of(input.at("tokens"), *loaded.tokenizer);
      write_results(loaded.model, input, gradients, arguments[3]);
    } else if ((options.find<EncoderOptions>() != nullptr)) {
      write_results(load_encoder(checkpoint), input, gradients, arguments[3]);
    } else if (options.kind().reads_source()) {
      write_results(load_encoder_decoder(checkpoint), input, gradients, arguments[3]);
    } else {
      write_results(load_decoder(checkpoint), input, gradients, arguments[3]);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
