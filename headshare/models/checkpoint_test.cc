#include "headshare/models/checkpoint.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/attention/schemes/gqa.h"
#include "headshare/attention/schemes/mla.h"
#include "headshare/base/testing.h"
#include "headshare/models/blocks/feed_forward.h"
#include "headshare/models/testing.h"
#include "headshare/ops/testing.h"
#include "headshare/text/simple/byte_tokenizer.h"

namespace headshare {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  // Saves a small model over bytes.
  CheckpointTest() {
    DecoderOptions options = small_options("mhe_mul");
    options.vocabulary = 256;
    options.layers = 1;
    model_ = small_decoder(options);
    save_model(path(), model_, &bytes_);
  }

  std::string load_error() const {
    return error_message([&] { load_model(path()); });
  }
  json config() const { return json::parse(read_file(path() / "config.json")); }
  void write_config(const json& config) const { write_file(path() / "config.json", config.dump()); }
  // Returns the Error when one option of the model's configuration has this value.
  std::string with_option(const std::string& name, const json& value) const {
    json changed = config();
    changed["model"][name] = value;
    write_config(changed);
    const std::string message = load_error();
    changed["model"] = original_["model"];
    write_config(changed);
    return message;
  }
  fs::path path() const { return temporary_.path() / "model"; }
  fs::path weights() const { return path() / "model.safetensors"; }

  TemporaryDirectory temporary_;
  ByteTokenizer bytes_;
  Decoder model_{nullptr};
  json original_;

  void SetUp() override { original_ = config(); }
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         std::memcmp(a.contiguous().const_data_ptr(), b.contiguous().const_data_ptr(), a.nbytes()) == 0;
}

TEST_F(CheckpointTest, EverySchemeComesBackBitForBit) {
  int round = 0;
  for (const std::string& scheme : scheme_names()) {
    for (const PositionKind positions : {PositionKind::kSinusoidal, PositionKind::kRotary}) {
      if (!supports(scheme, positions)) continue;
      DecoderOptions options = small_options(scheme, positions);
      options.vocabulary = 256;
      options.norm_epsilon = 1.0 / 3;
      options.tie_embeddings = round++ % 2 == 0;
      options.attention.content_bias = true;
      options.attention.scale = 0.1;
      const Decoder model = small_decoder(options);
      const fs::path directory = temporary_.path() / join_text("round-", round);
      save_model(directory, model, &bytes_);
      const LoadedModel loaded = load_model(directory);
      DecoderOptions before = model->options();
      DecoderOptions after = loaded.model->options();
      EXPECT_EQ(to_json(stored_fields(after)), to_json(stored_fields(before))) << scheme;
      EXPECT_FALSE(loaded.model->is_training());
      const NamedTensors there = model_tensors(*loaded.model);
      ASSERT_EQ(there.size(), model_tensors(*model).size());
      for (const auto& [tensor_name, tensor] : model_tensors(*model)) {
        EXPECT_TRUE(same_bits(there.at(tensor_name), tensor)) << scheme << ": " << tensor_name;
      }
      const at::NoGradGuard no_grad;
      const Tensor ids = random_ids(2, 7, 256);
      EXPECT_TRUE(same_bits(loaded.model->hidden(ids), model->hidden(ids))) << scheme;
    }
  }
}

TEST_F(CheckpointTest, EncodersComeBackBitForBit) {
  int round = 0;
  for (const std::string& scheme : scheme_names()) {
    EncoderOptions options = small_encoder_options(scheme);
    options.vocabulary = 256;
    options.norms = round % 2 == 0 ? NormPlacement::kBefore : NormPlacement::kAfter;
    options.segments = round % 3;
    options.pooler = ++round % 2 == 0;
    const Encoder model = small_encoder(options);
    const fs::path directory = temporary_.path() / join_text("encoder-", round);
    save_model(directory, model, &bytes_);
    const LoadedEncoder loaded = load_encoder_model(directory);
    EncoderOptions before = model->options();
    EncoderOptions after = loaded.model->options();
    EXPECT_EQ(to_json(stored_fields(after)), to_json(stored_fields(before))) << scheme;
    const at::NoGradGuard no_grad;
    const Tensor ids = random_ids(2, 7, 256);
    EXPECT_TRUE(
        same_bits(loaded.model->logits(loaded.model->hidden({.ids = ids})), model->logits(model->hidden({.ids = ids}))))
        << scheme;
  }
}

