#include <gmock/gmock.h>

#include <limits>
#include <set>

#include "headshare/base/rng.h"
#include "headshare/convert/formats.h"
#include "headshare/convert/hf/directory.h"
#include "headshare/convert/hf/testing.h"
#include "headshare/text/simple/byte_tokenizer.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace gpt2_test {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kE = FakeGpt2::kE;

class Gpt2Test : public testing::Test {
 protected:
  ForeignModel open(const FakeGpt2& fake) {
    fake.write(directory());
    return find_format("hf").open(directory());
  }
  DecoderOptions options_of(const FakeGpt2& fake) { return open(fake).options.as<DecoderOptions>(); }
  Decoder convert(const FakeGpt2& fake) { return read_model(open(fake)).as<Decoder>(); }
  // The Error for a model that `change` has spoilt.
  std::string refusal(const std::function<void(FakeGpt2&)>& change) {
    FakeGpt2 fake;
    change(fake);
    return error_message([&] { open(fake); });
  }
  std::string config_refusal(const std::string& key, const nlohmann::json& value) {
    return refusal([&](FakeGpt2& fake) { fake.config[key] = value; });
  }
  fs::path directory() const { return temporary_.path() / "gpt2"; }

 private:
  TemporaryDirectory temporary_;
};

TEST_F(Gpt2Test, ReadsTheConfiguration) {
  FakeGpt2 fake;
  fake.config["activation_function"] = "gelu";
  fake.config["layer_norm_epsilon"] = 1e-6;
  const DecoderOptions options = options_of(fake);
  EXPECT_EQ(options.vocabulary, FakeGpt2::kV);
  EXPECT_EQ(options.context, FakeGpt2::kP);
  EXPECT_EQ(options.layers, FakeGpt2::kLayers);
  EXPECT_EQ(options.attention.d_model, kE);
  EXPECT_EQ(options.attention.heads, 2);
  EXPECT_EQ(options.feed_forward_width, FakeGpt2::kF);
  EXPECT_EQ(options.activation, ActivationKind::kGeluErf);
  EXPECT_EQ(options.norm_epsilon, 1e-6);
  EXPECT_EQ(options.dropout, 0.1);
  EXPECT_EQ(options.attention.attention_dropout, 0.25);
  EXPECT_TRUE(options.attention.projection_bias);
  EXPECT_TRUE(options.tie_embeddings);
}

TEST_F(Gpt2Test, GeneralNamesStandForTheirOwn) {
  FakeGpt2 fake;
  fake.config.erase("n_layer");
  fake.config["num_hidden_layers"] = FakeGpt2::kLayers;
  EXPECT_EQ(options_of(fake).layers, FakeGpt2::kLayers);
  EXPECT_THAT(config_refusal("is_causal", false), HasSubstr("is_causal is false"));
  EXPECT_THAT(config_refusal("num_hidden_layers", 3), HasSubstr("n_layer is 2 and num_hidden_layers is 3"));
}

TEST_F(Gpt2Test, CutsAndTransposes) {
  FakeGpt2 fake;
  const Decoder model = convert(fake);
  NamedTensors ours = model_tensors(*model);
  EXPECT_EQ(distance(ours.at("token_embedding"), fake.at("wte.weight")), 0);
  EXPECT_EQ(distance(ours.at("position_embedding"), fake.at("wpe.weight")), 0);
  EXPECT_EQ(distance(ours.at("norm.bias"), fake.at("ln_f.bias")), 0);
  const std::string block = "blocks.1.";
  for (const auto& [name, index] : {std::pair("query", 0), {"key", 1}, {"value", 2}}) {
    const std::string target = block + "attention.scheme." + name;
    EXPECT_EQ(distance(ours.at(target + ".weight"), fake.at("h.1.attn.c_attn.weight").narrow(1, index * kE, kE).t()), 0)
        << name;
    EXPECT_EQ(distance(ours.at(target + ".bias"), fake.at("h.1.attn.c_attn.bias").narrow(0, index * kE, kE)), 0);
  }
  EXPECT_EQ(distance(ours.at(block + "attention.scheme.output.weight"), fake.at("h.1.attn.c_proj.weight").t()), 0);
  EXPECT_EQ(distance(ours.at(block + "feed_forward.expand.weight"), fake.at("h.1.mlp.c_fc.weight").t()), 0);
  EXPECT_EQ(distance(ours.at(block + "feed_forward.contract.bias"), fake.at("h.1.mlp.c_proj.bias")), 0);
  EXPECT_EQ(distance(ours.at(block + "attention_norm.weight"), fake.at("h.1.ln_1.weight")), 0);
  EXPECT_EQ(distance(ours.at(block + "feed_forward_norm.weight"), fake.at("h.1.ln_2.weight")), 0);
}

