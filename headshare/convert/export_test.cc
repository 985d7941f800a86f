#include "headshare/convert/export.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/convert/collaborative/attention_layers.h"
#include "headshare/convert/formats.h"
#include "headshare/models/testing.h"
#include "headshare/text/wordpiece/wordpiece_tokenizer.h"

namespace headshare {
namespace export_test {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class ExportTest : public testing::Test {
 protected:
  // Writes a random model and reads it back: what it was written as, by the format's own name.
  std::string exported(const ModelOptions& resolved, const std::string& name, const std::string& form = "") {
    const std::shared_ptr<torch::nn::Module> module = resolved.kind().make(resolved);
    randomise(*module);
    const ModelToWrite model{.options = resolved, .tensors = model_tensors(*module), .tokenizers = tokenizer_};
    plan_ = plan_export(*find_written_format(name), form, resolved);
    const fs::path directory = folder_.path() / "written";
    fs::remove_all(directory);
    make_directories(directory);
    plan_.format->write(prepared_for_export(model, plan_), form, directory);
    EXPECT_LE(check_export(model, plan_, directory), 1e-5);
    return plan_.fold ? plan_.fold->scheme : "";
  }

  std::string refusal(const ModelOptions& resolved, const std::string& form = "") {
    return error_message([&] { plan_export(*find_written_format("hf"), form, resolved); });
  }

  std::string type_written() const {
    return nlohmann::json::parse(read_file(folder_.path() / "written/config.json")).at("model_type");
  }