TEST_F(CheckpointTest, OtherPartsComeBackAndAskForANewerProgram) {
  EXPECT_FALSE(original_["model"].contains("norm")) << "older programs know no such option";
  DecoderOptions options = small_options("mhe_mul", PositionKind::kRotary);
  options.vocabulary = 256;
  options.norm = NormKind::kRms;
  options.feed_forward = FeedForwardKind::kGeglu;
  options.attention.qk_norm = true;
  const Decoder model = small_decoder(options);
  save_model(path(), model, &bytes_);
  EXPECT_EQ(config()["format_version"], 4);
  const LoadedModel loaded = load_model(path());
  const at::NoGradGuard no_grad;
  const Tensor ids = random_ids(2, 7, 256);
  EXPECT_TRUE(same_bits(loaded.model->hidden(ids), model->hidden(ids)));
}

TEST_F(CheckpointTest, SiluComesBackAndAsksForANewerProgram) {
  DecoderOptions options = small_options("mha");
  options.vocabulary = 256;
  options.activation = ActivationKind::kSilu;
  const Decoder model = small_decoder(options);
  save_model(path(), model, &bytes_);
  EXPECT_EQ(config()["format_version"], 9);
  EXPECT_EQ(load_model(path()).model->options().activation, ActivationKind::kSilu);
  const Tensor x = at::linspace(-3, 3, 7);
  EXPECT_LT(distance(activate(ActivationKind::kSilu, x), x / (1 + (-x).exp())), 1e-6);
}

TEST_F(CheckpointTest, HeadCountsOfGqaComeBackAndAskForANewerProgram) {
  DecoderOptions options = small_options("gqa");
  options.vocabulary = 256;
  save_model(path(), small_decoder(options), &bytes_);
  EXPECT_EQ(config()["format_version"], 1) << "older programs read gqa";
  fs::remove_all(path());
  options.attention.own.get<GqaOptions>().query_heads = 1;
  const Decoder model = small_decoder(options);
  save_model(path(), model, &bytes_);
  EXPECT_EQ(config()["format_version"], 10);
  const at::NoGradGuard no_grad;
  const Tensor ids = random_ids(2, 7, 256);
  EXPECT_TRUE(same_bits(load_model(path()).model->hidden(ids), model->hidden(ids)));
}

TEST_F(CheckpointTest, SchemesOfLaterYearsComeBackAndAskForANewerProgram) {
  for (const auto& [scheme, option, value, version] :
       std::vector<std::tuple<std::string, std::string, std::string, int>>{{"lrkv", "kv-rank", "2", 14},
                                                                           {"lrkv", "kv-residual-start", "0.25", 17},
                                                                           {"shared_query", "query-map", "complex", 14},
                                                                           {"mla", "rotary-head-width", "4", 14},
                                                                           {"mla", "kv-latents", "2", 15},
                                                                           {"mla", "kv-latent-norm", "false", 15},
                                                                           {"mla", "layer-kv-latent-widths", "3,7", 15},
                                                                           {"gqa", "key-offset", "true", 15},
                                                                           {"skv", "shared-qk", "true", 1},
                                                                           {"skv", "kv-heads", "2", 15},
                                                                           {"skv", "skv-rotary", "counter", 15},
                                                                           {"skv", "skv-rotary", "split", 15},
                                                                           {"gqa", "kv-shift", "true", 15}}) {
    SCOPED_TRACE(join_text(scheme, " ", option));
    fs::remove_all(path());
    DecoderOptions options = small_options(scheme, PositionKind::kRotary);
    options.vocabulary = 256;
    Fields list = fields(options.attention);
    set_field(list, option, value, "test");
    if (option == "key-offset") options.attention.rotary_dimensions = 2;  // as old as version 12
    const Decoder model = small_decoder(options);
    save_model(path(), model, &bytes_);
    EXPECT_EQ(config()["format_version"], version);
    EXPECT_EQ(config()["model"][option].dump(), to_json(list).at(option).dump());
    const at::NoGradGuard no_grad;
    const Tensor ids = random_ids(2, 7, 256);
    EXPECT_TRUE(same_bits(load_model(path()).model->hidden(ids), model->hidden(ids)));
  }
}

