#include "headshare/models/decoder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

#include "headshare/attention/schemes/mhe_options.h"
#include "headshare/base/testing.h"
#include "headshare/models/size.h"
#include "headshare/models/testing.h"
#include "headshare/ops/precision.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

constexpr PositionKind kPositions[] = {PositionKind::kLearned, PositionKind::kSinusoidal, PositionKind::kRotary,
                                       PositionKind::kAlibi, PositionKind::kNone};

enum class Parts {
  kUsual,
  kModern,  // RMS norms, a gated feed-forward part, and normed queries and keys where the scheme can
  kAlbert,  // layers that share their parameters, a factorised embedding
  kShared,  // layers that share their keys and values
};

std::string parts_name(Parts parts) {
  return parts == Parts::kUsual    ? ""
         : parts == Parts::kModern ? "_modern"
         : parts == Parts::kAlbert ? "_albert"
                                   : "_shared";
}

struct Case {
  std::string scheme;
  PositionKind positions;
  Parts parts = Parts::kUsual;
};

// Lists every scheme with every kind of positions it supports, and once with each set of other parts.
std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const std::string& scheme : scheme_names()) {
    for (const PositionKind positions : kPositions) {
      if (supports(scheme, positions)) all.push_back({scheme, positions});
    }
    const bool rotary = supports(scheme, PositionKind::kRotary);
    for (const Parts parts : {Parts::kModern, Parts::kAlbert}) {
      all.push_back({scheme, rotary ? PositionKind::kRotary : PositionKind::kLearned, parts});
    }
    all.push_back({scheme, PositionKind::kSinusoidal, Parts::kAlbert});
    if (!is_trained(scheme)) continue;
    all.push_back({scheme, rotary ? PositionKind::kRotary : PositionKind::kAlibi, Parts::kShared});
    all.push_back({scheme, PositionKind::kLearned, Parts::kShared});
  }
  return all;
}

class DecoderCase : public testing::TestWithParam<Case> {
 protected:
  static DecoderOptions options() {
    DecoderOptions options = small_options(GetParam().scheme, GetParam().positions);
    if (GetParam().parts == Parts::kModern) {
      options.norm = NormKind::kRms;
      options.feed_forward = FeedForwardKind::kSwiglu;
      // mla norms its latent vectors instead.
      options.attention.qk_norm = is_trained(GetParam().scheme) && GetParam().scheme != "mla";
      options.attention.gate = OutputGate::kElement;
      options.attention.sinks = is_trained(GetParam().scheme);
    }
    if (GetParam().parts == Parts::kAlbert) {
      options.layer_groups = 1;
      options.embedding_width = 6;
    }
    if (GetParam().parts == Parts::kShared) {
      options.layers = 4;
      options.share_kv_layers = 2;
    }
    options.attention.projection_bias = true;
    options.attention.content_bias = true;
    options.init_deviation = 0.3;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(All, DecoderCase, testing::ValuesIn(all_cases()), [](const auto& info) {
  return info.param.scheme + "_" + position_name(info.param.positions) + parts_name(info.param.parts);
});

TEST_P(DecoderCase, CachedDecodingEqualsTheFullPass) {
  const at::NoGradGuard no_grad;
  Decoder model = small_decoder(options());
  randomise(*model);
  model->to(at::kDouble);
  const Tensor ids = random_ids(2, 9, 13);
  const Tensor full = model->logits(model->hidden(ids));
  DecodingState state = model->new_state(9);
  std::vector<Tensor> parts;
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 3}, {3, 1}, {4, 1}, {5, 4}}) {
    parts.push_back(model->logits(model->hidden(ids.narrow(1, first, count), &state)));
  }
  EXPECT_EQ(state.length(), 9);
  EXPECT_TRUE(same(at::cat(parts, 1), full));
}

TEST_P(DecoderCase, TheCacheHoldsWhatMeasureSays) {
  const at::NoGradGuard no_grad;
  const Decoder model = small_decoder(options());
  const ModelSize size = measure(model->options());
  DecodingState state = model->new_state(7);
  model->hidden(random_ids(3, 5, 13), &state);
  for (const KvCache& cache : state.caches) EXPECT_EQ(cache.elements_per_token(), size.cache_elements_per_token);
  EXPECT_EQ(state.allocated_bytes(), 3 * 7 * size.cache_bytes_per_token);
}

TEST_P(DecoderCase, MeasureCountsWhatIsThere) {
  for (const bool tied : {true, false}) {
    DecoderOptions wanted = options();
    wanted.tie_embeddings = tied;
    wanted.layers = 6;
    expect_counted(small_decoder(wanted));
  }
}