TEST_F(Gpt2Test, EveryTensorOfOursIsMappedOnce) {
  const ForeignModel foreign = open(FakeGpt2());
  std::set<std::string> targets;
  for (const MappedTensor& one : foreign.tensors) EXPECT_TRUE(targets.insert(one.target).second) << one.target;
  std::set<std::string> wanted;
  for (const auto& [name, tensor] : model_tensors(*Decoder(foreign.options.as<DecoderOptions>()))) {
    wanted.insert(name);
  }
  EXPECT_EQ(targets, wanted);
}

TEST_F(Gpt2Test, TheMappingSaysWhatIsDone) {
  const ForeignModel foreign = open(FakeGpt2());
  for (const MappedTensor& one : foreign.tensors) {
    if (one.target != "blocks.0.attention.scheme.key.weight") continue;
    EXPECT_EQ(one.source, "transformer.h.0.attn.c_attn.weight");
    EXPECT_EQ(one.taken, "columns 6..11, transposed");
    return;
  }
  FAIL() << "no key in the mapping";
}

TEST_F(Gpt2Test, NamesWithoutPrefixAndMasks) {
  FakeGpt2 fake;
  NamedTensors bare;
  for (const auto& [name, tensor] : fake.tensors) bare[name.substr(12)] = tensor;
  bare["h.0.attn.bias"] = at::ones({1, 1, 8, 8}).to(at::kByte);
  bare["h.1.attn.masked_bias"] = at::tensor(-1e4);
  const Decoder expected = convert(fake);
  fake.tensors = bare;
  const ForeignModel foreign = open(fake);
  EXPECT_THAT(foreign.unused, testing::ElementsAre("h.0.attn.bias", "h.1.attn.masked_bias"));
  const Decoder model = read_model(foreign).as<Decoder>();
  for (const auto& [name, tensor] : model_tensors(*model)) {
    EXPECT_EQ(distance(tensor, model_tensors(*expected).at(name)), 0) << name;
  }
}

TEST_F(Gpt2Test, TheOutputLayer) {
  FakeGpt2 fake;
  fake.tensors["lm_head.weight"] = fake.at("wte.weight").clone();
  EXPECT_THAT(open(fake).unused, testing::ElementsAre("lm_head.weight"));
  fake.tensors["lm_head.weight"][0][0] += 1;
  EXPECT_THAT(error_message([&] { open(fake); }), HasSubstr("set tie_word_embeddings to false"));
  fake.config["tie_word_embeddings"] = false;
  const Decoder model = convert(fake);
  EXPECT_EQ(distance(model_tensors(*model).at("output_embedding"), fake.tensors["lm_head.weight"]), 0);
  fake.tensors.erase("lm_head.weight");
  EXPECT_THAT(error_message([&] { open(fake); }), HasSubstr("'lm_head.weight' is missing"));
}

