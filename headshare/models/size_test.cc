#include "headshare/models/size.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "headshare/attention/schemes/latent_testing.h"
#include "headshare/attention/schemes/mla.h"
#include "headshare/base/error.h"
#include "headshare/base/testing.h"
#include "headshare/models/testing.h"
#include "headshare/ops/allocation_meter.h"

namespace headshare {
namespace {

using testing::HasSubstr;

// The encoder table of the MHE paper, docs/mathematics.md#counts-of-the-mhe-paper, has 12 layers, width 768 and 12
// heads.
TEST(Size, TheEncoderTable) {
  const std::map<std::string, int64_t> table = {{"sha", 8847360},    {"mha", 28311552}, {"el_shared", 14155776},
                                                {"mqa", 15335424},   {"skv", 21233664}, {"mhe_add", 8875008},
                                                {"mhe_mul", 8875008}};
  for (const auto& [scheme, parameters] : table) {
    DecoderOptions options{.layers = 12};
    options.attention = {.scheme = scheme, .d_model = 768, .heads = 12, .projection_bias = true};
    EXPECT_EQ(measure(resolve(options)).attention_parameters, parameters) << scheme;
    EncoderOptions encoder;
    encoder.layers = 12;
    encoder.attention = options.attention;
    EXPECT_EQ(measure(resolve(encoder)).attention_parameters, parameters) << scheme;
  }
}

// Layers of collaborative attention may have key widths of their own; each layer counts by its own.
TEST(Size, LayersMayDifferInTheirKeyWidths) {
  DecoderOptions options = small_options("collaborative");
  options.layers = 3;
  options.layer_key_widths = {4, 16, 4};
  const Decoder model = small_decoder(options);
  expect_counted(model);
  EXPECT_EQ(*model->options().attention.key_width, 16);
  EXPECT_EQ(model->attention(0)->scheme().cost().cache_elements, 4 + 16);
  EXPECT_EQ(measure(model->options()).cache_bytes_per_token, 4 * (3 * 16 + 4 + 16 + 4));
  options.layer_key_widths = {4, 16};
  EXPECT_THAT(error_message([&] { resolve(options); }), HasSubstr("2 numbers for 3 layers"));
  options.attention.scheme = "mqa";  // key widths say nothing about other schemes
  EXPECT_TRUE(resolve(options).layer_key_widths.empty());
}

// The same of mla and its latent vectors; without a norm they have no other parameters than their maps.
TEST(Size, LayersMayDifferInTheirLatentWidths) {
  DecoderOptions options = small_options("mla");
  options.layers = 3;
  MlaOptions& mla = options.attention.own.get<MlaOptions>();
  mla.kv_norm = false;
  mla.layer_kv_latents = {4, 16, 4};
  const Decoder model = small_decoder(options);
  expect_counted(model);
  EXPECT_EQ(*model->options().attention.own.get<MlaOptions>().kv_latent, 16);
  EXPECT_EQ(model->attention(0)->scheme().cost().cache_elements, 4);
  EXPECT_EQ(model->attention(1)->scheme().cost().effective, 4 * 16 * 16) << "no more than mha";
  EXPECT_EQ(measure(model->options()).cache_bytes_per_token, 4 * (4 + 16 + 4));
  mla.layer_kv_latents = {4, 16};
  EXPECT_THAT(error_message([&] { resolve(options); }), HasSubstr("2 numbers for 3 layers"));
  mla.layer_kv_latents = {4, 17, 4};
  EXPECT_THAT(error_message([&] { resolve(options); }), HasSubstr("at most 16"));
  options.attention.scheme = "mqa";  // latent widths say nothing about other schemes
  EXPECT_TRUE(resolve(options).attention.own.get<MlaOptions>().layer_kv_latents.empty());
}

// The counts are those of BertForMaskedLM and of BertModel without and with its pooler, of transformers'
// bert-base-uncased.
TEST(Size, BertHasTheParametersBertHas) {
  EncoderOptions options;
  options.vocabulary = 30522;
  options.context = 512;
  options.layers = 12;
  options.attention.d_model = 768;
  options.attention.heads = 12;
  EXPECT_EQ(measure(resolve(options)).total_parameters, 108891648);
  options.masked_head = true;
  EXPECT_EQ(measure(resolve(options)).total_parameters, 109514298);
  options.masked_head = false;
  options.pooler = true;
  const ModelSize size = measure(resolve(options));
  EXPECT_EQ(size.total_parameters, 109482240);
  EXPECT_EQ(size.cache_elements_per_token, 0);
}

// An encoder has logits for its masked tokens alone.
TEST(Size, TrainingAnEncoder) {
  EncoderOptions options;
  options.vocabulary = 30522;
  options.masked_head = true;
  TrainingShape shape{.batch = 32, .length = 128, .scored = 0.15};
  const double masked = training_bytes(resolve(options), shape);
  shape.scored = 1;
  EXPECT_NEAR(training_bytes(resolve(options), shape) - masked, 4.0 * 2 * (1024 - 615) * 30522 + 4.0 * 2 * 3481 * 256,
              4.0 * 40 * 30522);
}

// hash-pool picks a row for each of 13 chunks of a signature.
TEST(Size, TrainingWithHashPool) {
  const auto bytes_of_a_row = [](TokenEmbeddingKind kind) {
    EncoderOptions options;
    options.three_way_head = true;
    options.embedding.kind = kind;
    const EncoderOptions resolved = resolve(options);
    const TrainingShape shape{.batch = 8, .length = 64}, larger{.batch = 9, .length = 64};
    return training_bytes(resolved, larger) - training_bytes(resolved, shape);
  };
  const double more = bytes_of_a_row(TokenEmbeddingKind::kHashPool) - bytes_of_a_row(TokenEmbeddingKind::kHashAdd);
  EXPECT_DOUBLE_EQ(more, 4.0 * 64 * 13 * EncoderOptions().attention.d_model);
}

TEST(Size, Gpt2HasTheParametersGpt2Has) {
  DecoderOptions options{.vocabulary = 50257, .context = 1024, .layers = 12};
  options.attention = {.d_model = 768, .heads = 12, .projection_bias = true};
  const ModelSize size = measure(resolve(options));
  EXPECT_EQ(size.total_parameters, 124439808);
  EXPECT_EQ(size.cache_elements_per_token, 2 * 768);
  EXPECT_EQ(size.cache_bytes_per_token, 12 * 2 * 768 * 4);
  EXPECT_EQ(parameter_bytes(resolve(options)), 4.0 * 124439808);
  EXPECT_EQ(decoding_bytes(resolve(options), 2, 100), 4.0 * 124439808 + 2 * 100 * 12 * 2 * 768 * 4);
}

TEST(Size, SinusoidsTakeMemoryButAreNotParameters) {
  DecoderOptions options = small_options("mha", PositionKind::kSinusoidal);
  const double before = parameter_bytes(resolve(options));
  const int64_t parameters = measure(resolve(options)).total_parameters;
  options.context += 100;
  EXPECT_EQ(parameter_bytes(resolve(options)), before + 4.0 * 100 * 16);
  EXPECT_EQ(measure(resolve(options)).total_parameters, parameters);
}

// Counting takes no memory, whatever sizes are counted; counts beyond 64 bits are refused.
TEST(Size, LargestOptions) {
  DecoderOptions options{.vocabulary = 1 << 30, .context = 1 << 24, .layers = 1};
  options.attention = {.d_model = 1 << 20, .heads = 1 << 16};
  options.positions = PositionKind::kSinusoidal;
  EXPECT_GT(measure(resolve(options)).total_parameters, int64_t{1} << 50);
  EXPECT_GT(parameter_bytes(resolve(options)), 0x1p52);
  options.layers = 10000;
  options.attention.head_width = 1 << 16;
  EXPECT_THAT(error_message([&] { measure(resolve(options)); }), HasSubstr("a model of 10000 layers with"));
}

TEST(Size, TrainingGrowsWithWhatItIsMadeOf) {
  const auto bytes = [](const std::function<void(DecoderOptions&, TrainingShape&)>& change) {
    DecoderOptions options{.vocabulary = 5000, .layers = 6};
    TrainingShape shape;
    change(options, shape);
    return training_bytes(resolve(options), shape);
  };
  const double plain = bytes([](DecoderOptions&, TrainingShape&) {});
  DecoderOptions options{.vocabulary = 5000, .layers = 6};
  const double parameters = 4.0 * static_cast<double>(measure(resolve(options)).total_parameters);
  EXPECT_GT(plain, 4 * parameters);  // values, gradients, two moments
  EXPECT_LT(bytes([](DecoderOptions&, TrainingShape& s) { s.recompute = true; }), plain);
  EXPECT_EQ(bytes([](DecoderOptions& o, TrainingShape&) { o.dropout = 0.1; }), plain);  // masks are not kept
  EXPECT_EQ(bytes([](DecoderOptions& o, TrainingShape&) { o.attention.attention_dropout = 0.1; }), plain);
  EXPECT_EQ(bytes([](DecoderOptions&, TrainingShape& s) { s.moving_averages = 1; }), plain + parameters);
  const auto batch = [&](int64_t sequences) {
    return bytes([&](DecoderOptions& o, TrainingShape& s) {
      o.tie_embeddings = false;
      s.batch = sequences;
    });
  };
  EXPECT_NEAR(batch(24) - batch(12), 2 * (batch(12) - batch(6)), 1);  // activations double, the rest stays
  // Logits are never held for more than a chunk of tokens.
  const auto vocabulary = [&](int64_t tokens) {
    return bytes([&](DecoderOptions& o, TrainingShape& s) {
      o.vocabulary = tokens;
      s.batch = 1000;
    });
  };
  EXPECT_LT(vocabulary(50000) - vocabulary(5000), 1 << 30);
}

DecoderOptions sized(const std::string& scheme, std::optional<int64_t> key_width = {}) {
  DecoderOptions options{.vocabulary = 256, .context = 64, .layers = 2};
  options.attention = {.scheme = scheme, .d_model = 128, .heads = 8, .key_width = key_width};
  return resolve(options);
}

Tensor some_ids(int64_t batch, int64_t length) {
  return at::arange(batch * length).remainder(256).view({batch, length});
}

TEST(Size, AForwardPassTakesWhatIsEstimated) {
  std::vector<DecoderOptions> all = {sized("collaborative", 2048)};
  for (const std::string& scheme : scheme_names()) all.push_back(sized(scheme));
  const Tensor ids = some_ids(32, 64);
  for (const DecoderOptions& options : all) {
    const Decoder model = small_decoder(options);
    const at::NoGradGuard no_grad;
    const AllocationMeter meter;
    model->token_losses(ids, ids);
    const double share = evaluation_bytes(options, {.batch = 32, .length = 64}) / static_cast<double>(meter.peak());
    EXPECT_THAT(share, testing::AllOf(testing::Gt(1 / 1.5), testing::Lt(1.5)))
        << options.attention.scheme << " of key width " << *options.attention.key_width;
  }
}

TEST(Size, AStepOfAWideKeyWidthTakesWhatIsEstimated) {
  const DecoderOptions options = sized("collaborative", 1024);
  const double parameters = 4.0 * static_cast<double>(measure(options).total_parameters);
  const Tensor ids = some_ids(64, 64);
  const Decoder model = small_decoder(options);
  const AllocationMeter meter;
  model->loss(ids, ids).sum.backward();
  // This test makes gradients, but no values and no moments.
  const double estimate = training_bytes(options, {.batch = 64, .length = 64}) - 3 * parameters;
  EXPECT_NEAR(estimate / static_cast<double>(meter.peak()), 1, 0.34);
}

double estimated_share_of_a_step(NormPlacement norms, Precision precision) {
  EncoderOptions options;
  options.vocabulary = 256;
  options.context = 64;
  options.layers = 8;
  options.attention = {.d_model = 128, .heads = 8, .projection_bias = true};
  options.norms = norms;
  options = resolve(options);
  const double parameters = 4.0 * static_cast<double>(measure(options).total_parameters);
  const Encoder model = small_encoder(options);
  const AllocationMeter meter;
  {
    const ComputeIn computing(precision, at::kCPU);
    model->hidden({.ids = some_ids(32, 64)}).sum().backward();
  }
  const TrainingShape shape{.batch = 32, .length = 64, .scored = 0, .bf16 = precision == Precision::kBf16};
  return (training_bytes(options, shape) - 3 * parameters) / static_cast<double>(meter.peak());
}

TEST(Size, AStepTakesWhatIsEstimatedWhereverNormsStand) {
  for (const NormPlacement norms : {NormPlacement::kBefore, NormPlacement::kAfter}) {
    EXPECT_NEAR(estimated_share_of_a_step(norms, Precision::kFp32), 1, 0.1) << (norms == NormPlacement::kAfter);
    const WidenedProducts narrow(false);
    EXPECT_NEAR(estimated_share_of_a_step(norms, Precision::kBf16), 1, 0.1) << (norms == NormPlacement::kAfter);
  }
}

// If a scheme has two forms, estimates use the form that training uses, here that of many queries.
TEST(Size, EstimatesAskForTheFormThatTrainingUses) {
  const AddedScheme both{latent_scheme()};
  const AddedScheme many{latent_scheme<LatentForms::kManyQueries>("latent_many")};
  const AddedScheme few{latent_scheme<LatentForms::kFewQueries>("latent_few")};
  const TrainingShape shape = {.batch = 1000, .length = 10, .scored = 0};  // a step takes more than an evaluation
  const auto training = [&](const std::string& scheme) {
    return training_bytes(resolve(small_options(scheme)), shape);
  };
  EXPECT_EQ(training("latent"), training("latent_many"));
  EXPECT_NE(training("latent"), training("latent_few"));
  const DecoderOptions decoder = resolve(small_options("latent"));
  expect_counted(small_decoder(decoder));
  const int64_t kept = kLatentWidth + kTurnedWidth;  // for a token in each of two layers, whatever the form
  EXPECT_EQ(decoding_bytes(decoder, 3, 10) - parameter_bytes(decoder), 3 * 10 * 2 * kept * 4);
}

TEST(Size, EvaluationsTakeAboutFourThousandTokensAtOnce) {
  DecoderOptions options{.vocabulary = 8192, .layers = 4};
  EXPECT_EQ(evaluation_batch(resolve(options), {.batch = 8, .length = 256}), 16);
  EXPECT_EQ(evaluation_batch(resolve(options), {.batch = 24, .length = 256}), 24);
  EXPECT_EQ(evaluation_batch(resolve(options), {.batch = 64, .length = 256}), 32);  // 256 MiB of scores
  EXPECT_EQ(evaluation_batch(resolve(options), {.batch = 64, .length = 256, .scored = 0}), 64);
  options.attention.d_model = 4096;  // evaluation takes more than 256 MiB, and less than a step
  options.attention.heads = 32;
  EXPECT_EQ(evaluation_batch(resolve(options), {.batch = 16, .length = 256}), 16);
}

// An earlier version promised 265 MiB for a run with these sizes, and its first evaluation took 10.6 GB.
TEST(Size, EvaluationsOfAWideKeyWidthTakeNoMoreThanAStep) {
  const DecoderOptions options = sized("collaborative", 131072);
  TrainingShape shape{.batch = 1, .length = 64};
  const double promised =
      training_bytes(options, shape) - 16.0 * static_cast<double>(measure(options).total_parameters);
  shape.batch = evaluation_batch(options, shape);
  EXPECT_THAT(shape.batch, testing::AllOf(testing::Ge(1), testing::Le(4)));
  EXPECT_LE(evaluation_bytes(options, shape), promised);
  shape.batch = 64;  // without a limit on the batch
  EXPECT_GT(evaluation_bytes(options, shape), 10 * promised);
}

}  // namespace
}  // namespace headshare