// Later tokens must not change earlier predictions.
TEST_P(DecoderCase, IsCausal) {
  const at::NoGradGuard no_grad;
  const Decoder model = small_decoder(options());
  const Tensor ids = random_ids(1, 9, 13);
  Tensor changed = ids.clone();
  changed[0][5] = (changed[0][5] + 1) % 13;
  const Tensor before = model->hidden(ids);
  const Tensor after = model->hidden(changed);
  EXPECT_TRUE(close(after.narrow(1, 0, 5), before.narrow(1, 0, 5), 1e-6));
  EXPECT_GT(distance(after.narrow(1, 5, 1), before.narrow(1, 5, 1)), 1e-3);
}

std::map<std::string, Tensor> gradients(Decoder& model, const Tensor& ids, const Tensor& targets) {
  model->zero_grad();
  model->loss(ids, targets).sum.backward();
  std::map<std::string, Tensor> all;
  for (const Declared& one : declared_parameters(*model)) {
    if (one.tensor.grad().defined()) all[one.name] = one.tensor.grad().clone();
  }
  return all;
}

TEST_P(DecoderCase, RecomputingGivesTheSameGradientsWithDropout) {
  DecoderOptions wanted = options();
  wanted.dropout = 0.3;
  wanted.attention.attention_dropout = 0.2;
  Decoder model = small_decoder(wanted);
  model->train();
  model->clock() = {.seed = 5, .tick = 7};
  const Tensor ids = random_ids(2, 9, 13, 1);
  const Tensor targets = random_ids(2, 9, 13, 2);
  const auto kept = gradients(model, ids, targets);
  model->set_recompute(true);
  const auto again = gradients(model, ids, targets);
  ASSERT_EQ(again.size(), kept.size());
  // A shared layer adds the gradients of its depths in another order when it is recomputed, where one parameter is used
  // twice at each depth.
  const double slack = GetParam().parts == Parts::kAlbert ? 1e-6 : 0;
  for (const auto& [name, gradient] : kept) {
    EXPECT_LE(distance(again.at(name), gradient), slack * magnitude(gradient)) << name;
  }
  model->clock().tick = 8;
  EXPECT_GT(distance(gradients(model, ids, targets).at("token_embedding"), kept.at("token_embedding")), 0)
      << "dropout drew the same masks at another tick";
}

// In every scheme bfloat16 changes results by the order of its epsilon, 2^-8; parameters and their gradients stay
// float32.
TEST_P(DecoderCase, Bf16IsCloseToFp32) {
  Decoder model = small_decoder(options());
  randomise(*model);
  model->train();
  const Tensor ids = random_ids(2, 9, 13, 1);
  const Tensor targets = random_ids(2, 9, 13, 2);
  const double exact = model->loss(ids, targets).sum.item<double>();
  const auto expected = gradients(model, ids, targets);
  const ComputeIn bf16(Precision::kBf16, at::kCPU);
  const double rounded = model->loss(ids, targets).sum.item<double>();
  EXPECT_NE(rounded, exact);
  EXPECT_NEAR(rounded, exact, 0.02 * exact);
  for (const auto& [name, gradient] : gradients(model, ids, targets)) {
    EXPECT_EQ(gradient.scalar_type(), at::kFloat) << name;
    const double gap = (gradient - expected.at(name)).norm().item<double>();
    EXPECT_LT(gap, 0.1 * expected.at(name).norm().item<double>() + 0.02 * exact) << name;
  }
}

TEST_P(DecoderCase, EveryLearnedParameterGetsAGradientAndNoInertOne) {
  Decoder model = small_decoder(options());
  randomise(*model);
  const auto all = gradients(model, random_ids(2, 9, 13, 1), random_ids(2, 9, 13, 2));
  for (const Declared& one : declared_parameters(*model)) {
    if (one.role == Role::kInert) {
      EXPECT_FALSE(all.contains(one.name)) << one.name;
    } else {
      ASSERT_TRUE(all.contains(one.name)) << one.name;
      EXPECT_GT(all.at(one.name).abs().max().item<double>(), 0) << one.name;
    }
  }
}

TEST(Decoder, SchemesShareTheInitialValuesOfWhatTheyShare) {
  expect_shared_starts([](const std::string& scheme) {
    DecoderOptions options = small_options(scheme);
    options.attention.own.get<MheOptions>().deviation =
        0.1;  // sums and factors start with the same values up to a factor
    return small_decoder(options, /*seed=*/9);
  });
}

TEST(Decoder, SeedsStartApart) {
  const Decoder one = small_decoder(small_options("mha"), /*seed=*/9);
  const Decoder other = small_decoder(small_options("mha"), /*seed=*/10);
  EXPECT_FALSE(at::equal(declared_parameters(*one).front().tensor, declared_parameters(*other).front().tensor));
}