TEST_F(CheckpointTest, LatentVectorsOfConvertedModelsComeBack) {
  DecoderOptions options = small_options("mla");
  options.vocabulary = 256;
  MlaOptions& mla = options.attention.own.get<MlaOptions>();
  mla.kv_norm = false;
  mla.layer_kv_latents = {3, 7};
  const Decoder model = small_decoder(options);
  save_model(path(), model, &bytes_);
  EXPECT_EQ(config()["format_version"], 15);
  const Decoder back = load_model(path()).model;
  EXPECT_EQ(back->options().attention.own.get<MlaOptions>().layer_kv_latents, mla.layer_kv_latents);
  const at::NoGradGuard no_grad;
  const Tensor ids = random_ids(2, 7, 256);
  EXPECT_TRUE(same_bits(back->hidden(ids), model->hidden(ids)));
}

TEST_F(CheckpointTest, GatesAndSinksComeBackAndAskForANewerProgram) {
  for (const bool gated : {true, false}) {
    fs::remove_all(path());
    DecoderOptions options = small_options("mhe_add");
    options.vocabulary = 256;
    options.attention.sinks = !gated;
    if (gated) options.attention.gate = OutputGate::kElement;
    const Decoder model = small_decoder(options);
    save_model(path(), model, &bytes_);
    EXPECT_EQ(config()["format_version"], 11);
    const at::NoGradGuard no_grad;
    const Tensor ids = random_ids(2, 7, 256);
    EXPECT_TRUE(same_bits(load_model(path()).model->hidden(ids), model->hidden(ids)));
  }
}

TEST_F(CheckpointTest, ScaledAndPartialRotationsComeBackAndAskForANewerProgram) {
  for (const bool scaled : {true, false}) {
    fs::remove_all(path());
    DecoderOptions options = small_options("mhe_add", PositionKind::kRotary);
    options.vocabulary = 256;
    save_model(path(), small_decoder(options), &bytes_);
    EXPECT_EQ(config()["format_version"], 1) << "older programs read plain rotations";
    fs::remove_all(path());
    AttentionOptions& attention = options.attention;
    if (scaled) attention.rotary_scaling = {.kind = RotaryScalingKind::kYarn, .factor = 4, .original_context = 32};
    if (!scaled) attention.rotary_dimensions = 2;
    const Decoder model = small_decoder(options);
    save_model(path(), model, &bytes_);
    EXPECT_EQ(config()["format_version"], 12);
    const at::NoGradGuard no_grad;
    const Tensor ids = random_ids(2, 7, 256);
    EXPECT_TRUE(same_bits(load_model(path()).model->hidden(ids), model->hidden(ids)));
  }
}

TEST_F(CheckpointTest, WhatModernBertHasComesBackAndAsksForANewerProgram) {
  const std::vector<std::function<void(EncoderOptions&)>> changes = {
      [](EncoderOptions& o) { o.attention.window = 2; },
      [](EncoderOptions& o) {
        o.attention.window = 1, o.global_every = 2, o.global_first = 1, o.local_rotary_base = 9;
      },
      [](EncoderOptions& o) { o.feed_forward = FeedForwardKind::kGegluErf; },
      [](EncoderOptions& o) { o.norms = NormPlacement::kBeforeExceptFirst; }};
  for (const auto& change : changes) {
    fs::remove_all(path());
    EncoderOptions options = small_encoder_options("mhe_add", PositionKind::kRotary);
    options.vocabulary = 256;
    change(options);
    const Encoder model = small_encoder(options);
    save_model(path(), model, &bytes_);
    EXPECT_EQ(config()["format_version"], 12);
    const at::NoGradGuard no_grad;
    const Tensor ids = random_ids(2, 7, 256);
    EXPECT_TRUE(same_bits(load_encoder_model(path()).model->hidden({.ids = ids}), model->hidden({.ids = ids})));
  }
}

