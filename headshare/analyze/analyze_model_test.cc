#include "headshare/analyze/analyze_model.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>

#include "headshare/base/testing.h"
#include "headshare/convert/collaborative/collaborative_model.h"
#include "headshare/convert/shared_heads/shared_heads_model.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

Decoder random_decoder(const DecoderOptions& options) {
  Decoder model = small_decoder(options);
  randomise(*model);
  return model;
}

const ConversionAnalysis& row(const HeadAnalysis& analysis, const std::string& name) {
  for (const ConversionAnalysis& one : analysis.conversions) {
    if (one.name == name) return one;
  }
  throw Error("no conversion " + name);
}

template <class Model>
HeadAnalysis analysis_of(const Model& model, const Tensor& sample = {}) {
  return analyze_heads(model, {.widths = {8}, .sample = sample}, nullptr);
}

// An analysis is a dry run of `convert`: the same errors and sizes, layer by layer.
template <class Model>
void expect_what_convert_reports(const Model& model, const Tensor& sample) {
  const AnalysisOptions defaults;
  const HeadAnalysis analysis = analysis_of(model, sample);
  CollaborativeHeadsReport conversion;
  const Model narrow =
      to_collaborative(model, {{.key_width = 8}, defaults.decomposition, sample}, nullptr, &conversion);
  const ConversionAnalysis& collaborative = row(analysis, "collaborative 8");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_DOUBLE_EQ(collaborative.layers[i].scores, conversion.layers[i].error);
    EXPECT_EQ(collaborative.layers[i].values, 0);
  }
  EXPECT_EQ(collaborative.size.total_parameters, measure(narrow->options()).total_parameters);
  for (const SharedScheme& to : {SharedScheme{"gqa", 2}, SharedScheme{"mqa"}, SharedScheme{"mhe_mul"},
                                 SharedScheme{"mhe_add"}, SharedScheme{"skv"}}) {
    SharedHeadsReport report;
    const Model target = to_shared(model, {to, defaults.decomposition, sample}, nullptr, &report);
    const ConversionAnalysis& found = row(analysis, to.scheme + (to.size ? ":2" : ""));
    ASSERT_EQ(found.layers.size(), 2U);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_DOUBLE_EQ(found.layers[i].scores, report.layers[i].result.error.scores) << found.name;
      EXPECT_DOUBLE_EQ(found.layers[i].values, report.layers[i].result.error.values) << found.name;
      ASSERT_EQ(found.layers[i].output.has_value(), sample.defined());
      EXPECT_NEAR(found.layers[i].output.value_or(-1), report.layers[i].output_change, 1e-6) << found.name;
    }
    EXPECT_TRUE(found.size == measure(target->options())) << found.name;
  }
}

TEST(AnalyzeHeads, ReportsOfDecodersWhatConvertReports) {
  for (const PositionKind positions : {PositionKind::kLearned, PositionKind::kRotary, PositionKind::kAlibi}) {
    for (const bool biases : {false, true}) {
      DecoderOptions options = small_options("mha", positions);
      options.attention.projection_bias = biases;
      const Decoder model = random_decoder(options);
      expect_what_convert_reports(model, Tensor());
      expect_what_convert_reports(model, random_ids(4, 10, 13));
    }
  }
}

TEST(AnalyzeHeads, ReportsOfEncodersWhatConvertReports) {
  const Encoder model = small_encoder(small_encoder_options("mha"));
  randomise(*model);
  expect_what_convert_reports(model, Tensor());
  expect_what_convert_reports(model, random_ids(4, 10, 13));
  const HeadAnalysis analysis = analysis_of(model);
  EXPECT_EQ(analysis.kind, "encoder");
  EXPECT_FALSE(analysis.decodes());
}

TEST(AnalyzeHeads, OfVisionTransformersByTheirWeights) {
  VisionOptions options;
  options.layers = 2;
  options.attention.d_model = 16;
  options.attention.heads = 4;
  options.image_size = 8;
  options.patch_size = 4;
  options.classes = 5;
  VisionTransformer model(resolve(options));
  randomise(*model);
  expect_what_convert_reports(model, {});
  const HeadAnalysis found = analysis_of(model);
  EXPECT_EQ(found.kind, "vision-transformer");
  EXPECT_EQ(found.layers, 2);
  EXPECT_EQ(found.timed_tokens, 5);
  EXPECT_EQ(found.text_tokens, 0);
}

