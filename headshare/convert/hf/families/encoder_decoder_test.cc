#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <set>

#include "headshare/convert/formats.h"
#include "headshare/convert/hf/testing.h"

namespace headshare {
namespace encoder_decoder_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kE = FakeTranslator::kE, kV = FakeTranslator::kV, kP = FakeTranslator::kP;
constexpr const char* kSourceRows = "model.encoder.embed_tokens.weight";
constexpr const char* kTargetRows = "model.decoder.embed_tokens.weight";

class TranslatorTest : public testing::Test {
 protected:
  ForeignModel open(const FakeTranslator& fake) {
    fake.write(directory());
    return find_format("hf").open(directory());
  }
  EncoderDecoderOptions options_of(const FakeTranslator& fake) {
    return open(fake).options.as<EncoderDecoderOptions>();
  }
  NamedTensors convert(const FakeTranslator& fake) { return model_tensors(*read_model(open(fake)).module); }
  // The Error for a model that `change` has spoilt.
  std::string refusal(const std::string& type, const std::function<void(FakeTranslator&)>& change) {
    FakeTranslator fake(type);
    change(fake);
    return error_message([&] { open(fake); });
  }
  std::string config_refusal(const std::string& type, const std::string& key, const nlohmann::json& value) {
    return refusal(type, [&](FakeTranslator& fake) { fake.config[key] = value; });
  }
  void generation(const nlohmann::json& config) {
    make_directories(directory());
    write_file(directory() / "generation_config.json", config.dump());
  }
  fs::path directory() const { return temporary_.path() / "translator"; }