TEST_F(CheckpointTest, HeadsOfTasksComeBack) {
  EncoderOptions options = small_encoder_options("mhe_add");
  options.vocabulary = 256;
  options.task_head = {.kind = TaskHeadKind::kText, .outputs = 2, .labels = {"yes, \"sure\"", "no"}};
  const Encoder model = small_encoder(options);
  save_model(path(), model, &bytes_);
  EXPECT_EQ(config()["format_version"], 3);
  const LoadedEncoder loaded = load_encoder_model(path());
  EXPECT_EQ(loaded.model->options().task_head.labels, options.task_head.labels);
  const at::NoGradGuard no_grad;
  const EncoderInput input{.ids = random_ids(2, 7, 256)};
  EXPECT_TRUE(same_bits(loaded.model->text_scores(input), model->text_scores(input)));
  const json whole = config();
  for (const auto& [damage, message] : std::vector<std::pair<json, std::string>>{
           {json::object(), "no list of labels"},
           {{{"labels", {1, 2}}, {"kind", "text"}, {"outputs", 2}}, "a label is 1"},
           {{{"labels", {"a"}}, {"kind", "text"}, {"outputs", 2}}, "2 outputs has 1 labels"},
           {{{"labels", json::array()}, {"kind", "texts"}, {"outputs", 2}}, "texts"},
           {{{"labels", json::array()}, {"kind", "text"}, {"outputs", 3}}, "task_head.output.bias' has shape [2]"}}) {
    json changed = whole;
    changed["task_head"] = damage;
    write_config(changed);
    EXPECT_THAT(error_message([&] { load_encoder_model(path()); }), HasSubstr(message)) << damage;
  }
}

TEST_F(CheckpointTest, AnEncoderBeginsWhereAnotherEnded) {
  EncoderOptions options = small_encoder_options("mqa");
  options.pooler = false;
  const NamedTensors trained = model_tensors(*small_encoder(options, /*seed=*/1));
  options.masked_head = false;
  options.pooler = true;
  options.task_head = {.kind = TaskHeadKind::kText, .outputs = 2};
  Encoder model = small_encoder(options, /*seed=*/2);
  const Tensor fresh = model_tensors(*model).at("pooler.weight").detach().clone();
  load_shared_tensors(*model, trained, {"pooler", "task_head"}, "a model");
  EXPECT_TRUE(at::equal(model_tensors(*model).at("token_embedding"), trained.at("token_embedding")));
  EXPECT_TRUE(at::equal(model_tensors(*model).at("pooler.weight"), fresh));
  EXPECT_THAT(error_message([&] { load_shared_tensors(*model, trained, {"task_head"}, "a model"); }),
              HasSubstr("a model: tensor 'pooler.bias' is missing"));
  NamedTensors wider = trained;
  wider["token_embedding"] = at::zeros({3, 5});
  EXPECT_THAT(error_message([&] {
                load_shared_tensors(*model, wider, {"pooler", "task_head"}, "a model");
              }),
              HasSubstr("a model: tensor 'token_embedding' has shape [3, 5], the configuration asks for ["));
}

TEST_F(CheckpointTest, TheOtherKindOfModelIsRefused) {
  EXPECT_THAT(error_message([&] { load_encoder_model(path()); }),
              HasSubstr(path().string() + " is a decoder language model"));
  EncoderOptions options = small_encoder_options("mha");
  options.vocabulary = 256;
  save_model(path(), small_encoder(options), &bytes_);
  EXPECT_THAT(load_error(), HasSubstr(path().string() + " is an encoder"));
  EXPECT_THAT(error_message([&] { load_decoder(path()); }), HasSubstr("a decoder language model is needed here"));
  EXPECT_EQ(config()["format_version"], 2);
  EXPECT_EQ(original_["format_version"], 1) << "older programs read decoders";
  json changed = config();
  changed["kind"] = "translator";
  write_config(changed);
  EXPECT_THAT(load_error(), HasSubstr("the kind of model is \"translator\""));
}

TEST_F(CheckpointTest, TensorsOfEveryTypeComeBackBitForBit) {
  NamedTensors tensors;
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                                    at::kChar, at::kByte, at::kBool}) {
    tensors[c10::toString(type)] = random_tensor({3, 5}, 1, at::kDouble, 20).to(type);
  }
  tensors["nan"] = at::full({2}, std::numeric_limits<double>::quiet_NaN());
  tensors["scalar"] = at::scalar_tensor(2.5);
  tensors["empty"] = at::empty({0, 4});
  tensors["transposed"] = at::arange(6, at::kFloat).view({2, 3}).t();
  write_tensors(weights(), tensors);
  const NamedTensors read = read_tensors(weights());
  ASSERT_EQ(read.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(same_bits(read.at(name), tensor)) << name;
}