TEST(AnalyzeHeads, DescribesTheModel) {
  const Decoder model = random_decoder(small_options("mha"));
  const HeadAnalysis analysis = analysis_of(model, random_ids(3, 10, 13));
  EXPECT_EQ(analysis.layers, 2);
  EXPECT_EQ(analysis.depth, 2);
  EXPECT_EQ(analysis.heads, 4);
  EXPECT_EQ(analysis.full_key_width, 16);
  EXPECT_EQ(analysis.text_tokens, 30);
  EXPECT_EQ(analysis.map_tokens, 30);
  ASSERT_EQ(analysis.layer.size(), 2U);
  EXPECT_EQ(analysis.layer[1].layer, "layer 2");
  EXPECT_EQ(analysis.layer[0].heads.size(), 4U);
  EXPECT_EQ(analysis.layer[0].maps.size(), 4U);
  EXPECT_GT(analysis.before.milliseconds, 0);
  for (const ConversionAnalysis& one : analysis.conversions) EXPECT_GT(one.milliseconds, 0) << one.name;
  EXPECT_EQ(analysis.before.size.cache_bytes_per_token, measure(model->options()).cache_bytes_per_token);
}

// Layers that share their parameters are analysed once; caches count every depth.
TEST(AnalyzeHeads, OfLayersThatShareTheirParameters) {
  DecoderOptions options = small_options("mha");
  options.layer_groups = 1;
  const Decoder model = random_decoder(options);
  const HeadAnalysis analysis = analysis_of(model, random_ids(3, 10, 13));
  EXPECT_EQ(analysis.layers, 1);
  EXPECT_EQ(analysis.depth, 2);
  EXPECT_EQ(analysis.layer.size(), 1U);
  EXPECT_EQ(row(analysis, "mqa").layers.size(), 1U);
  EXPECT_EQ(row(analysis, "mqa").size.cache_bytes_per_token * 4, analysis.before.size.cache_bytes_per_token);
}

// Heads of one group have the same keys: an mqa model's heads differ in their queries alone.
TEST(AnalyzeHeads, OfEverySchemeWithHeads) {
  for (const std::string scheme : {"gqa", "mqa", "skv", "el_shared", "mhe_add", "mhe_mul", "collaborative"}) {
    DecoderOptions options = small_options(scheme);
    if (scheme == "collaborative") options.attention.key_width = 12;
    const HeadAnalysis analysis = analysis_of(random_decoder(options));
    EXPECT_EQ(analysis.layer.size(), 2U) << scheme;
    EXPECT_EQ(analysis.full_key_width, scheme == "collaborative" ? 12 : 16);
    for (const LayerAnalysis& layer : analysis.layer) {
      for (const Spectrum& one : {layer.joint, layer.stacked}) {
        EXPECT_EQ(one.dimensions, analysis.full_key_width) << scheme;
        EXPECT_LE(static_cast<int64_t>(one.values.size()), one.dimensions) << scheme;
      }
    }
    for (const ConversionAnalysis& one : analysis.conversions) EXPECT_NE(one.name, scheme);
  }
}

// Norms stand between weights and scores: a text shows the scores, and nothing is converted.
TEST(AnalyzeHeads, OfNormedQueriesAndKeysShowsScoresOnATextAndCosts) {
  for (const std::string scheme : {"mha", "gqa", "mqa", "skv", "el_shared", "mhe_add", "mhe_mul", "collaborative"}) {
    DecoderOptions options = small_options(scheme, scheme == "gqa" ? PositionKind::kRotary : PositionKind::kLearned);
    options.attention.qk_norm = true;
    if (scheme == "collaborative") options.attention.key_width = 12;
    const Decoder model = random_decoder(options);
    const HeadAnalysis blind = analysis_of(model);
    EXPECT_FALSE(blind.has_spectra()) << scheme;
    EXPECT_THAT(blind.refusal, HasSubstr("normed queries and keys (qk-norm)"));
    const HeadAnalysis seen = analysis_of(model, random_ids(3, 10, 13));
    ASSERT_TRUE(seen.has_spectra()) << scheme;
    for (const LayerAnalysis& layer : seen.layer) {
      EXPECT_EQ(layer.stacked.dimensions, seen.full_key_width) << scheme;
      EXPECT_EQ(layer.maps.size(), 4U);
      EXPECT_GT(layer.joint.energy(), 0) << scheme;
    }
    EXPECT_GT(seen.conversions.size(), 4U);
    for (const ConversionAnalysis& one : seen.conversions) {
      EXPECT_TRUE(one.layers.empty() && !one.scores() && !one.output()) << one.name;
      EXPECT_TRUE(one.command.empty());
      EXPECT_TRUE(!one.impossible.empty() || (one.size.total_parameters > 0 && one.milliseconds > 0)) << one.name;
    }
  }
}

