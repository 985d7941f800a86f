// headshare fill tells what may stand in the masked places of a text.
#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/json/json_text.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/inputs/input_lines.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/host/runtime_options.h"
#include "headshare/models/checkpoint.h"

namespace headshare {
namespace {

struct FillOptions {
  std::string model_path;
  std::string text;
  int64_t top_k = 5;
  bool json = false;
  RuntimeOptions runtime;
};

Fields own_fields(FillOptions& o) {
  return {
      field("top-k", &o.top_k, "fillings for each mask, likeliest first", {.min = 1, .max = 1 << 20}),
      field("json", &o.json, "print one JSON object a line for each text"),
  };
}

struct Filling {
  int32_t token = 0;
  std::string text;
  double probability = 0;
};

// These are the tokens of a text between [CLS] and [SEP], and the places of its masks.
struct MaskedText {
  std::vector<int64_t> ids;
  std::vector<int64_t> masks;
};

MaskedText read_text(const std::string& text, const LoadedEncoder& loaded) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  const std::string where = "filling masks (" + (loaded.directory / "tokenizer.json").string() + ")";
  const int32_t mask = require_special(tokenizer, SpecialToken::kMask, where);
  MaskedText found;
  found.ids.push_back(require_special(tokenizer, SpecialToken::kClassify, where));
  for (const int32_t id : tokenizer.encode_with_special(text)) {
    if (id == mask) found.masks.push_back(static_cast<int64_t>(found.ids.size()));
    found.ids.push_back(id);
  }
  found.ids.push_back(require_special(tokenizer, SpecialToken::kSeparate, where));
  const std::string written = tokenizer.decode(std::vector<int32_t>{mask});
  HS_CHECK(!found.masks.empty(), "the text has no ", written, ": write it where a word is to be filled in");
  const EncoderOptions& model = loaded.model->options();
  const auto count = static_cast<int64_t>(found.ids.size());
  HS_CHECK(count <= model.context, "the text has ", count,
           " tokens with [CLS] and [SEP], more than the model's context ", "of ", model.context, "; shorten it");
  return found;
}

// Returns for each mask its likeliest tokens.
std::vector<std::vector<Filling>> fill(const MaskedText& text, const LoadedEncoder& loaded, int64_t top_k) {
  const c10::InferenceMode inference;
  const c10::Device device = loaded.model->device();
  const EncoderInput input{.ids = at::tensor(text.ids, at::kLong).unsqueeze(0).to(device)};
  const Tensor places = at::tensor(text.masks, at::kLong).to(device);
  const Tensor rows = loaded.model->hidden(input)[0].index_select(0, places);  // [masks, E]
  // The model may have room for ids that the tokenizer has no text for; they are no fillings.
  const int64_t known = loaded.tokenizer->vocabulary_size();
  const Tensor probabilities = loaded.model->logits(rows).narrow(1, 0, known).to(at::kDouble).softmax(1).cpu();
  HS_CHECK(at::isfinite(probabilities).all().item<bool>(), "the scores that ", loaded.directory.string(),
           " gives are not finite numbers: the model has diverged, or its checkpoint is damaged");
  const auto [values, tokens] = probabilities.topk(std::min(top_k, known), 1);
  std::vector<std::vector<Filling>> all;
  for (int64_t mask = 0; mask < places.size(0); ++mask) {
    std::vector<Filling>& fillings = all.emplace_back();
    for (int64_t i = 0; i < values.size(1); ++i) {
      const auto token = static_cast<int32_t>(tokens[mask][i].item<int64_t>());
      fillings.push_back({.token = token,
                          .text = loaded.tokenizer->decode(std::vector<int32_t>{token}),
                          .probability = values[mask][i].item<double>()});
    }
  }
  return all;
}

// Throws Error where the model has no head, before any text is looked at: advice on texts would be of no use.
void refuse_without_head(const Encoder& model) {
  const c10::InferenceMode inference;
  model->logits(at::zeros({1, model->options().attention.d_model}, model->device()));
}

void print_object(const std::string& text, const std::vector<std::vector<Filling>>& all) {
  nlohmann::ordered_json object = {{"text", text}, {"masks", nlohmann::ordered_json::array()}};
  for (const std::vector<Filling>& fillings : all) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Filling& one : fillings) {
      list.push_back({{"text", one.text}, {"token", one.token}, {"probability", one.probability}});
    }
    object["masks"].push_back(list);
  }
  print_json(json_text(object) + "\n");
}

void print_lists(const std::string& text, const std::vector<std::vector<Filling>>& all) {
  print_text(text + "\n");
  for (size_t mask = 0; mask < all.size(); ++mask) {
    if (all.size() > 1) print(join_text("mask ", mask + 1, "\n"));
    for (const Filling& one : all[mask]) print_text("  " + format_fixed(one.probability, 4) + "  " + one.text + "\n");
  }
}

}  // namespace

int run_fill(const Words& words) {
  FillOptions options;
  Arguments arguments("fill", "Prints what may stand in the masked places of a text, likeliest first.");
  arguments.required("MODEL", "a checkpoint or run directory of an encoder", &options.model_path);
  arguments.optional("TEXT", "with [MASK] where words are wanted; without it, every line of standard input is a text",
                     &options.text);
  arguments.group("Filling", own_fields(options));
  arguments.group("Computing", fields(options.runtime));
  arguments.common({"top-k", "json", "threads"});
  arguments.example("fill encoder \"The import [MASK] finds a module.\"", "the likeliest words for one gap");
  arguments.example("fill encoder --top-k 3 --json <lines.txt", "three for each gap of every line");
  arguments.note(
      "A filling is a token: a word, or a piece of one. Several masks are filled independently of each other, each "
      "list as if the other masks stayed.");
  if (!arguments.parse(words)) return kOk;
  catch_interrupts();
  LoadedEncoder loaded = load_encoder_model(options.model_path);
  loaded.model->to(start_runtime(options.runtime));
  refuse_without_head(loaded.model);
  const auto answer = [&](const std::string& text) {
    const std::vector<std::vector<Filling>> all = fill(read_text(text, loaded), loaded, options.top_k);
    options.json ? print_object(text, all) : print_lists(text, all);
    flush_output();
  };
  if (!options.text.empty()) {
    answer(options.text);
    return kOk;
  }
  InputLines lines;
  int64_t texts = 0;
  for (std::string line; lines.next(&line);) {
    if (line.empty()) continue;
    answer(line);
    ++texts;
  }
  HS_CHECK(texts > 0, "there is no text: give TEXT, or texts on standard input, a line each");
  return kOk;
}

}  // namespace headshare