TEST_F(Gpt2Test, ScalesOfTheScores) {
  FakeGpt2 fake;
  fake.config["scale_attn_weights"] = false;
  EXPECT_EQ(options_of(fake).attention.scale, 1);
  fake = FakeGpt2();
  fake.config["scale_attn_by_inverse_layer_idx"] = true;
  const ForeignModel foreign = open(fake);
  EXPECT_EQ(foreign.notes.size(), 1u);
  const Decoder model = read_model(foreign).as<Decoder>();
  const Tensor query = fake.at("h.1.attn.c_attn.weight").narrow(1, 0, kE).t();
  const Tensor key = fake.at("h.1.attn.c_attn.weight").narrow(1, kE, kE).t();
  EXPECT_EQ(distance(model_tensors(*model).at("blocks.1.attention.scheme.query.weight"), query / 2), 0);
  EXPECT_EQ(distance(model_tensors(*model).at("blocks.1.attention.scheme.key.weight"), key), 0);
}

TEST_F(Gpt2Test, OtherFloatTypesBecomeFloat32) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16, at::kDouble}) {
    FakeGpt2 fake;
    for (auto& [name, tensor] : fake.tensors) tensor = tensor.to(type);
    const Decoder model = convert(fake);
    const Tensor embedding = model_tensors(*model).at("token_embedding");
    EXPECT_EQ(embedding.scalar_type(), at::kFloat);
    EXPECT_EQ(distance(embedding, fake.at("wte.weight")), 0) << c10::toString(type);
  }
  FakeGpt2 integers;
  integers.at("wte.weight") = at::ones({FakeGpt2::kV, kE}, at::kInt);
  EXPECT_THAT(error_message([&] { convert(integers); }), HasSubstr("wte.weight' has type I32"));
}

TEST_F(Gpt2Test, ConfigurationsWeCannotReproduceAreRefusedByName) {
  EXPECT_THAT(config_refusal("model_type", "lamda"),
              HasSubstr("model_type is \"lamda\"; headshare converts models of type albert, bart, bert, deit, "
                        "distilbert, gemma, gpt2"));
  EXPECT_THAT(config_refusal("model_type", nullptr), HasSubstr("model_type is null"));
  EXPECT_THAT(config_refusal("activation_function", "selu"), HasSubstr("activation_function is \"selu\""));
  EXPECT_THAT(config_refusal("activation_function", 3), HasSubstr("activation_function must be a text"));
  EXPECT_THAT(config_refusal("add_cross_attention", true), HasSubstr("add_cross_attention is true"));
  EXPECT_THAT(config_refusal("add_cross_attention", "no"), HasSubstr("must be true or false"));
  EXPECT_THAT(config_refusal("quantization_config", {{"bits", 4}}), HasSubstr("save the model without quantisation"));
  EXPECT_THAT(config_refusal("pruned_heads", {{"0", {1}}}), HasSubstr("pruned_heads is not empty"));
  EXPECT_THAT(config_refusal("n_layer", 0), HasSubstr("n_layer: layers must be 1..10000, not 0"));
  EXPECT_THAT(config_refusal("n_layer", 1e30), HasSubstr("layers must be a whole number"));
  EXPECT_THAT(config_refusal("n_layer", "two"), HasSubstr("layers must be a whole number, not 'two'"));
  EXPECT_THAT(config_refusal("n_layer", nlohmann::json::object()), HasSubstr("a value was expected"));
  EXPECT_THAT(config_refusal("n_head", 4), HasSubstr("config.json: heads must divide d-model: 6 / 4"));
  EXPECT_THAT(config_refusal("vocab_size", -5), HasSubstr("vocabulary must be"));
  EXPECT_THAT(config_refusal("layer_norm_epsilon", -1), HasSubstr("norm-epsilon must be 0..1"));
  EXPECT_THAT(config_refusal("tie_word_embeddings", 1), HasSubstr("tie_word_embeddings must be true or false"));
}