 private:
  TemporaryDirectory temporary_;
};

// A source and a target with vocabularies of their own.
FakeTranslator separate() {
  FakeTranslator fake("marian");
  fake.config["share_encoder_decoder_embeddings"] = false;
  fake.config["decoder_vocab_size"] = kV;
  fake.config["vocab_size"] = 7;
  fake.tensors.erase("model.shared.weight");
  fake.put(kSourceRows, {7, kE});
  fake.put(kTargetRows, {kV, kE});
  return fake;
}

TEST_F(TranslatorTest, ReadsTheConfiguration) {
  FakeTranslator fake("marian");
  fake.config["activation_function"] = "swish";
  fake.config["scale_embedding"] = true;
  fake.config["init_std"] = 0.03;
  const EncoderDecoderOptions o = options_of(fake);
  EXPECT_EQ(o.vocabulary, kV);
  EXPECT_EQ(o.source_vocabulary, kV);
  EXPECT_EQ(o.context, kP);
  EXPECT_EQ(o.layers, 2);
  EXPECT_EQ(o.decoder_layers, 1);
  EXPECT_EQ(o.attention.d_model, kE);
  EXPECT_EQ(o.attention.heads, 2);
  EXPECT_EQ(o.feed_forward_width, FakeTranslator::kF);
  EXPECT_EQ(o.activation, ActivationKind::kSilu);
  EXPECT_EQ(o.norm_epsilon, 1e-5);
  EXPECT_EQ(o.dropout, 0.2);
  EXPECT_EQ(o.sites->cross.attention_dropout, 0.25);
  EXPECT_EQ(o.init_deviation, 0.03);
  EXPECT_TRUE(o.sites->encoder.projection_bias && o.sites->decoder.projection_bias && o.sites->cross.projection_bias);
  EXPECT_TRUE(o.tie_embeddings && o.share_embeddings && o.scale_embeddings && o.output_bias);
  EXPECT_FALSE(o.embedding_norm);
  EXPECT_EQ(o.norms, NormPlacement::kAfter);
  EXPECT_EQ(o.positions, PositionKind::kSinusoidal);
  EXPECT_EQ(o.sinusoid_order, SinusoidOrder::kHalves);
}

TEST_F(TranslatorTest, RelativesDifferInPositionsAndNorms) {
  for (const std::string type : {"bart", "mbart"}) {
    const EncoderDecoderOptions o = options_of(FakeTranslator(type));
    EXPECT_EQ(o.positions, PositionKind::kLearned);
    EXPECT_TRUE(o.embedding_norm);
    EXPECT_FALSE(o.scale_embeddings);
    EXPECT_EQ(o.activation, ActivationKind::kGeluErf);
    EXPECT_EQ(o.norms, type == "bart" ? NormPlacement::kAfter : NormPlacement::kBefore);
  }
}

TEST_F(TranslatorTest, EveryTensorOfOursIsMappedOnce) {
  std::vector<FakeTranslator> fakes = {FakeTranslator("marian"), FakeTranslator("bart"), FakeTranslator("mbart"),
                                       separate()};
  fakes.push_back(separate());
  fakes.back().config["tie_word_embeddings"] = false;
  fakes.back().put("lm_head.weight", {kV, kE});
  for (const FakeTranslator& fake : fakes) {
    const ForeignModel foreign = open(fake);
    std::multiset<std::string> targets, wanted;
    for (const MappedTensor& one : foreign.tensors) targets.insert(one.target);
    for (const auto& [name, tensor] : model_tensors(*EncoderDecoder(foreign.options.as<EncoderDecoderOptions>()))) {
      wanted.insert(name);
    }
    EXPECT_EQ(targets, wanted);
    EXPECT_THAT(foreign.unused, IsEmpty());
    const NamedTensors ours = model_tensors(*read_model(foreign).module);
    const auto same = [&](const std::string& mine, const std::string& theirs) {
      EXPECT_EQ(distance(ours.at(mine), fake.tensors.at(theirs)), 0) << mine;
    };
    same("encoder.1.attention.scheme.key.weight", "model.encoder.layers.1.self_attn.k_proj.weight");
    same("decoder.0.attention.scheme.key.weight", "model.decoder.layers.0.self_attn.k_proj.weight");
    same("decoder.0.cross_attention.scheme.query.bias", "model.decoder.layers.0.encoder_attn.q_proj.bias");
    same("decoder.0.cross_attention_norm.weight", "model.decoder.layers.0.encoder_attn_layer_norm.weight");
    same("decoder.0.feed_forward_norm.weight", "model.decoder.layers.0.final_layer_norm.weight");
    if (!ours.contains("source_embedding")) continue;
    same("source_embedding", kSourceRows);
    same("token_embedding", kTargetRows);
  }
}

TEST_F(TranslatorTest, BartsFirstTwoPositionsAreNotUsed) {
  const FakeTranslator fake("bart");
  const NamedTensors ours = convert(fake);
  EXPECT_EQ(
      distance(ours.at("position_embedding"), fake.tensors.at("model.decoder.embed_positions.weight").slice(0, 2)), 0);
  EXPECT_EQ(distance(ours.at("source_position_embedding"),
                     fake.tensors.at("model.encoder.embed_positions.weight").slice(0, 2)),
            0);
}

TEST_F(TranslatorTest, ABareModelHasOtherNames) {
  const FakeTranslator fake("bart");
  FakeTranslator bare("bart");
  bare.tensors.clear();
  for (const auto& [name, tensor] : fake.tensors) {
    if (name.starts_with("model.")) bare.tensors[name.substr(6)] = tensor;
  }
  bare.config["architectures"] = {"BartModel"};
  EXPECT_FALSE(options_of(bare).output_bias);
  const NamedTensors found = convert(bare);
  for (const auto& [name, tensor] : convert(fake)) {
    if (name == "output_bias") continue;
    EXPECT_EQ(distance(found.at(name), tensor), 0) << name;
  }
}

TEST_F(TranslatorTest, WhatSaysNothingNewIsLeftOut) {
  FakeTranslator fake("marian");
  const Tensor table = fake.tensors.at("model.shared.weight");
  for (const char* name : {kSourceRows, kTargetRows, "lm_head.weight"}) fake.tensors[name] = table.clone();
  for (const std::string side : {"encoder", "decoder"}) {
    fake.tensors["model." + side + ".embed_positions.weight"] = sinusoid_table(options_of(fake)).to(at::kBFloat16);
    fake.tensors["model." + side + ".version"] = at::ones({1});
  }
  fake.tensors["final_logits_bias"].zero_();
  EXPECT_EQ(open(fake).unused.size(), 8u);
  EXPECT_FALSE(options_of(fake).output_bias);
  // transformers may keep any of the four.
  fake.tensors.erase("model.shared.weight");
  fake.tensors.erase(kSourceRows);
  EXPECT_EQ(distance(convert(fake).at("token_embedding"), table), 0);
}

TEST_F(TranslatorTest, TensorsThatContradictTheConfigurationAreRefused) {
  EXPECT_THAT(refusal("marian",
                      [](FakeTranslator& fake) {
                        fake.put("lm_head.weight", {kV, kE});
                      }),
              HasSubstr("tensor 'lm_head.weight' differs from 'model.shared.weight', but config.json ties them; set "
                        "tie_word_embeddings to false"));
  EXPECT_THAT(refusal("marian",
                      [](FakeTranslator& fake) {
                        fake.put("model.decoder.embed_positions.weight", {kP, kE});
                      }),
              HasSubstr("'model.decoder.embed_positions.weight' differs from the sinusoids by up to"));
  EXPECT_THAT(refusal("bart", [](FakeTranslator& fake) { fake.put("final_logits_bias", {kV}); }),
              HasSubstr("'final_logits_bias' has shape [11], the configuration asks for [1, 11]"));
  EXPECT_THAT(refusal("bart", [](FakeTranslator& fake) { fake.tensors.erase("model.shared.weight"); }),
              HasSubstr("tensor 'shared.weight' is missing"));
  EXPECT_THAT(
      refusal("bart",
              [](FakeTranslator& fake) { fake.tensors.erase("model.decoder.layers.0.encoder_attn.v_proj.bias"); }),
      HasSubstr("tensor 'decoder.layers.0.encoder_attn.v_proj.bias' is missing"));
  EXPECT_THAT(refusal("mbart", [](FakeTranslator& fake) { fake.tensors.erase("model.encoder.layer_norm.bias"); }),
              HasSubstr("tensor 'encoder.layer_norm.bias' is missing"));
  EXPECT_THAT(refusal("bart", [](FakeTranslator& fake) { fake.put_pair("model.encoder.layer_norm", {kE}); }),
              HasSubstr("2 tensors are not part of the BART"));
  FakeTranslator cut("marian");
  cut.write(directory());
  const std::string whole = read_file(directory() / "model.safetensors");
  write_file(directory() / "model.safetensors", whole.substr(0, whole.size() - 9));
  EXPECT_THAT(error_message([&] { find_format("hf").open(directory()); }), HasSubstr("model.safetensors"));
}

// Every table may be its own; files of older programs have one that both sides read.
TEST_F(TranslatorTest, WithoutTiesEmbeddingsAreTheirOwn) {
  FakeTranslator fake("bart");
  fake.config["tie_word_embeddings"] = false;
  fake.put("lm_head.weight", {kV, kE});
  NamedTensors ours = convert(fake);
  EXPECT_EQ(distance(ours.at("token_embedding"), fake.tensors.at("model.shared.weight")), 0);
  EXPECT_FALSE(ours.contains("source_embedding"));
  fake.put(kSourceRows, {kV, kE});
  fake.put(kTargetRows, {kV, kE});
  ours = convert(fake);
  EXPECT_EQ(distance(ours.at("source_embedding"), fake.tensors.at(kSourceRows)), 0);
  EXPECT_EQ(distance(ours.at("token_embedding"), fake.tensors.at(kTargetRows)), 0);
  EXPECT_EQ(distance(ours.at("output_embedding"), fake.tensors.at("lm_head.weight")), 0);
  EXPECT_THAT(open(fake).unused, ElementsAre("model.shared.weight"));
  fake.tensors.erase("lm_head.weight");
  EXPECT_THAT(error_message([&] { open(fake); }), HasSubstr("tensor 'lm_head.weight' is missing"));
}

TEST_F(TranslatorTest, ReadsMarks) {
  FakeTranslator fake("marian");
  TargetMarks marks = options_of(fake).marks;
  EXPECT_EQ(marks.start, 10);
  EXPECT_EQ(marks.end, 0);
  EXPECT_FALSE(marks.forced_first || marks.forced_last || marks.never_produced);
  fake.config["bad_words_ids"] = {{10}};
  fake.config["forced_bos_token_id"] = 4;
  fake.config["forced_eos_token_id"] = 2;
  fake.config["eos_token_id"] = {3};
  marks = options_of(fake).marks;
  EXPECT_EQ(marks.forced_last, 2);
  EXPECT_EQ(marks.never_produced, 10);
  EXPECT_EQ(marks.forced_first, 4);
  EXPECT_EQ(marks.end, 3);
  generation(
      {{"decoder_start_token_id", 5}, {"eos_token_id", 6}, {"forced_bos_token_id", 7}, {"bad_words_ids", {{8}}}});
  marks = options_of(fake).marks;
  EXPECT_EQ(marks.start, 5);
  EXPECT_EQ(marks.end, 6);
  EXPECT_EQ(marks.forced_first, 7);
  EXPECT_EQ(marks.never_produced, 8);
  generation({{"decoder_start_token_id", 11}});
  EXPECT_THAT(error_message([&] { open(fake); }), HasSubstr("start-id 11 is no token of a vocabulary of 11"));
  generation({{"eos_token_id", {1, 2}}});
  EXPECT_THAT(error_message([&] { open(fake); }),
              HasSubstr("generation_config.json: eos_token_id is [1,2]; headshare has one such token"));
  generation({{"bad_words_ids", {5}}});
  EXPECT_THAT(error_message([&] { open(fake); }), HasSubstr("generation_config.json: bad_words_ids"));
}

// transformers 5 reads config.json only where there is no generation_config.json.
TEST_F(TranslatorTest, GenerationConfigAloneCountsWhereItIsThere) {
  FakeTranslator fake("bart");
  fake.config["bad_words_ids"] = {{1}};
  fake.config["forced_bos_token_id"] = 4;
  fake.config["forced_eos_token_id"] = 2;
  fake.config["num_beams"] = 4;
  generation({{"decoder_start_token_id", 5}, {"eos_token_id", 6}});
  const TargetMarks marks = options_of(fake).marks;
  EXPECT_EQ(marks.start, 5);
  EXPECT_EQ(marks.end, 6);
  EXPECT_FALSE(marks.forced_first || marks.forced_last || marks.never_produced);
  EXPECT_THAT(open(fake).notes, IsEmpty());
  generation({{"bos_token_id", 3}, {"eos_token_id", 6}, {"forced_eos_token_id", nullptr}});
  EXPECT_EQ(options_of(fake).marks.start, 3) << "as generate() has it";
  EXPECT_FALSE(options_of(fake).marks.forced_last);
  // generate() refuses a file that names no start, and never ends without an end.
  generation({{"num_beams", 2}});
  EXPECT_EQ(options_of(fake).marks.start, 10);
  EXPECT_EQ(options_of(fake).marks.end, 0);
  EXPECT_THAT(open(fake).notes, ElementsAre(HasSubstr("eos_token_id is missing: transformers would never end a target; "
                                                      "token 0 ends one here"),
                                            HasSubstr("num_beams 2")));
}

TEST_F(TranslatorTest, AnOldKeyForcesTheFirstToken) {
  FakeTranslator fake("bart");
  fake.config["force_bos_token_to_be_generated"] = true;
  EXPECT_FALSE(options_of(fake).marks.forced_first) << "bos_token_id is not there";
  fake.config["bos_token_id"] = 3;
  fake.config["forced_bos_token_id"] = 4;
  EXPECT_EQ(options_of(fake).marks.forced_first, 3);
  fake.config["force_bos_token_to_be_generated"] = false;
  EXPECT_EQ(options_of(fake).marks.forced_first, 4);
  fake.config["force_bos_token_to_be_generated"] = true;
  generation({{"bos_token_id", 5}, {"eos_token_id", 0}});
  EXPECT_FALSE(options_of(fake).marks.forced_first) << "it is a key of config.json alone";
}

TEST_F(TranslatorTest, OneTokenIsNeverProducedByWhicheverKey) {
  const auto never = [&](const nlohmann::json& generation_config) {
    generation(generation_config);
    return options_of(FakeTranslator("marian")).marks.never_produced;
  };
  EXPECT_EQ(never({{"eos_token_id", 0}, {"suppress_tokens", {8}}}), 8);
  EXPECT_EQ(never({{"eos_token_id", 0}, {"suppress_tokens", {8}}, {"bad_words_ids", {{8}, {0}}}}), 8) << "0 is the end";
  EXPECT_EQ(never({{"eos_token_id", 0}, {"bad_words_ids", {{8}, {1, 2}}}}), 8);
  EXPECT_THAT(open(FakeTranslator("marian")).notes, ElementsAre(HasSubstr("sequences of tokens are not kept")));
  EXPECT_FALSE(never({{"eos_token_id", 0}, {"suppress_tokens", {8, 7}}, {"begin_suppress_tokens", {1}}}));
  EXPECT_THAT(open(FakeTranslator("marian")).notes,
              ElementsAre(HasSubstr("suppress_tokens [8,7]: none of these is kept"),
                          HasSubstr("begin_suppress_tokens [1]: headshare has no such rule")));
}

// A decoder's key that is absent is not the encoder's value: 16 heads and 4,096 for both families.
TEST_F(TranslatorTest, EachSideHasTheFamilysDefaults) {
  FakeTranslator fake("marian");
  fake.config.erase("decoder_attention_heads");
  EXPECT_THAT(error_message([&] { open(fake); }),
              HasSubstr("decoder_attention_heads is 16 (by default) and encoder_attention_heads 2"));
  fake.config["decoder_attention_heads"] = 2;
  fake.config.erase("decoder_ffn_dim");
  EXPECT_THAT(error_message([&] { open(fake); }), HasSubstr("decoder_ffn_dim is 4096 (by default)"));
}

class MBartTest : public TranslatorTest {
 protected:
  void tokenizer(const nlohmann::json& config, const std::string& file) {
    make_directories(directory());
    write_file(directory() / "tokenizer_config.json", config.dump());
    write_file(directory() / "tokenizer.json", file);
  }
};

TEST_F(MBartTest, ALanguageIsNamedByTheStartOrTheFirstToken) {
  FakeTranslator fake("mbart");
  EXPECT_EQ(options_of(fake).marks.start, 10) << "mBART";
  fake.config["decoder_start_token_id"] = 0;  // the end
  EXPECT_THAT(error_message([&] { open(fake); }),
              HasSubstr("does not say in which language the model writes: mBART begins a target with the token of its "
                        "language. Put the token's id into"));
  fake.config["forced_bos_token_id"] = 7;
  EXPECT_EQ(options_of(fake).marks.start, 0) << "mBART-50";
  EXPECT_EQ(options_of(fake).marks.forced_first, 7);
  fake.config.erase("forced_bos_token_id");
  fake.config.erase("decoder_start_token_id");
  EXPECT_THAT(error_message([&] { open(fake); }), HasSubstr("config.json: forced_bos_token_id (mBART-50)"));
  generation({{"eos_token_id", 0}, {"decoder_start_token_id", 4}});
  EXPECT_EQ(options_of(fake).marks.start, 4);
}

TEST_F(MBartTest, TheTokenizerNamesALanguage) {
  FakeTranslator fake("mbart");
  fake.config.erase("decoder_start_token_id");
  const std::string pieces = R"({"model": {"vocab": [["<s>", 0.0], ["a", -1.0], ["ro_RO", 0.0]]}})";
  tokenizer({{"tgt_lang", "ro_RO"}}, pieces);
  EXPECT_EQ(options_of(fake).marks.start, 2);
  EXPECT_FALSE(options_of(fake).marks.forced_first);
  EXPECT_THAT(open(fake).notes, ElementsAre(HasSubstr("targets are in ro_RO (token 2), the tgt_lang of")));
  fake.config["decoder_start_token_id"] = 0;  // </s>, as mBART-50 begins
  EXPECT_EQ(options_of(fake).marks.start, 0);
  EXPECT_EQ(options_of(fake).marks.forced_first, 2);
  tokenizer({{"tgt_lang", "fr_XX"}}, R"({"added_tokens": [{"id": 9, "content": "fr_XX"}], "model": {"vocab": {}}})");
  EXPECT_EQ(options_of(fake).marks.forced_first, 9);
  tokenizer({{"tgt_lang", "fr_XX"}}, R"({"model": {"vocab": {"a": 0, "fr_XX": 1}}})");
  EXPECT_EQ(options_of(fake).marks.forced_first, 1);
  for (const std::string& damaged :
       {std::string("3"), std::string(R"({"added_tokens": 3})"), std::string(R"({"model": 4})"), pieces,
        std::string(R"({"added_tokens": [{"id": 99, "content": "fr_XX"}]})")}) {
    tokenizer({{"tgt_lang", "fr_XX"}}, damaged);
    EXPECT_THAT(error_message([&] { open(fake); }),
                HasSubstr("tgt_lang is 'fr_XX', and tokenizer.json has no such token among the model's 11"))
        << damaged;
  }
  tokenizer({{"tgt_lang", 3}}, pieces);
  EXPECT_THAT(error_message([&] { open(fake); }), HasSubstr("tgt_lang must be a text"));
  tokenizer({{"tgt_lang", "fr_XX"}}, pieces);
  fs::remove(directory() / "tokenizer.json");
  EXPECT_THAT(error_message([&] { open(fake); }),
              HasSubstr("there is no tokenizer.json that has its id; make one with transformers, "
                        "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR), or put the token's id into"));
}

// BARThez has mBART's layers and one language.
TEST_F(MBartTest, ATokenizerOfAnotherClassHasNoLanguages) {
  FakeTranslator fake("mbart");
  fake.config["decoder_start_token_id"] = 0;
  tokenizer({{"tokenizer_class", "PreTrainedTokenizerFast"}}, "{}");
  EXPECT_THAT(error_message([&] { open(fake); }), HasSubstr("does not say in which language"));
  tokenizer({{"tokenizer_class", "BarthezTokenizer"}}, "{}");
  EXPECT_EQ(options_of(fake).marks.start, 0);
}

TEST_F(TranslatorTest, NotesSayWhatIsNotKept) {
  FakeTranslator fake("bart");
  EXPECT_THAT(open(fake).notes, IsEmpty());
  fake.config["activation_dropout"] = 0.1;
  fake.config["decoder_layerdrop"] = 0.05;
  generation({{"eos_token_id", 0}, {"num_beams", 4}, {"no_repeat_ngram_size", 3}, {"bad_words_ids", {{1}, {2}}}});
  EXPECT_THAT(open(fake).notes, ElementsAre(HasSubstr("activation_dropout 0.1 and decoder_layerdrop 0.05 is not kept"),
                                            HasSubstr("the files suggest num_beams 4 and no_repeat_ngram_size 3"),
                                            HasSubstr("bad_words_ids [[1],[2]]: none of these is kept")));
}

TEST_F(TranslatorTest, MarianSaysWhatItsTextNeeds) {
  FakeTranslator("marian").write(directory());
  write_file(directory() / "vocab.json", "{}");
  write_file(directory() / "merges.txt", "");
  EXPECT_THAT(open(FakeTranslator("marian")).without_tokenizer, HasSubstr("source.spm, target.spm and vocab.json"));
  EXPECT_FALSE(open(FakeTranslator("marian")).tokenizers);
  EXPECT_TRUE(open(FakeTranslator("bart")).tokenizers);
}

TEST_F(TranslatorTest, ConfigurationsWeCannotReproduceAreRefusedByName) {
  const auto refused = [&](const std::string& key, const nlohmann::json& value) {
    return config_refusal("marian", key, value);
  };
  EXPECT_THAT(refused("activation_function", "selu"), HasSubstr("activation_function is \"selu\""));
  EXPECT_THAT(
      refused("decoder_attention_heads", 3),
      HasSubstr("decoder_attention_heads is 3 and encoder_attention_heads 2; headshare has models with as many"));
  EXPECT_THAT(refused("decoder_ffn_dim", 12), HasSubstr("decoder_ffn_dim is 12 and encoder_ffn_dim 10"));
  EXPECT_THAT(refused("encoder_attention_heads", 4), HasSubstr("decoder_attention_heads is 2"));
  EXPECT_THAT(refused("num_hidden_layers", 3), HasSubstr("encoder_layers is 2 and num_hidden_layers is 3"));
  EXPECT_EQ(refused("num_hidden_layers", 2), "no error");
  EXPECT_THAT(refused("is_decoder", true), HasSubstr("is_decoder is true"));
  EXPECT_THAT(refused("is_causal", false), HasSubstr("is_causal is false"));
  EXPECT_THAT(refused("is_encoder_decoder", false), HasSubstr("is_encoder_decoder is false"));
  EXPECT_THAT(refused("decoder_vocab_size", 12), HasSubstr("decoder_vocab_size is 12 and vocab_size 11"));
  EXPECT_THAT(refused("encoder_layers", 3), HasSubstr("tensor 'encoder.layers.2.self_attn.q_proj.weight' is missing"));
  EXPECT_THAT(refused("decoder_layers", 2), HasSubstr("tensor 'decoder.layers.1.self_attn.q_proj.weight' is missing"));
  EXPECT_THAT(refused("encoder_layers", 1), HasSubstr("16 tensors are not part of the MarianMT"));
  EXPECT_THAT(refused("vocab_size", 12), HasSubstr("[1, 11], the configuration asks for [1, 12]"));
  EXPECT_THAT(refused("architectures", {"MarianForCausalLM"}), HasSubstr("names 'MarianForCausalLM'"));
  EXPECT_THAT(config_refusal("bart", "max_position_embeddings", 9), HasSubstr("the configuration asks for [11, 6]"));
  EXPECT_THAT(config_refusal("bart", "model_type", "blenderbot"), HasSubstr("bart"));
  // Old programs read these keys and today's do not.
  for (const auto& [type, key, value] :
       std::vector<std::tuple<std::string, std::string, bool>>{{"marian", "normalize_before", true},
                                                               {"marian", "normalize_embedding", true},
                                                               {"marian", "static_position_embeddings", false},
                                                               {"bart", "add_final_layer_norm", true},
                                                               {"bart", "normalize_embedding", false},
                                                               {"mbart", "normalize_before", false}}) {
    EXPECT_THAT(config_refusal(type, key, value), HasSubstr(key + " is " + (value ? "true" : "false")));
    EXPECT_EQ(config_refusal(type, key, !value), "no error");
  }
}

// Whatever the configuration holds, the result is a model or an Error.
TEST_F(TranslatorTest, EveryKeyWithValuesOfEveryType) {
  const std::vector<nlohmann::json> values = {nullptr, true,   -1,  0,      0.5, 1e308, UINT64_MAX, "",
                                              "gelu",  "auto", "-", {1, 2}, {},  3,     1 << 30,    {{"a", 1}}};
  int refused = 0;
  for (const std::string type : {"marian", "bart"}) {
    FakeTranslator all(type);
    for (const char* key : {"activation_function", "tie_word_embeddings", "is_decoder", "is_encoder_decoder",
                            "scale_embedding", "share_encoder_decoder_embeddings", "decoder_vocab_size", "bos_token_id",
                            "bad_words_ids", "forced_bos_token_id", "forced_eos_token_id", "normalize_before",
                            "activation_dropout", "num_beams", "hidden_size", "init_std"}) {
      all.config[key] = nullptr;
    }
    FakeTranslator(type).write(directory());
    for (const auto& [key, ignored] : all.config.items()) {
      if (key == "model_type") continue;
      for (const nlohmann::json& value : values) {
        nlohmann::json config = FakeTranslator(type).config;
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
  }
  EXPECT_GT(refused, 200);
}

}  // namespace encoder_decoder_test
}  // namespace headshare
