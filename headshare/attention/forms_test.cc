// These tests use a scheme with two forms, with one part of a memory that is keys and values, and with vectors of which
// a part turns.
#include <gmock/gmock.h>
#include <torch/autograd.h>

#include "headshare/attention/kernel_choice.h"
#include "headshare/attention/rotary.h"
#include "headshare/attention/schemes/latent_testing.h"
#include "headshare/attention/testing.h"

namespace headshare {
namespace {

constexpr int64_t kModelWidth = 10, kHeadCount = 4,
                  kHeadWidth = 3;  // an odd head width: only what turns has to be even

class FormsTest : public testing::Test {
 protected:
  static std::vector<AttentionOptions> variants(const std::string& scheme = "latent") {
    std::vector<AttentionOptions> all;
    for (int bits = 0; bits < 16; ++bits) {
      AttentionOptions one{.scheme = scheme, .d_model = kModelWidth, .heads = kHeadCount, .head_width = kHeadWidth};
      one.projection_bias = (bits & 1) != 0;
      one.content_bias = (bits & 2) != 0;
      one.alibi = (bits & 4) != 0;
      one.rotary = (bits & 8) != 0;
      if (!one.alibi || !one.rotary) all.push_back(one);
    }
    return all;
  }

  const AddedScheme both_{latent_scheme()};
};

// Computes a layer of the latent scheme under a causal mask head by head, as its formula is written.
Tensor by_formula(const AttentionImpl& layer, const Tensor& x) {
  const AttentionOptions& o = layer.scheme().options();
  const Parameters p = parameters_of(layer.scheme());
  const auto projected = [&](const std::string& name) {
    const Tensor product = x[0].matmul(p.at(name + ".weight").t());
    return o.projection_bias ? product + p.at(name + ".bias") : product;  // [T, width]
  };
  const auto turned = [&](const Tensor& t) {
    const RotaryAngles angles{0, t.size(0), t.size(1), t.size(1), o.rotary_base};
    return o.rotary ? rotate(t.unsqueeze(0).unsqueeze(0), angles)[0][0] : t;
  };
  const int64_t T = x.size(1), width = kHeadWidth + kTurnedWidth;
  const Tensor queries = projected("query"), kept = projected("latent");
  const Tensor c = kept.slice(1, 0, kLatentWidth), t = turned(kept.slice(1, kLatentWidth));
  const Tensor distance = (at::arange(T).unsqueeze(1) - at::arange(T)).abs();
  std::vector<Tensor> heads;
  for (int64_t h = 0; h < kHeadCount; ++h) {
    const Tensor q = queries.slice(1, h * width, (h + 1) * width);
    Tensor scores = q.slice(1, 0, kHeadWidth).matmul(c.matmul(p.at("key")[h].t()).t()) +
                    turned(q.slice(1, kHeadWidth)).matmul(t.t());
    if (o.content_bias) scores = scores + x[0].mv(p.at("content_bias")[h]);
    scores = scores / std::sqrt(static_cast<double>(kHeadWidth));
    if (o.alibi) scores = scores - alibi_slopes(kHeadCount)[h] * distance;
    scores = scores.masked_fill(at::ones({T, T}, at::kBool).tril().logical_not(), -INFINITY);
    heads.push_back(scores.softmax(1).matmul(c).matmul(p.at("value")[h].t()));
  }
  const Tensor output = at::cat(heads, 1).matmul(p.at("output.weight").t());
  return (o.projection_bias ? output + p.at("output.bias") : output).unsqueeze(0);
}

// Returns the merged heads of a problem in a form.
Tensor attended(const Scheme& scheme, const Tensor& queries, const Memory& memory, Form form) {
  const Posed posed = scheme.posed(queries, memory, form);
  EXPECT_EQ(posed.form, form);
  const HeadMask mask = {.causal = true};
  return scheme.merge(posed, attend(posed.problem, mask, {}), live_queries(posed.problem, mask));
}

TEST_F(FormsTest, IsTheFormula) {
  for (const AttentionOptions& one : variants()) {
    const Attention layer = random_attention(one);
    const Tensor x = random_tensor({1, 7, kModelWidth}, 51);
    EXPECT_TRUE(same(layer->self(x, {.causal = true}), by_formula(*layer, x)));
  }
}

TEST_F(FormsTest, BothFormsGiveTheSameOutputAndGradients) {
  for (const AttentionOptions& one : variants()) {
    for (const int64_t queries : {1, 3, 8}) {
      const Attention layer = random_attention(one);
      const Scheme& scheme = layer->scheme();
      const Tensor y = random_tensor({2, 8, kModelWidth}, 52).requires_grad_();
      std::vector<Tensor> leaves = {y};
      for (const Declared& parameter : declared_parameters(scheme)) leaves.push_back(parameter.tensor);
      const auto run = [&](Form form) {
        const Tensor q = scheme.project_queries(y.slice(1, 8 - queries), /*first=*/8 - queries);
        Tensor output = attended(scheme, q, scheme.remember(y, 0), form);
        const Tensor loss = (output * random_tensor(output.sizes(), 53)).sum();
        return std::pair(output, torch::autograd::grad({loss}, leaves));
      };
      const auto [many, many_gradients] = run(Form::kManyQueries);
      const auto [few, few_gradients] = run(Form::kFewQueries);
      EXPECT_TRUE(same(few, many));
      for (size_t i = 0; i < leaves.size(); ++i) EXPECT_TRUE(same(few_gradients[i], many_gradients[i])) << i;
    }
  }
}

TEST_F(FormsTest, DecodingThroughBothFormsEqualsTheFullPass) {
  const at::NoGradGuard no_grad;
  for (const AttentionOptions& one : variants()) {
    const Attention layer = random_attention(one);
    const Tensor x = random_tensor({2, 9, kModelWidth}, 54);
    const Tensor full = layer->self(x, {.causal = true});
    for (const std::vector<int64_t>& pieces : {std::vector<int64_t>(9, 1), std::vector<int64_t>{4, 1, 3, 1}}) {
      KvCache cache(/*capacity=*/9);
      std::vector<Tensor> outputs;
      int64_t first = 0;
      for (const int64_t count : pieces) {
        outputs.push_back(layer->self(x.slice(1, first, first + count), {.causal = true}, &cache));
        first += count;
      }
      EXPECT_TRUE(same(at::cat(outputs, 1), full));
      EXPECT_EQ(cache.contents().size(), one.content_bias ? 2 : 1);
      EXPECT_EQ(cache.elements_per_token(), layer->scheme().cost().cache_elements);
    }
  }
  const Attention layer = random_attention(variants().front());
  EXPECT_EQ(layer->scheme().form_for(9, 9), Form::kManyQueries);
  EXPECT_EQ(layer->scheme().form_for(1, 9), Form::kFewQueries);
}

TEST_F(FormsTest, CrossAttentionDecodesFromWhatItKeeps) {
  const at::NoGradGuard no_grad;
  const Attention layer = random_attention(variants().front());
  const Tensor x = random_tensor({6, 1, kModelWidth}, 55),
               y = random_tensor({2, 9, kModelWidth}, 56);  // three beams a sentence
  KvCache cache(/*capacity=*/0);
  const Tensor expected = layer->cross(x, y, {});
  for (int step = 0; step < 2; ++step) EXPECT_TRUE(at::equal(layer->cross(x, y, {}, &cache), expected));
  const Tensor queries = layer->scheme().project_queries(x.view({2, 3, kModelWidth}), 0);
  const Posed posed = layer->scheme().posed(queries, layer->scheme().remember(y, 0), Form::kManyQueries);
  const Tensor by_many = layer->scheme().merge(posed, attend(posed.problem, {}, {}), Tensor());
  EXPECT_TRUE(same(expected, by_many.view({6, 1, kModelWidth})));
}

TEST_F(FormsTest, OnePartIsKeysAndValuesWithoutACopy) {
  const at::NoGradGuard no_grad;
  Attention layer = random_attention(variants().back());
  layer->to(at::kFloat);
  KvCache cache(/*capacity=*/20);
  layer->self(random_tensor({2, 19, kModelWidth}, 57, at::kFloat), {.causal = true}, &cache);
  const Tensor q = layer->scheme().project_queries(random_tensor({2, 1, kModelWidth}, 58, at::kFloat), 19);
  const HeadProblem problem = layer->scheme().posed(q, cache.contents()).problem;
  EXPECT_EQ(problem.key.data_ptr(), cache.contents()[0].data_ptr());
  EXPECT_EQ(problem.value.data_ptr(), cache.contents()[0].data_ptr());
  EXPECT_EQ(problem.key.size(3), kLatentWidth + kTurnedWidth);
  EXPECT_EQ(problem.value.size(3), kLatentWidth);
}

// Our kernels in float32 read rows that are wider than the part they need.
TEST_F(FormsTest, KernelsReadSlicesOfTheCache) {
  const at::NoGradGuard no_grad;
  for (const AttentionOptions& one : variants()) {
    Attention layer = random_attention(one);
    const Tensor x = random_tensor({2, 33, kModelWidth}, 59);
    const Tensor exact = layer->self(x, {.causal = true}).slice(1, 32);
    layer->to(at::kFloat);
    KvCache cache(/*capacity=*/40);
    layer->self(x.slice(1, 0, 32).to(at::kFloat), {.causal = true}, &cache);
    const Tensor found = layer->self(x.slice(1, 32).to(at::kFloat), {.causal = true}, &cache);
    EXPECT_TRUE(close(found.to(at::kDouble), exact, 1e-5 * magnitude(exact)));
    EXPECT_EQ(kernel_choice(one, {.queries = 1, .keys = 33}, at::kCPU).backend, "decode");
    EXPECT_EQ(kernel_choice(one, {.queries = 33, .keys = 33, .causal = true}, at::kCPU).backend, "fused");
  }
}

TEST_F(FormsTest, OnlyWhatTurnsHasToBeEven) {
  AttentionOptions options{
      .scheme = "latent", .d_model = kModelWidth, .heads = kHeadCount, .head_width = kHeadWidth, .rotary = true};
  EXPECT_EQ(compared_width(resolve(options)), kHeadWidth + kTurnedWidth);
  EXPECT_EQ(rotated_width(resolve(options)), kTurnedWidth);
  options.scheme = "mha";
  EXPECT_THROW(resolve(options), Error);
}

}  // namespace
}  // namespace headshare