TEST_F(Gpt2Test, WrongSizesAreFoundBeforeAnythingIsAllocated) {
  EXPECT_THAT(config_refusal("vocab_size", 1 << 30),
              HasSubstr("has shape [11, 6], the configuration asks for [1073741"));
  EXPECT_THAT(config_refusal("n_positions", 9),
              HasSubstr("wpe.weight' has shape [8, 6], the configuration asks for [9"));
  EXPECT_THAT(config_refusal("n_inner", 25), HasSubstr("mlp.c_fc.weight' has shape [6, 24]"));
  EXPECT_THAT(
      config_refusal("n_layer", 3),
      HasSubstr("tensor 'h.2.ln_1.weight' is missing (and 11 others), which the GPT-2 that config.json describes has; "
                "config.json and the weights must be of one model"));
  EXPECT_THAT(config_refusal("n_layer", 1), HasSubstr("12 tensors are not part of the GPT-2 that config.json"));
}

TEST_F(Gpt2Test, TensorsThatDoNotFitAreNamed) {
  EXPECT_THAT(refusal([](FakeGpt2& fake) { fake.tensors.erase("transformer.ln_f.bias"); }),
              HasSubstr("tensor 'ln_f.bias' is missing"));
  EXPECT_THAT(refusal([](FakeGpt2& fake) {
                fake.tensors["score.weight"] = at::ones({2, kE});
              }),
              HasSubstr("the first is 'score.weight'"));
  EXPECT_THAT(refusal([](FakeGpt2& fake) {
                fake.tensors["wte.weight"] = at::ones({11, kE});
              }),
              HasSubstr("'wte.weight' stands twice"));
  EXPECT_THAT(refusal([](FakeGpt2& fake) {
                fake.at("h.0.attn.c_attn.weight") = at::ones({3 * kE, kE});
              }),
              HasSubstr("'transformer.h.0.attn.c_attn.weight' has shape [18, 6], the configuration asks for [6, 18]"));
}

TEST_F(Gpt2Test, TiedWeightsMayHaveEitherName) {
  FakeGpt2 fake;
  const Tensor table = fake.at("wte.weight");
  fake.tensors["lm_head.weight"] = table.clone();
  fake.tensors.erase("transformer.wte.weight");
  const ForeignModel foreign = open(fake);
  EXPECT_EQ(distance(model_tensors(*read_model(foreign).module).at("token_embedding"), table), 0);
  EXPECT_THAT(foreign.unused, testing::IsEmpty());
  fake.tensors.erase("lm_head.weight");
  EXPECT_THAT(
      error_message([&] { open(fake); }),
      HasSubstr("tensor 'wte.weight' is missing, which the GPT-2 that config.json describes has; nor is there a "
                "copy of it, lm_head.weight"));
  fake.config["tie_word_embeddings"] = false;
  fake.tensors["lm_head.weight"] = table.clone();
  EXPECT_THAT(error_message([&] { open(fake); }),
              HasSubstr("lm_head.weight is there, and config.json says that it is"));
}

// Only tensors that GPT-2 has not can be meant by a missing name.
TEST_F(Gpt2Test, TheMessageOfAMissingTensorNamesItsCause) {
  const auto renamed = [](const std::function<std::string(const std::string&)>& name_of) {
    FakeGpt2 fake;
    NamedTensors tensors;
    for (const auto& [name, tensor] : fake.tensors) tensors[name_of(name)] = tensor;
    fake.tensors = tensors;
    return fake;
  };
  EXPECT_THAT(
      error_message([&] {
        open(renamed([](const std::string& name) { return name == "transformer.wte.weight" ? "wtx.weight" : name; }));
      }),
      AllOf(HasSubstr("tensor 'wte.weight' is missing,"), HasSubstr("lm_head.weight; instead there is 'wtx.weight'"),
            testing::Not(HasSubstr("wpe"))));
  EXPECT_THAT(error_message([&] { open(renamed([](const std::string& name) { return "module." + name; })); }),
              AllOf(HasSubstr("is missing (and 27 others)"), HasSubstr("it stands there as 'module.transformer.w"),
                    HasSubstr("save the model without the prefix 'module.transformer.'")));
  EXPECT_THAT(
      error_message([&] {
        open(renamed([](const std::string& name) { return name == "transformer.ln_f.bias" ? "quux" : name; }));
      }),
      HasSubstr("tensor 'ln_f.bias' is missing, which the GPT-2 that config.json describes has; 1 tensor is there "
                "that it has not, the first is 'quux'"));
  FakeGpt2 untied;
  untied.config["tie_word_embeddings"] = false;
  EXPECT_THAT(
      error_message([&] { open(untied); }),
      HasSubstr("'lm_head.weight' is missing, which the GPT-2 that config.json describes has; config.json says that "
                "it is not the embedding: if it is, set tie_word_embeddings to true there"));
}