TEST_F(CheckpointTest, WhereItIsLookedFor) {
  EXPECT_EQ(load_model(path()).directory, path());
  const fs::path run = temporary_.path() / "run";
  EXPECT_THAT(error_message([&] { load_model(run); }), HasSubstr("it does not exist"));
  make_directories(run / "checkpoints");
  EXPECT_THAT(error_message([&] { load_model(run); }), HasSubstr("neither config.json nor checkpoints/best"));
  save_model(run / "checkpoints" / "last", model_, &bytes_);
  EXPECT_EQ(load_model(run).directory, run / "checkpoints" / "last");
  save_model(run / "checkpoints" / "best", model_, &bytes_);
  EXPECT_EQ(load_model(run).directory, run / "checkpoints" / "best");
  EXPECT_THAT(error_message([&] { load_model(weights()); }), HasSubstr("is a file; a model is a directory"));
}

TEST_F(CheckpointTest, Tokenizers) {
  fs::remove(path() / "tokenizer.json");
  EXPECT_THAT(load_error(), HasSubstr("has no tokenizer.json"));
  EXPECT_EQ(load_decoder(path())->options().vocabulary, 256);
  DecoderOptions fewer = small_options("mha");
  fewer.vocabulary = 255;
  const Decoder small = small_decoder(fewer);
  EXPECT_THAT(error_message([&] { save_model(path(), small, &bytes_); }),
              HasSubstr("has 256 tokens, the model only 255"));
  save_model(path(), small, nullptr);
  write_file(path() / "tokenizer.json", bytes_.to_json().dump());
  EXPECT_THAT(load_error(), HasSubstr("tokenizer.json has 256 tokens, the model only 255"));
}

TEST_F(CheckpointTest, AHashThatIsNoTextIsRefused) {
  json changed = config();
  for (const json& wrong : {json(5), json(), json::array()}) {
    changed["tokenizer_hash"] = wrong;
    write_config(changed);
    EXPECT_THAT(load_error(), HasSubstr("config.json: tokenizer_hash must be a text, not " + wrong.dump()));
  }
  changed.erase("tokenizer_hash");
  write_config(changed);
  EXPECT_EQ(load_error(), "no error");
}

TEST_F(CheckpointTest, TensorsThatDoNotFitAreNamed) {
  const auto change = [&](const std::function<void(NamedTensors&)>& spoil) {
    NamedTensors tensors = model_tensors(*model_);
    spoil(tensors);
    write_tensors(weights(), tensors);
    return load_error();
  };
  EXPECT_EQ(change([](NamedTensors&) {}), "no error");
  EXPECT_THAT(change([](NamedTensors& t) { t.erase("norm.bias"); }),
              HasSubstr("model.safetensors: tensor 'norm.bias' is missing"));
  EXPECT_THAT(change([](NamedTensors& t) { t["norm.bia"] = at::ones({1}); }),
              HasSubstr("tensor 'norm.bia' is not part of the model (did you mean 'norm.bias'?)"));
  EXPECT_THAT(change([](NamedTensors& t) {
                t["norm.bias"] = at::ones({2, 8});
              }),
              HasSubstr("tensor 'norm.bias' has shape [2, 8], the configuration asks for [16]"));
  EXPECT_THAT(change([](NamedTensors& t) { t["norm.bias"] = at::ones({16}, at::kLong); }),
              HasSubstr("tensor 'norm.bias' has type Long, wanted are floating-point numbers"));
}

// Answers of a model with such weights mean nothing, whichever verb asks it.
TEST_F(CheckpointTest, WeightsThatAreNotFiniteAreRefused) {
  const NamedTensors whole = read_tensors(weights());
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    NamedTensors tensors = whole;
    tensors["norm.weight"] = whole.at("norm.weight").clone();
    tensors["norm.weight"][1] = value;
    write_tensors(weights(), tensors);
    EXPECT_THAT(load_error(), testing::AllOf(HasSubstr(weights().string()), HasSubstr("'norm.weight' has 1 values of"),
                                             HasSubstr("not finite")));
  }
  write_tensors(weights(), whole);
  EXPECT_EQ(load_error(), "no error");
}