TEST(AnalyzeHeads, OfNormedQueriesAndKeysRefusesDamage) {
  DecoderOptions options = small_options("mha");
  options.attention.qk_norm = true;
  const Decoder model = random_decoder(options);
  const at::NoGradGuard no_grad;
  declared_parameters(*model->attention(1)).front().tensor.view(-1)[0] = NAN;
  EXPECT_THAT(error_message([&] { analysis_of(model); }), HasSubstr("layer 2"));
}

TEST(AnalyzeHeads, SaysWhichConversionsAreImpossible) {
  DecoderOptions options = small_options("mha", PositionKind::kRotary);
  options.attention.key_width = 8;  // keys of heads are narrower than their values
  const HeadAnalysis analysis = analysis_of(random_decoder(options));
  EXPECT_THAT(row(analysis, "mqa").impossible, HasSubstr("as wide as values"));
  EXPECT_TRUE(row(analysis, "mqa").layers.empty());
}

TEST(AnalyzeHeads, RefusesWhatHasNoHeadsToCompare) {
  DecoderOptions options = small_options("mha");
  options.attention.heads = 1;
  EXPECT_THAT(error_message([&] { analysis_of(random_decoder(options)); }), HasSubstr("this model has only one"));
  EXPECT_THAT(error_message([&] { analysis_of(random_decoder(small_options("sha"))); }), HasSubstr("sha"));
}

TEST(AnalyzeHeads, RefusesDamagedWeightsAndNamesTheLayer) {
  const Decoder model = random_decoder(small_options("mha"));
  const at::NoGradGuard no_grad;
  for (const Declared& one : declared_parameters(*model->attention(1))) one.tensor.view(-1)[0] = NAN;
  EXPECT_THAT(error_message([&] { analysis_of(model); }), HasSubstr("layer 2"));
}

// Numbers that are finite alone may overflow in the model.
TEST(AnalyzeHeads, NamesTheLayerWhoseNumbersOverflow) {
  const at::NoGradGuard no_grad;
  for (const size_t damaged : {size_t{0}, size_t{1}}) {
    const Decoder model = random_decoder(small_options("mha"));
    for (const Declared& one : declared_parameters(*model->attention(damaged))) {
      if (one.name.find("output.weight") != std::string::npos) one.tensor.fill_(2e38F);
    }
    const std::string message = error_message([&] { analysis_of(model, random_ids(3, 10, 13)); });
    EXPECT_THAT(message, HasSubstr("layer 2")) << message;  // layer 2 reads what layer 1 gives
    EXPECT_THAT(message, HasSubstr("not finite"));
  }
}

TEST(AnalyzeHeads, TakesLayersOfWhichAPartIsZero) {
  for (const std::string part : {"query", "key", "value", "output"}) {
    const Decoder model = random_decoder(small_options("mha"));
    zero_part(*model->attention(0), part);
    for (const Tensor& sample : {Tensor(), random_ids(3, 10, 13)}) {
      const HeadAnalysis analysis = analysis_of(model, sample);
      for (const ConversionAnalysis& one : analysis.conversions) {
        EXPECT_TRUE(std::isfinite(one.larger().value_or(0))) << part << ", " << one.name;
        EXPECT_TRUE(std::isfinite(one.output().value_or(0))) << part << ", " << one.name;
      }
    }
  }
}

TEST(AnalyzeHeads, RefusesWidthsThatCannotBe) {
  const Decoder model = random_decoder(small_options("mha"));
  EXPECT_THAT(error_message([&] { analyze_heads(model, {.widths = {17}}, nullptr); }), HasSubstr("17 is above 16"));
  DecoderOptions options = small_options("collaborative");
  options.attention.key_width = 8;
  for (const int64_t width : {8, 9}) {
    EXPECT_THAT(error_message([&] { analyze_heads(random_decoder(options), {.widths = {width}}, nullptr); }),
                HasSubstr("the model is collaborative already, with key width 8; give smaller --key-widths"));
  }
}

TEST(AnalyzeHeads, StopsWhenAsked) {
  const Decoder model = random_decoder(small_options("mha"));
  int told = 0;
  double last = 0;
  const ConversionObserver stop = [&](const ConversionProgress& now) {
    EXPECT_LE(now.done, now.total);
    EXPECT_GE(now.done, last);
    last = now.done;
    return ++told < 50;
  };
  EXPECT_THROW(analyze_heads(model, {}, stop), Interrupted);
}

}  // namespace
}  // namespace headshare