TEST_F(Gpt2Test, NotAModel) {
  EXPECT_THAT(error_message([] { find_format("fh"); }), HasSubstr("unknown format 'fh'"));
  EXPECT_THAT(error_message([&] { find_format("hf").open(directory()); }), HasSubstr("is not a directory"));
  make_directories(directory());
  EXPECT_THAT(error_message([&] { find_format("hf").open(directory()); }), HasSubstr("has no config.json"));
  write_file(directory() / "config.json", R"({"model_type": "gpt2"})");
  write_file(directory() / "pytorch_model.bin", "PK");
  EXPECT_THAT(error_message([&] { find_format("hf").open(directory()); }), HasSubstr("save_pretrained"));
  write_file(directory() / "config.json", "[]");
  EXPECT_THAT(error_message([&] { find_format("hf").open(directory()); }), HasSubstr("must be a JSON object"));
}

TEST_F(Gpt2Test, Tokenizers) {
  const ForeignModel without = open(FakeGpt2());
  EXPECT_FALSE(without.tokenizers);
  EXPECT_THAT(without.without_tokenizer, HasSubstr("has no tokenizer (no tokenizer.json, no vocab.txt, no vocab.json"));
  const auto found = [&] { return tokenizer_in(directory()); };
  EXPECT_EQ(found(), fs::path());
  write_file(directory() / "vocab.json", "{}");
  EXPECT_EQ(found(), fs::path());
  write_file(directory() / "merges.txt", "");
  EXPECT_EQ(found(), directory());
  write_file(directory() / "tokenizer.json", "{}");
  EXPECT_EQ(found(), directory() / "tokenizer.json");
  const ForeignModel with = open(FakeGpt2());
  EXPECT_EQ(with.without_tokenizer, "");
  EXPECT_THAT(error_message([&] { with.tokenizers(); }), HasSubstr("tokenizer.json")) << "it is read when it is wanted";
  fs::remove(directory() / "tokenizer.json");
  fs::create_symlink("nowhere", directory() / "tokenizer.json");
  EXPECT_THAT(error_message([&] { found(); }), HasSubstr("is a link that leads to no file"));
  fs::remove(directory() / "tokenizer.json");
  make_directories(directory() / "tokenizer.json");
  EXPECT_THAT(error_message([&] { found(); }), HasSubstr("tokenizer.json is no file"));
}

TEST_F(Gpt2Test, ThePairOfFilesIsFoundUnderItsFirstNamesToo) {
  EXPECT_FALSE(open(FakeGpt2()).tokenizers);
  write_file(directory() / "encoder.json", "{}");
  EXPECT_FALSE(open(FakeGpt2()).tokenizers);
  write_file(directory() / "vocab.bpe", "");
  EXPECT_TRUE(open(FakeGpt2()).tokenizers);
}

TEST_F(Gpt2Test, ATokenizerThatIsNoneOfTheModelIsRefused) {
  FakeGpt2 fake;
  fake.write(directory());
  save_tokenizer(ByteTokenizer(), directory() / "tokenizer.json");
  EXPECT_THAT(error_message([&] { open(fake).tokenizers(); }), HasSubstr("has 256 tokens, the model only 11"));
}