// The model has two blocks that only add 1 in each of four dropped branches. With separate masks, sums of 0 to 4
// surviving branches occur; sites that shared a mask would leave some sums out.
TEST(Decoder, EveryDropoutSiteDrawsItsOwnMask) {
  DecoderOptions options = small_options("mha", PositionKind::kNone);
  options.attention.projection_bias = true;
  options.dropout = 0.5;
  Decoder model = small_decoder(options);
  model->train();
  const at::NoGradGuard no_grad;
  for (const Declared& one : declared_parameters(*model)) {
    const bool adds = one.name.ends_with("output.bias") || one.name.ends_with("contract.bias");
    one.tensor.fill_(adds || one.name == "norm.weight" ? 1 : 0);
  }
  const Tensor hidden = model->hidden(random_ids(1, 10, 13))[0];  // [T, E], normed: few distinct values
  size_t most = 0;
  for (int64_t t = 0; t < hidden.size(0); ++t) {
    std::set<int64_t> values;
    for (int64_t i = 0; i < hidden.size(1); ++i) values.insert(std::llround(hidden[t][i].item<double>() * 1000));
    most = std::max(most, values.size());
  }
  EXPECT_EQ(most, 5u);
}

TEST(Decoder, TheLossIsTheSumOfTokenLosses) {
  const at::NoGradGuard no_grad;
  const Decoder model = small_decoder(small_options("mha"));
  const Tensor ids = random_ids(3, 8, 13, 1);
  Tensor targets = random_ids(3, 8, 13, 2);
  targets[1].fill_(kIgnoredTarget);
  targets[2][7] = kIgnoredTarget;
  const SummedLoss loss = model->loss(ids, targets);
  const Tensor each = model->token_losses(ids, targets);
  EXPECT_EQ(loss.tokens, 15);
  EXPECT_EQ(each.sizes(), targets.sizes());
  EXPECT_TRUE(close(loss.sum, each.sum(), 1e-4));
  EXPECT_EQ(each[1].abs().max().item<double>(), 0);

  const Tensor logs = at::log_softmax(model->logits(model->hidden(ids)), -1);  // [B, T, V]
  EXPECT_NEAR(each[0][4].item<double>(), -logs[0][4][targets[0][4].item<int64_t>()].item<double>(), 1e-5);
}

TEST(Decoder, RefusesWhatItsPositionsCannotHold) {
  const at::NoGradGuard no_grad;
  for (const PositionKind positions : kPositions) {
    const Decoder model = small_decoder(small_options("mha", positions));
    const bool bounded = positions == PositionKind::kLearned || positions == PositionKind::kSinusoidal;
    const auto longer = [&] { model->hidden(random_ids(1, 11, 13)); };
    const std::string expected = "the sequence of 11 tokens is longer than the model's context of 10";
    EXPECT_THAT(error_message(longer), HasSubstr(bounded ? expected : "no error")) << position_name(positions);

    DecodingState state = model->new_state(20);
    model->hidden(random_ids(1, 10, 13), &state);
    const auto one_more = [&] { model->hidden(random_ids(1, 1, 13), &state); };
    EXPECT_THAT(error_message(one_more), HasSubstr(bounded ? expected : "no error")) << position_name(positions);
  }
  const Decoder model = small_decoder(small_options("mha"));
  EXPECT_THAT(error_message([&] { model->hidden(at::zeros({3}, at::kLong)); }), HasSubstr("must be int64"));
  EXPECT_THAT(error_message([&] { model->hidden(at::zeros({1, 3}, at::kInt)); }), HasSubstr("must be int64"));
}

TEST(Decoder, SinusoidsAreThoseOfThePaper) {
  const Tensor table = sinusoids(5, 6);
  for (int64_t t = 0; t < 5; ++t) {
    for (int64_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(t) / std::pow(10000.0, 2.0 * static_cast<double>(i) / 6);
      EXPECT_NEAR(table[t][2 * i].item<double>(), std::sin(angle), 1e-6);
      EXPECT_NEAR(table[t][2 * i + 1].item<double>(), std::cos(angle), 1e-6);
    }
  }
}

TEST(Decoder, OptionsThatCannotBe) {
  const auto refused = [](const std::function<void(DecoderOptions&)>& change) {
    DecoderOptions options = small_options("mha");
    change(options);
    return error_message([&] { resolve(options); });
  };
  EXPECT_THAT(refused([](DecoderOptions& o) { o.attention.heads = 7; }),
              HasSubstr("heads must divide d-model: 16 / 7"));
  EXPECT_THAT(refused([](DecoderOptions& o) {
                o.attention.d_model = 15;
                o.attention.heads = 3;
                o.positions = PositionKind::kSinusoidal;
              }),
              HasSubstr("even d-model, not 15"));
  EXPECT_THAT(refused([](DecoderOptions& o) {
                o.embedding_width = 7;
                o.positions = PositionKind::kSinusoidal;
              }),
              HasSubstr("even embedding-width, not 7"));
  EXPECT_THAT(refused([](DecoderOptions& o) {
                o.layers = 6;
                o.layer_groups = 4;
              }),
              HasSubstr("layer-groups must divide layers, so that equally many share: 6 / 4"));
  EXPECT_THAT(refused([](DecoderOptions& o) {
                o.attention.scheme = "el_shared";
                o.positions = PositionKind::kRotary;
              }),
              HasSubstr("which rotary positions cannot be applied to"));
}

}  // namespace
}  // namespace headshare