  TemporaryDirectory folder_;
  ExportPlan plan_;
  TokenizerPair tokenizer_ = {};
};

TEST_F(ExportTest, HeadsWithOneKeyBecomeGptBigCode) {
  for (const std::string scheme : {"mhe_add", "mhe_mul", "sha", "mqa"}) {
    EXPECT_EQ(exported(resolve(small_options(scheme)), "hf"), scheme == "mqa" ? "" : "mqa");
    EXPECT_EQ(type_written(), "gpt_bigcode") << scheme;
  }
}

TEST_F(ExportTest, OtherHeadsBecomeGpt2) {
  for (const std::string scheme : {"gqa", "skv", "el_shared", "el_lossless", "mha"}) {
    EXPECT_EQ(exported(resolve(small_options(scheme)), "hf"), scheme == "mha" ? "" : "mha");
    EXPECT_EQ(type_written(), "gpt2") << scheme;
  }
  EXPECT_EQ(exported(resolve(small_options("mhe_mul")), "hf", "gpt2"), "mha");
}

TEST_F(ExportTest, PositionsWithoutParametersBecomeATable) {
  for (const PositionKind positions : {PositionKind::kSinusoidal, PositionKind::kNone}) {
    for (const std::string scheme : {"mha", "sha"}) exported(resolve(small_options(scheme, positions)), "hf");
  }
}

TEST_F(ExportTest, RotaryHeadsBecomeLlama) {
  for (const std::string scheme : {"gqa", "mhe_add", "mhe_mul", "skv", "sha"}) {
    DecoderOptions options = small_options(scheme, PositionKind::kRotary);
    options.norm = NormKind::kRms;
    options.feed_forward = FeedForwardKind::kSwiglu;
    exported(resolve(options), "hf");
    EXPECT_EQ(type_written(), "llama") << scheme;
  }
}

TEST_F(ExportTest, SharedHeadsOfEncodersAreUnfolded) {
  EncoderOptions options = small_encoder_options("mhe_mul");
  EXPECT_EQ(exported(resolve(options), "hf"), "mha");
  EXPECT_EQ(type_written(), "bert");
}

DecoderOptions llama_like(const std::string& scheme) {
  DecoderOptions options = small_options(scheme, PositionKind::kRotary);
  options.norm = NormKind::kRms;
  options.norm_epsilon = 1e-3;
  options.feed_forward = FeedForwardKind::kSwiglu;
  options.attention.rotary_base = 500;
  return options;
}

TEST_F(ExportTest, FilesForEnginesComeBack) {
  for (const std::string format : {"gguf", "ctranslate2"}) {
    for (const bool bare : {false, true}) {
      SCOPED_TRACE(format + (bare ? ", bare" : ""));
      for (const std::string scheme : {"mha", "gqa", "mqa", "mhe_mul", "skv"}) {
        DecoderOptions options = small_options(scheme, bare ? PositionKind::kSinusoidal : PositionKind::kLearned);
        options.attention.projection_bias = options.tie_embeddings = !bare;
        options.feed_forward_width = 40;
        const std::string fold = exported(resolve(options), format);
        EXPECT_EQ(fold, scheme == "mhe_mul" ? "mqa" : scheme == "skv" ? "mha" : "");
        options = llama_like(scheme);
        options.attention.head_width = 8;
        options.attention.projection_bias = options.feed_forward_bias = options.tie_embeddings = bare;
        exported(resolve(options), format);
      }
    }
  }
  exported(resolve(small_options("mha")), "gguf", "starcoder");
  exported(resolve(small_options("sha")), "ctranslate2", "scoring");
  DecoderOptions options = small_options("mha");
  options.activation = ActivationKind::kGeluErf;
  exported(resolve(options), "ctranslate2");
  EXPECT_THAT(find_written_format("gguf")->why_not_write(resolve(options), ""), HasSubstr("(--activation)"));
  EXPECT_THAT(find_written_format("gguf")->why_not_write(resolve(small_encoder_options("mha")), ""),
              HasSubstr("only decoders are written as GGUF"));
}

TEST_F(ExportTest, EnginesSayWhatTheyCache) {
  const ModelOptions options = resolve(small_options("mhe_mul"));  // 2 layers of 4 heads that are 4 wide
  const auto losses = [&](const std::string& name, const std::string& form) {
    return export_losses(plan_export(*find_written_format(name), form, options), options);
  };
  EXPECT_THAT(losses("gguf", ""), Contains(HasSubstr("llama.cpp caches 32 bytes per token in float16")));
  EXPECT_THAT(losses("ctranslate2", ""), AllOf(Contains(HasSubstr("the one key and value: 64 bytes per token")),
                                               Contains(HasSubstr("--to ctranslate2:scoring"))));
  EXPECT_THAT(losses("ctranslate2", "scoring"), Contains(HasSubstr("all 4 heads: 256 bytes per token")));
}

TEST_F(ExportTest, EncodersBecomeRobertaWhereThatIsAskedFor) {
  const auto tokenizer = std::make_shared<WordPieceTokenizer>(WordPieceDefinition{
      .tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "e", "f", "g", "h"},
      .special = {0, 1, 2, 3, 4},
      .unknown = 1,
      .normalization = {}});
  tokenizer_ = {.source = tokenizer, .target = tokenizer};
  for (const bool tied : {true, false}) {
    EncoderOptions options = small_encoder_options("mhe_add");
    options.tie_embeddings = tied;
    EXPECT_EQ(exported(resolve(options), "hf", "roberta"), "mha");
    EXPECT_EQ(type_written(), "roberta");
  }
  tokenizer_ = {};
  EXPECT_THAT(error_message([&] { exported(resolve(small_encoder_options("mha")), "hf", "roberta"); }),
              HasSubstr("RoBERTa counts positions without padding"));
}

TEST_F(ExportTest, EncoderDecodersBecomeMarian) {
  for (const PositionKind positions : {PositionKind::kSinusoidal, PositionKind::kLearned, PositionKind::kNone}) {
    for (const bool shared : {true, false}) {
      EncoderDecoderOptions options = random_translator("mhe_mul", "skv", positions)->options();
      options.sites.reset();
      options.share_embeddings = shared;
      options.output_bias = !shared;
      options.tie_embeddings = positions != PositionKind::kNone;
      EXPECT_EQ(exported(resolve(options), "hf"), "mha");
      EXPECT_EQ(type_written(), "marian");
    }
  }
}

TEST_F(ExportTest, SaysWhatIsLost) {
  const ModelOptions options = resolve(small_options("mhe_mul"));
  const ExportPlan plan = plan_export(*find_written_format("hf"), "gpt2", options);
  EXPECT_THAT(
      export_losses(plan, options),
      AllOf(Contains(HasSubstr("the heads of mhe_mul are written as mha, with the same outputs; headshare caches "
                               "64 bytes per token in float32, mha 256")),
            Contains("transformers caches 256 bytes per token in float32")));
}

TEST_F(ExportTest, WhatHasNoPlaceIsRefusedByItsOption) {
  EXPECT_THAT(refusal(resolve(small_options("mhe_add", PositionKind::kAlibi))), HasSubstr("(--positions)"));
  DecoderOptions options = small_options("gqa");
  options.attention.qk_norm = true;
  EXPECT_THAT(refusal(resolve(options)), HasSubstr("nor can its heads be rewritten: the model norms queries and keys"));
  DecoderOptions normed = llama_like("gqa");
  normed.attention.qk_norm = true;
  EXPECT_THAT(error_message([&] { plan_export(*find_written_format("gguf"), "", resolve(normed)); }),
              HasSubstr("(--qk-norm), which GGUF's llama has no place for"));
  options = small_options("mhe_mul");
  options.attention.content_bias = true;
  EXPECT_THAT(refusal(resolve(options)), HasSubstr("(--content-bias)"));
  EXPECT_THAT(refusal(resolve(small_options("mha")), "bert"), HasSubstr("the model is a decoder"));
  EXPECT_THAT(refusal(resolve(small_options("mha")), "gpt_bigcode"), HasSubstr("a decoder of scheme mqa can be"));
}

DecoderOptions scaled_llama(const RotaryScaling& scaling) {
  DecoderOptions options = llama_like("gqa");
  options.attention.head_width = 8;
  options.attention.rotary_scaling = scaling;
  return options;
}

const RotaryScaling kScaledYarn = {.kind = RotaryScalingKind::kYarn,
                                   .factor = 4,
                                   .original_context = 64,
                                   .beta_fast = 9,
                                   .attention_factor = 1.3,
                                   .truncate = false};

TEST_F(ExportTest, ScaledRotationsComeBackFromEngines) {
  for (const RotaryScaling& scaling :
       {RotaryScaling{.kind = RotaryScalingKind::kLinear, .factor = 2},
        RotaryScaling{.kind = RotaryScalingKind::kLlama3, .factor = 8, .original_context = 16}, kScaledYarn}) {
    const ModelOptions options = resolve(scaled_llama(scaling));
    for (const std::string format : {"gguf", "ctranslate2"}) {
      exported(options, format);
      const ForeignModel back = find_written_format(format)->read_back(folder_.path() / "written");
      EXPECT_TRUE(back.options.common().attention.rotary_scaling == options.common().attention.rotary_scaling);
    }
  }
}

// The rotation that engines read must agree with our own note beside it.
TEST_F(ExportTest, ARotationThatContradictsItsNoteIsRefused) {
  exported(resolve(scaled_llama(kScaledYarn)), "ctranslate2");
  const fs::path written = folder_.path() / "written";
  auto config = nlohmann::json::parse(read_file(written / "config.json"));
  config["rotary_scaling"]["rotary-factor"] = 5;
  write_file(written / "config.json", config.dump());
  EXPECT_THAT(error_message([&] { find_written_format("ctranslate2")->read_back(written); }),
              HasSubstr("is not what rotary_scaling in config.json asks for"));
  for (const RotaryScaling& scaling :
       {kScaledYarn, RotaryScaling{.kind = RotaryScalingKind::kLlama3, .factor = 8, .original_context = 16}}) {
    exported(resolve(scaled_llama(scaling)), "gguf");
    std::string bytes = read_file(written / "model.gguf");
    const std::string name = "\"rotary-factor\":";
    bytes.at(bytes.find(name) + name.size()) = '2';
    write_file(written / "model.gguf", bytes);
    EXPECT_THAT(error_message([&] { find_written_format("gguf")->read_back(written); }),
                HasSubstr("of the GGUF file is not what 'headshare.rotary_scaling' asks for"));
  }
}

// A file that leaves such a rotation out computes something else. This test changes together with a writer that gains a
// place for it.
TEST_F(ExportTest, PartialRotationsAreRefused) {
  DecoderOptions partial = llama_like("gqa");
  partial.attention.rotary_dimensions = 2;
  for (const std::string format : {"hf", "gguf", "ctranslate2"}) {
    EXPECT_THAT(find_written_format(format)->why_not_write(resolve(partial), ""), HasSubstr("(--rotary-dimensions)"))
        << format;
  }
}

// Returns a decoder whose layers have windows of 3 positions before a token, or only each second layer.
DecoderOptions windowed(std::optional<int64_t> global_every = {}, int64_t global_first = 0) {
  DecoderOptions options = llama_like("gqa");
  options.layers = 3;
  options.feed_forward_bias = false;
  options.attention.window = 3;
  options.global_every = global_every;
  options.global_first = global_first;
  return options;
}

TEST_F(ExportTest, LocalWindowsBecomeMistralAndQwen) {
  const auto written = [&](const DecoderOptions& options, const std::string& form = "") {
    exported(resolve(options), "hf", form);
    const auto back = find_written_format("hf")->read_back(folder_.path() / "written");
    for (int64_t layer = 0; layer < 3; ++layer) {
      EXPECT_EQ(layer_attention(back.options.common(), layer).window, layer_attention(resolve(options), layer).window);
    }
    return type_written();
  };
  const auto config = [&](const char* key) {
    return nlohmann::json::parse(read_file(folder_.path() / "written/config.json")).at(key);
  };
  EXPECT_EQ(written(windowed()), "mistral");
  EXPECT_EQ(config("sliding_window"), 4) << "the token itself counts";
  EXPECT_EQ(written(windowed(2, 1)), "qwen2") << "Mistral has no layers without a window";
  EXPECT_EQ(config("layer_types"), nlohmann::json({"sliding_attention", "full_attention", "sliding_attention"}));
  EXPECT_EQ(written(windowed(3, 0)), "qwen2");
  EXPECT_EQ(config("max_window_layers"), 1);
  EXPECT_EQ(written(windowed(), "qwen2"), "qwen2");
  DecoderOptions normed = windowed(2);
  normed.attention.qk_norm = true;
  EXPECT_EQ(written(normed), "qwen3");
  DecoderOptions full = windowed();
  full.attention.window.reset();
  for (const std::string form : {"mistral", "qwen2"}) {
    EXPECT_EQ(written(full, form), form);
    EXPECT_TRUE(config("sliding_window").is_null());
  }
}

TEST_F(ExportTest, WindowsThatNoTypeHoldsAreRefused) {
  DecoderOptions biased = windowed();
  biased.attention.projection_bias = true;  // Qwen2's output projection has no bias, and this one is not zero
  EXPECT_THAT(error_message([&] { exported(resolve(biased), "hf"); }),
              HasSubstr("attention.scheme.output.bias is not zero"));
  DecoderOptions based = windowed();
  based.local_rotary_base = 100;
  EXPECT_THAT(refusal(resolve(based)), HasSubstr("(--local-rotary-base)"));
  EXPECT_THAT(refusal(resolve(windowed(2)), "mistral"), HasSubstr("(--global-every)"));
  EXPECT_THAT(refusal(resolve(windowed()), "llama"), HasSubstr("(--local-window)"));
}

TEST_F(ExportTest, LocalWindowsAreRefused) {
  DecoderOptions turned = windowed(), learned = small_options("mqa");
  learned.attention.window = 3;
  for (const std::string format : {"gguf", "ctranslate2"}) {
    EXPECT_THAT(find_written_format(format)->why_not_write(resolve(turned), ""), HasSubstr("(--local-window)"))
        << format;
  }
  for (const std::string format : {"hf", "gguf", "ctranslate2"}) {
    EXPECT_THAT(find_written_format(format)->why_not_write(resolve(learned), ""), HasSubstr("(--local-window)"))
        << format;
  }
  EncoderOptions encoder = small_encoder_options("mha");
  encoder.attention.window = 3;
  EXPECT_THAT(find_written_format("hf")->why_not_write(resolve(encoder), ""), HasSubstr("(--local-window)"));
}

TEST_F(ExportTest, AWrongFileIsFoundByReadingBack) {
  const DecoderOptions options = resolve(small_options("mha"));
  exported(options, "hf");
  Decoder other(options);
  initialise(*other, 7);
  EXPECT_THAT(error_message([&] {
                check_export({.options = options, .tensors = model_tensors(*other)}, plan_, folder_.path() / "written");
              }),
              HasSubstr("is allowed; nothing was kept"));
}

// No format holds layers that read each other's keys and values, and their heads are not rewritten.
TEST_F(ExportTest, LayersThatShareKeysAndValuesHaveNoPlace) {
  DecoderOptions options = small_options("mqa");
  options.share_kv_layers = 2;
  const std::string none = "keys and values that 2 layers share; train a model without --share-kv-layers for that";
  EXPECT_THAT(refusal(resolve(options)), HasSubstr("the format hf has no place for " + none));
  EXPECT_THAT(error_message([&] { exact_model_options(resolve(options), {.scheme = "mha"}); }),
              HasSubstr("`convert` does not rewrite " + none));
  const Decoder model = small_decoder(options);
  EXPECT_THAT(error_message([&] { attention_layers(*model); }),
              HasSubstr("layer 1 shares its keys and values with other layers (--share-kv-layers)"));
}

}  // namespace export_test
}  // namespace headshare