class ShardsTest : public Gpt2Test {
 protected:
  // Two shards, and the index as `change` leaves it.
  std::string opened(const std::function<void(nlohmann::json&)>& change) {
    const FakeGpt2 fake;
    fake.write(directory());
    fs::remove(directory() / "model.safetensors");
    NamedTensors halves[2];
    nlohmann::json map;
    for (const auto& [name, tensor] : fake.tensors) {
      const size_t half = map.size() % 2;
      halves[half][name] = tensor;
      map[name] = join_text("model-", half, ".safetensors");
    }
    for (const size_t half : {0, 1}) {
      write_tensors(directory() / join_text("model-", half, ".safetensors"), halves[half]);
    }
    change(map);
    write_file(directory() / "model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
    return error_message([&] { model_ = read_model(find_format("hf").open(directory())).as<Decoder>(); });
  }

  Decoder model_{nullptr};
};

TEST_F(ShardsTest, AreReadTogether) {
  EXPECT_EQ(opened([](nlohmann::json&) {}), "no error");
  FakeGpt2 fake;
  EXPECT_EQ(distance(model_tensors(*model_).at("norm.weight"), fake.at("ln_f.weight")), 0);
  EXPECT_EQ(distance(model_tensors(*model_).at("norm.bias"), fake.at("ln_f.bias")), 0);
}

TEST_F(ShardsTest, AnIndexThatDisagreesWithItsFiles) {
  EXPECT_THAT(opened([](nlohmann::json& map) { map["transformer.more"] = "model-0.safetensors"; }),
              HasSubstr("tensor 'transformer.more' is not in model-0.safetensors"));
  EXPECT_THAT(opened([](nlohmann::json& map) { map.erase("transformer.ln_f.bias"); }),
              HasSubstr("'transformer.ln_f.bias', which the index does not place there"));
  EXPECT_THAT(opened([](nlohmann::json& map) { map["transformer.ln_f.bias"] = "../model-0.safetensors"; }),
              HasSubstr("plain file name"));
  EXPECT_THAT(opened([](nlohmann::json& map) { map["transformer.ln_f.bias"] = "model-2.safetensors"; }),
              HasSubstr("model-2.safetensors"));
}

// Whatever the configuration holds, the result is a model or an Error.
TEST_F(Gpt2Test, EveryKeyWithValuesOfEveryType) {
  const std::vector<nlohmann::json> values = {nullptr,    true,
                                              -1,         0,
                                              0.5,        1e308,
                                              UINT64_MAX, std::numeric_limits<int64_t>::min(),
                                              "",         "gelu",
                                              "auto",     "-",
                                              {1, 2},     nlohmann::json::array(),
                                              {{"a", 1}}};
  FakeGpt2 all;
  for (const char* key : {"activation_function", "tie_word_embeddings", "scale_attn_weights", "add_cross_attention",
                          "scale_attn_by_inverse_layer_idx", "quantization_config", "pruned_heads", "hidden_size",
                          "num_attention_heads", "layer_norm_epsilon", "initializer_range"}) {
    all.config[key] = nullptr;
  }
  FakeGpt2().write(directory());
  int refused = 0;
  for (const auto& [key, ignored] : all.config.items()) {
    for (const nlohmann::json& value : values) {
      nlohmann::json config = FakeGpt2().config;
      config[key] = value;
      write_file(directory() / "config.json", config.dump());
      try {
        read_model(find_format("hf").open(directory()));
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(directory().string())) << key << " = " << value;
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 150);
}

TEST_F(Gpt2Test, DamagedConfigurations) {
  FakeGpt2 fake;
  fake.write(directory());
  const std::string whole = fake.config.dump();
  Philox random(stream_key(1, "damage"));
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string text = whole;
    for (uint64_t i = 0; i <= random.below(3); ++i) {
      constexpr std::string_view kLetters = "0123456789-.e\"{}[]:,tnu \xff";
      text[random.below(text.size())] = kLetters[random.below(kLetters.size())];
    }
    write_file(directory() / "config.json", text);
    try {
      read_model(find_format("hf").open(directory()));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 150);
}

}  // namespace gpt2_test
}  // namespace headshare