TEST_F(CheckpointTest, Versions) {
  json changed = original_;
  changed["format_version"] = kModelFormatVersion + 1;
  write_config(changed);
  EXPECT_THAT(load_error(),
              HasSubstr(join_text("format version ", kModelFormatVersion + 1, "; this headshare reads up to ",
                                  kModelFormatVersion, ": use a newer one")));
  for (const json& version : {json("1"), json(1.0), json(0), json(-1), json(nullptr), json(UINT64_MAX)}) {
    changed["format_version"] = version;
    write_config(changed);
    EXPECT_THAT(load_error(), testing::AnyOf(HasSubstr("no valid format_version"), HasSubstr("use a newer one")))
        << version;
  }
  changed = original_;
  changed["format"] = "hf";
  write_config(changed);
  EXPECT_THAT(load_error(), HasSubstr("is not a headshare model; convert a Hugging Face model with"));
  changed = original_;
  changed.erase("model");
  write_config(changed);
  EXPECT_THAT(load_error(), HasSubstr("has no \"model\" part"));
  write_file(path() / "config.json", "{\"format\":");
  EXPECT_THAT(load_error(), HasSubstr("is not JSON: it is damaged"));
}

TEST_F(CheckpointTest, OptionsThatCannotBe) {
  EXPECT_EQ(with_option("dropout", 0.25), "no error");
  EXPECT_THAT(with_option("layer", 2), HasSubstr("unknown option 'layer' (did you mean 'layers'?)"));
  EXPECT_THAT(with_option("layers", 2), HasSubstr("tensor 'blocks.1."));
  EXPECT_THAT(with_option("layers", -1), HasSubstr("layers must be 1..10000"));
  EXPECT_THAT(with_option("layers", json::array({1, 2})), HasSubstr("layers must be a whole number"));
  EXPECT_THAT(with_option("layers", json::object()), HasSubstr("a value was expected"));
  EXPECT_THAT(with_option("heads", 5), HasSubstr("config.json: groups must divide heads: 5 heads, 2 groups"));
  EXPECT_THAT(with_option("norm-epsilon", "nan"), HasSubstr("norm-epsilon must be finite"));
  EXPECT_THAT(with_option("scheme", "mhe_mull"), HasSubstr("did you mean 'mhe_mul'?"));
}

TEST_F(CheckpointTest, SizesThatDoNotFitAreRefusedBeforeTheyAreAllocated) {
  EXPECT_THAT(with_option("vocabulary", 1 << 30), HasSubstr("needs about 128.0 GiB"));
  json changed = original_;
  changed["model"]["positions"] = "sinusoidal";
  changed["model"]["context"] = 1 << 24;
  changed["model"]["d-model"] = 1 << 14;
  write_config(changed);
  EXPECT_THAT(load_error(), HasSubstr("needs about 2.0 TiB"));
}

// Whatever the files hold, loading gives a model or an Error.
TEST_F(CheckpointTest, DamagedFiles) {
  Philox random(stream_key(1, "damage"));
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    const std::string whole = read_file(path() / name);
    const size_t reach = std::min<size_t>(whole.size(), 1500);  // the header of the weights
    int refused = 0;
    for (int round = 0; round < 200; ++round) {
      std::string text = whole;
      if (round % 4 == 0) {
        text.resize(random.below(text.size()));
      } else {
        constexpr std::string_view kLetters = "0123456789-.e\"{}[]:,tnu \xff";
        for (uint64_t i = 0; i <= random.below(3); ++i) {
          text[random.below(reach)] = kLetters[random.below(kLetters.size())];
        }
      }
      write_file(path() / name, text);
      const std::string message = load_error();
      refused += message == "no error" ? 0 : 1;
    }
    EXPECT_GT(refused, 100) << name;
    write_file(path() / name, whole);
    EXPECT_EQ(load_error(), "no error");
  }
}

}  // namespace
}  // namespace headshare
