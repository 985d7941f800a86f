// These tests rewrite one scheme as another (docs/mathematics.md#identities), by copying weights.
#include <gmock/gmock.h>

#include "headshare/attention/schemes/gqa.h"
#include "headshare/attention/schemes/mhe_options.h"
#include "headshare/attention/testing.h"
#include "headshare/base/testing.h"

namespace headshare {
namespace {

constexpr int64_t kE = 6, kH = 4, kD = 2;

AttentionOptions options_of(const std::string& scheme, bool biases = true) {
  return {.scheme = scheme, .d_model = kE, .heads = kH, .head_width = kD, .projection_bias = biases};
}

// Expects two layers to agree where they must: in self-attention with masks, and in cross-attention unless rotated.
void expect_equal(const Attention& one, const Attention& other) {
  const at::NoGradGuard no_grad;
  const Tensor x = random_tensor({2, 5, kE}, 21), y = random_tensor({2, 4, kE}, 22);
  Tensor visible = at::ones({2, 5}, at::kBool);
  visible[0].slice(0, 0, 2).fill_(false);
  EXPECT_TRUE(same(one->self(x, {}), other->self(x, {})));
  EXPECT_TRUE(same(one->self(x, {.causal = true, .visible_keys = visible}),
                   other->self(x, {.causal = true, .visible_keys = visible})));
  const AttentionOptions& options = one->scheme().options();
  if (options.rotary || options.alibi) return;
  EXPECT_TRUE(same(one->cross(x, y, {}), other->cross(x, y, {})));
}

void expect_different(const Attention& one, const Attention& other) {
  const at::NoGradGuard no_grad;
  const Tensor x = random_tensor({2, 5, kE}, 21);
  EXPECT_GT(distance(one->self(x, {}), other->self(x, {})), 1e-3);
}

void set(const Attention& layer, const std::string& name, const Tensor& value) {
  const at::NoGradGuard no_grad;
  parameters_of(layer->scheme()).at(name).copy_(value);
}

Tensor get(const Attention& layer, const std::string& name) { return parameters_of(layer->scheme()).at(name); }

// Copies every parameter that `to` has under the same name; the caller writes the rest.
void copy_shared(const Attention& from, const Attention& to) {
  const Parameters source = parameters_of(from->scheme());
  for (const auto& [name, tensor] : parameters_of(to->scheme())) {
    if (source.count(name) > 0 && source.at(name).sizes() == tensor.sizes()) set(to, name, source.at(name));
  }
}

// Repeats x [D, ...] for every head -> [H D, ...].
Tensor tiled(const Tensor& x) { return at::cat(std::vector<Tensor>(kH, x)); }

TEST(Identities, MheWithZeroEmbeddingsIsSha) {
  for (const std::string scheme : {"mhe_add", "mhe_mul"}) {
    for (const bool rotary : {false, true}) {
      AttentionOptions options = options_of(scheme);
      options.rotary = rotary;
      options.content_bias = true;
      const Attention mhe = random_attention(options, 1);
      options.scheme = "sha";
      const Attention sha = random_attention(options, 2);
      expect_different(mhe, sha);
      copy_shared(mhe, sha);
      for (const char* name : {"query_embedding", "key_embedding", "value_embedding"}) {
        set(mhe, name, at::zeros({kH, kD}));
      }
      expect_equal(mhe, sha);
    }
  }
}

TEST(Identities, KeyEmbeddingOfMheAddIsInertUnlessRotated) {
  for (const bool rotary : {false, true}) {
    AttentionOptions options = options_of("mhe_add");
    options.rotary = rotary;
    const Attention one = random_attention(options, 1), other = random_attention(options, 1);
    set(other, "key_embedding", at::zeros({kH, kD}));
    rotary ? expect_different(one, other) : expect_equal(one, other);
    // The formula itself, which does read it, says the same.
    const at::NoGradGuard no_grad;
    const Tensor x = random_tensor({2, 5, kE}, 21);
    const double gap =
        distance(NaiveAttention(*one).run(x, x, /*causal=*/true), NaiveAttention(*other).run(x, x, /*causal=*/true));
    EXPECT_EQ(gap > 1e-3, rotary);
    EXPECT_EQ(gap > 1e-13, rotary);
  }
}

TEST(Identities, ValueEmbeddingOfMheAddIsAnOutputBias) {
  const Attention one = random_attention(options_of("mhe_add"), 1);
  const Attention other = random_attention(options_of("mhe_add"), 1);
  const Tensor moved = get(one, "output.weight").mv(get(one, "value_embedding").flatten());  // sum_h eV_h O_h
  set(other, "value_embedding", at::zeros({kH, kD}));
  set(other, "output.bias", get(one, "output.bias") + moved);
  const at::NoGradGuard no_grad;
  const Tensor x = random_tensor({2, 5, kE}, 21);
  EXPECT_TRUE(same(one->self(x, {.causal = true}), other->self(x, {.causal = true})));
}

TEST(Identities, MheAddIsShaWithOneQueryBiasPerHead) {
  const Attention mhe = random_attention(options_of("mhe_add"), 1);
  const Attention mha = random_attention(options_of("mha"), 2);
  copy_shared(mhe, mha);
  for (const char* map : {"query", "key", "value"}) {
    const std::string name = map;
    set(mha, name + ".weight", tiled(get(mhe, name + ".weight")));
    set(mha, name + ".bias", tiled(get(mhe, name + ".bias")) + get(mhe, name + "_embedding").flatten());
  }
  expect_equal(mhe, mha);
}

TEST(Identities, MheAddIsShaWithAContentBias) {
  AttentionOptions options = options_of("mhe_add");
  const Attention mhe = random_attention(options, 1);
  options.scheme = "sha";
  options.content_bias = true;
  const Attention sha = random_attention(options, 2);
  copy_shared(mhe, sha);
  set(mhe, "value_embedding", at::zeros({kH, kD}));
  set(sha, "content_bias", get(mhe, "query_embedding").matmul(get(mhe, "key.weight")));  // u_h = W_K eQ_h
  expect_equal(mhe, sha);
}

TEST(Identities, MheMulIsCollaborativeAttention) {
  for (const double offset : {1.0, 0.0}) {
    AttentionOptions options = options_of("mhe_mul");
    options.own.get<MheMulOptions>().offset = offset;
    options.content_bias = true;
    const Attention mhe = random_attention(options, 1);
    options.scheme = "collaborative";
    options.scale = mhe->scheme().options().scale;
    options.key_width = kD;
    const Attention mixed = random_attention(options, 2);
    copy_shared(mhe, mixed);
    set(mixed, "mixing", (get(mhe, "query_embedding") + offset) * (get(mhe, "key_embedding") + offset));
    const Tensor factor = (get(mhe, "value_embedding") + offset).flatten();  // [H D]
    set(mixed, "value.weight", tiled(get(mhe, "value.weight")) * factor.unsqueeze(1));
    set(mixed, "value.bias", tiled(get(mhe, "value.bias")) * factor);
    expect_equal(mhe, mixed);
  }
}

// Returns [H, R] with ones where column r belongs to head h.
Tensor block_indicator(int64_t R) {
  Tensor mixing = at::zeros({kH, R}, at::kDouble);
  for (int64_t h = 0; h < kH; ++h) mixing[h].slice(0, h * R / kH, (h + 1) * R / kH).fill_(1);
  return mixing;
}

TEST(Identities, MhaWithBiasesIsCollaborativeWithContentBiasAndNoKeyBias) {
  for (const int64_t R : {kH * kD, kH}) {  // full width and the narrowed concatenation
    AttentionOptions options = options_of("mha");
    options.key_width = R;
    const Attention mha = random_attention(options, 1);
    options.scheme = "collaborative";
    options.content_bias = true;
    options.scale = mha->scheme().options().scale;  // the source layer's temperature
    const Attention mixed = random_attention(options, 2);
    copy_shared(mha, mixed);
    set(mixed, "mixing", block_indicator(R));
    set(mixed, "query.bias", at::zeros({R}));
    set(mixed, "key.bias", at::zeros({R}));
    const Tensor keys = get(mha, "key.weight").view({kH, R / kH, kE});
    const Tensor bias = get(mha, "query.bias").view({kH, R / kH, 1});
    set(mixed, "content_bias", (keys * bias).sum(1));  // v_h = W_K^h b_Q^h
    expect_equal(mha, mixed);
  }
}

TEST(Identities, CollaborativeScaleDoesNotFollowItsWidth) {
  for (const int64_t R : {2, 6, 8}) {
    AttentionOptions options = options_of("collaborative");
    options.key_width = R;
    EXPECT_DOUBLE_EQ(*resolve(options).scale, std::sqrt(static_cast<double>(kH) / kE));
  }
}

TEST(Identities, ElLosslessIsMhaWithTheSameWeights) {
  for (const int64_t R : {kH * kD, kH}) {
    for (const int bits : {0, 1, 2, 4, 7}) {
      AttentionOptions options = options_of("mha");
      options.key_width = R;
      options.content_bias = (bits & 1) != 0;
      if ((bits & 2) != 0) options.gate = OutputGate::kElement;
      options.sinks = (bits & 4) != 0;
      if (options.sinks) {
        options.projection_bias = true;
        options.scheme = "el_lossless";
        EXPECT_THAT(error_message([&] { resolve(options); }), testing::HasSubstr("--attention-sinks has to weigh"));
        options.scheme = "mha";
        options.projection_bias = false;
      }
      const Attention mha = random_attention(options, 1);
      options.scheme = "el_lossless";
      const Attention lossless = random_attention(options, 2);
      expect_different(mha, lossless);
      EXPECT_EQ(parameters_of(*mha).size(), parameters_of(*lossless).size());
      copy_shared(mha, lossless);
      expect_equal(mha, lossless);
    }
  }
}

TEST(Identities, ShaIsMhaWithTiledMapsAndOneNarrowHead) {
  for (const bool rotary : {false, true}) {
    AttentionOptions options = options_of("sha");
    options.rotary = rotary;
    const Attention sha = random_attention(options, 1);
    options.scheme = "mha";
    const Attention mha = random_attention(options, 2);
    copy_shared(sha, mha);
    for (const char* name : {"query.weight", "key.weight", "value.weight", "query.bias", "key.bias", "value.bias"}) {
      set(mha, name, tiled(get(sha, name)));
    }
    expect_equal(sha, mha);

    options.heads = 1;  // the exact fold: O' = sum_h O_h
    const Attention folded = random_attention(options, 3);
    copy_shared(sha, folded);
    set(folded, "output.weight", get(sha, "output.weight").view({kE, kH, kD}).sum(1));
    expect_equal(sha, folded);
  }
}

TEST(Identities, GroupsSpanFromMqaToMha) {
  for (const bool rotary : {false, true}) {
    AttentionOptions options = options_of("gqa");
    options.rotary = rotary;
    options.own.get<GqaOptions>().groups = kH;
    const Attention all = random_attention(options, 1);
    options.own.get<GqaOptions>().groups = 1;
    const Attention single = random_attention(options, 1);
    options.scheme = "mha";
    const Attention mha = random_attention(options, 2);
    copy_shared(all, mha);
    expect_equal(all, mha);
    options.scheme = "mqa";
    const Attention mqa = random_attention(options, 2);
    copy_shared(single, mqa);
    expect_equal(single, mqa);
  }
}

// Writes the maps of mha's heads as what lrkv shares, here nothing, and as residuals of full rank.
void write_full_residuals(const Attention& mha, const std::string& name, const Attention& lrkv) {
  set(lrkv, name + ".weight", at::cat({at::zeros({kD, kE}), get(mha, name + ".weight")}));
  set(lrkv, name + ".bias", at::cat({at::zeros({kD}), get(mha, name + ".bias")}));
  set(lrkv, name + "_residual", at::eye(kD).expand({kH, kD, kD}));
}

TEST(Identities, LrkvOfFullRankIsMha) {
  for (const int bits : {0, 1, 2, 3}) {
    AttentionOptions options = options_of("mha");
    options.rotary = (bits & 1) != 0;
    options.qk_norm = options.sinks = (bits & 2) != 0;
    const Attention mha = random_attention(options, 1);
    options.scheme = "lrkv";
    const Attention lrkv = random_attention(with_option(options, "kv-rank", std::to_string(kD)), 2);
    copy_shared(mha, lrkv);
    for (const char* name : {"key", "value"}) write_full_residuals(mha, name, lrkv);
    expect_equal(mha, lrkv);
  }
}

// A head of mhe_add adds a residual to keys and values that depends on no token.
TEST(Identities, LrkvWithConstantResidualsHasTheKeysAndValuesOfMheAdd) {
  for (const int bits : {0, 1, 2, 3}) {
    AttentionOptions options = options_of("mhe_add");
    options.rotary = (bits & 1) != 0;
    options.sinks = (bits & 2) != 0;
    const Attention mhe = random_attention(options, 1);
    options.scheme = "lrkv";
    const Attention lrkv = random_attention(with_option(options, "kv-rank", "1"), 2);
    copy_shared(mhe, lrkv);
    set(lrkv, "query.weight", tiled(get(mhe, "query.weight")));
    set(lrkv, "query.bias", tiled(get(mhe, "query.bias")) + get(mhe, "query_embedding").flatten());
    for (const std::string name : {"key", "value"}) {
      set(lrkv, name + ".weight", at::cat({get(mhe, name + ".weight"), at::zeros({kH, kE})}));
      set(lrkv, name + ".bias", at::cat({get(mhe, name + ".bias"), at::ones({kH})}));
      set(lrkv, name + "_residual", get(mhe, name + "_embedding").unsqueeze(1));
    }
    expect_equal(mhe, lrkv);
  }
}

TEST(Identities, LrkvWithoutResidualsIsMqa) {
  for (const bool rotary : {false, true}) {
    AttentionOptions options = options_of("mqa");
    options.rotary = rotary;
    const Attention mqa = random_attention(options, 1);
    options.scheme = "lrkv";
    const Attention lrkv = random_attention(options, 2);
    expect_different(mqa, lrkv);
    copy_shared(mqa, lrkv);
    for (const std::string name : {"key", "value"}) {
      for (const char* part : {".weight", ".bias"}) {
        const Tensor shared = get(mqa, name + part);
        Tensor all = get(lrkv, name + part).clone();
        all.slice(0, 0, kD).copy_(shared);
        set(lrkv, name + part, all);
      }
      set(lrkv, name + "_residual", at::zeros({kH, 1, kD}));
    }
    expect_equal(mqa, lrkv);
  }
}

// Returns a layer of shared_query with the shared maps of `from` and a map for each head.
Attention shared_query_of(const Attention& from, const std::string& map, const std::string& rank = "auto") {
  AttentionOptions options = from->scheme().options();
  options.scheme = "shared_query";
  options = with_option(with_option(options, "query-map", map), "query-rank", rank);
  const Attention layer = random_attention(options, 2);
  copy_shared(from, layer);
  return layer;
}

TEST(Identities, SharedQueryWithoutMapsIsSha) {
  for (const int bits : {0, 1, 2, 3}) {
    AttentionOptions options = options_of("sha");
    options.rotary = (bits & 1) != 0;
    options.content_bias = (bits & 2) != 0;
    const Attention sha = random_attention(options, 1);
    expect_equal(sha, shared_query_of(sha, "identity"));
    expect_different(sha, shared_query_of(sha, "diagonal"));
  }
}

TEST(Identities, SharedQueryWithBiasesIsTheQueryPartOfMheAdd) {
  for (const bool rotary : {false, true}) {
    AttentionOptions options = options_of("mhe_add");
    options.rotary = rotary;
    const Attention mhe = random_attention(options, 1);
    for (const char* name : {"key_embedding", "value_embedding"}) set(mhe, name, at::zeros({kH, kD}));
    const Attention shared = shared_query_of(mhe, "bias");
    set(shared, "query_map", get(mhe, "query_embedding"));
    expect_equal(mhe, shared);
  }
}

TEST(Identities, SharedQueryWithFactorsIsTheQueryPartOfMheMul) {
  for (const bool rotary : {false, true}) {
    AttentionOptions options = options_of("mhe_mul");
    options.rotary = rotary;
    const Attention mhe = random_attention(options, 1);
    set(mhe, "value_embedding", at::zeros({kH, kD}));
    if (rotary) set(mhe, "key_embedding", at::zeros({kH, kD}));  // a rotation keeps a key's factors from the query
    const Attention shared = shared_query_of(mhe, "diagonal");
    set(shared, "query_map", (get(mhe, "query_embedding") + 1) * (get(mhe, "key_embedding") + 1) - 1);
    expect_equal(mhe, shared);
  }
}

TEST(Identities, SharedQueryWithFullMapsIsMqaWithFactorisedQueries) {
  for (const int64_t width : {kD, kE}) {
    AttentionOptions options = options_of("mqa");
    options.rotary = true;
    const Attention mqa = random_attention(options, 1);
    options.scheme = "shared_query";
    options = with_option(options, "query-width", std::to_string(width));
    const Attention shared = random_attention(options, 2);
    for (const char* name : {"key.weight", "key.bias", "value.weight", "value.bias", "output.weight", "output.bias"}) {
      set(shared, name, get(mqa, name));
    }
    const Tensor maps = get(shared, "query_map");
    set(mqa, "query.weight", maps.matmul(get(shared, "query.weight")));
    set(mqa, "query.bias", maps.mv(get(shared, "query.bias")));
    expect_equal(mqa, shared);
  }
}

// Each map of the ladder is one of the next.
TEST(Identities, MapsOfSharedQueriesContainEachOther) {
  AttentionOptions options = options_of("sha");
  options.rotary = true;
  const Attention sha = random_attention(options, 1);
  const Attention mixed = shared_query_of(sha, "complex"), blocks = shared_query_of(sha, "blocks");
  const Tensor m = get(mixed, "query_map"), real = m.slice(1, 0, kD / 2), imaginary = m.slice(1, kD / 2);
  set(blocks, "query_map", at::stack({at::cat({real, -imaginary}, 1), at::cat({imaginary, real}, 1)}, 1));
  expect_equal(mixed, blocks);

  const Attention low_rank = shared_query_of(sha, "low_rank", std::to_string(kD)), full = shared_query_of(sha, "full");
  const Tensor columns = get(low_rank, "query_inner.weight").view({kH, kD, kD}).transpose(1, 2);  // U_h
  const Tensor matrices = at::eye(kD, at::kDouble) + columns.matmul(get(low_rank, "query_map"));
  set(full, "query_map", matrices.transpose(1, 2).reshape({kH * kD, kD}));
  expect_equal(low_rank, full);
}

// A head that multiplies pairs of its key by complex numbers multiplies those of its query by their conjugates. That
// holds under rotations, so that one turned key serves all heads; factors of single dimensions do not commute with
// them.
TEST(Identities, ComplexMapsOfKeysFoldIntoTheQueryUnderRotation) {
  for (const bool is_complex : {true, false}) {
    AttentionOptions options = options_of("sha");
    options.rotary = true;
    const Attention sha = random_attention(options, 1);
    const Attention shared = shared_query_of(sha, is_complex ? "complex" : "diagonal");
    options.scheme = "mha";
    const Attention mha = random_attention(options, 2);
    copy_shared(sha, mha);
    const Tensor map = get(shared, "query_map");
    for (const char* part : {".weight", ".bias"}) {
      for (const std::string name : {"query", "value"}) set(mha, name + part, tiled(get(sha, name + part)));
      std::vector<Tensor> keys;  // k conj(m) = (a + ib)(c - id)
      for (int64_t h = 0; h < kH; ++h) {
        const Tensor a = get(sha, std::string("key") + part)[0], b = get(sha, std::string("key") + part)[1];
        const Tensor c = map[h][0], d = map[h][1];
        is_complex ? keys.insert(keys.end(), {a * c + b * d, b * c - a * d})
                   : keys.insert(keys.end(), {a * (1 + c), b * (1 + d)});
      }
      set(mha, std::string("key") + part, at::stack(keys));
    }
    is_complex ? expect_equal(shared, mha) : expect_different(shared, mha);
  }
}

TEST(Identities, SharedQueryIsCollaborativeWithOneValueMap) {
  for (const bool is_complex : {false, true}) {
    AttentionOptions options = options_of("sha");
    options.rotary = is_complex;
    const Attention sha = random_attention(options, 1);
    const Attention shared = shared_query_of(sha, is_complex ? "complex" : "diagonal");
    options.scheme = "collaborative";
    options.scale = sha->scheme().options().scale;
    options.key_width = kD;
    if (is_complex) options = with_option(options, "rotary-width", std::to_string(kD));
    const Attention mixed = random_attention(options, 3);
    copy_shared(sha, mixed);
    set(mixed, "mixing", get(shared, "query_map") + (is_complex ? 0 : 1));
    for (const char* name : {"value.weight", "value.bias"}) set(mixed, name, tiled(get(sha, name)));
    expect_equal(shared, mixed);
  }
}

// Returns the layer of mla with `options` that a group of heads of `whole`, which has a latent vector for it, is by
// itself. The first has the output bias.
Attention group_of_latents(const Attention& whole, AttentionOptions options, int64_t groups, int64_t group) {
  options.heads /= groups;
  const Attention part = random_attention(options, 3);
  const auto rows = [&](const std::string& name) { return get(whole, name).chunk(groups)[static_cast<size_t>(group)]; };
  for (const char* name : {"query.weight", "query.bias", "key.weight", "value.weight"}) set(part, name, rows(name));
  const int64_t R = get(whole, "key.weight").size(1);
  for (const char* name : {"latent.weight", "latent.bias"}) {
    const Tensor all = get(whole, name);
    set(part, name, at::cat({all.slice(0, group * R, (group + 1) * R), all.slice(0, groups * R)}));
  }
  set(part, "latent_norm.weight", get(whole, join_text("latent_norm_", group, ".weight")));
  set(part, "output.weight", get(whole, "output.weight").chunk(groups, 1)[static_cast<size_t>(group)]);
  set(part, "output.bias", get(whole, "output.bias") * (group == 0 ? 1 : 0));
  return part;
}

TEST(Identities, GroupsOfSeveralLatentsAreLayersWhoseOutputsAddUp) {
  const at::NoGradGuard no_grad;
  for (const bool rotary : {false, true}) {
    for (const int64_t groups : {int64_t{2}, kH}) {
      AttentionOptions options = with_option(options_of("mla"), "kv-latent-width", "2");
      options.rotary = rotary;
      const Attention whole = random_attention(with_option(options, "kv-latents", std::to_string(groups)), 1);
      const Tensor x = random_tensor({2, 5, kE}, 21);
      Tensor sum = at::zeros_like(x);
      for (int64_t i = 0; i < groups; ++i)
        sum = sum + group_of_latents(whole, options, groups, i)->self(x, {.causal = true});
      EXPECT_TRUE(same(whole->self(x, {.causal = true}), sum));
    }
  }
}

TEST(Identities, ElSharedIsSkvWithColumnsOfTheIdentity) {
  AttentionOptions options = {.scheme = "el_shared", .d_model = kE, .heads = 3};
  const Attention shared = random_attention(options, 1);
  options.scheme = "skv";
  const Attention skv = random_attention(options, 2);
  copy_shared(shared, skv);
  set(skv, "key_value.weight", at::eye(kE));
  expect_equal(shared, skv);
}

// Returns one head's map for every head of its group -> [H D, ...].
Tensor for_each_head(const Tensor& maps, int64_t groups) {
  return at::cat([&] {
    std::vector<Tensor> heads;
    for (int64_t h = 0; h < kH; ++h) heads.push_back(maps.chunk(groups)[static_cast<size_t>(h * groups / kH)]);
    return heads;
  }());
}

TEST(Identities, SkvOfGroupsIsSkvWithRepeatedMaps) {
  for (const int bits : {0, 1, 2, 3}) {
    for (const int64_t groups : {1, 2, 4}) {
      AttentionOptions options = options_of("skv");
      options.rotary = (bits & 1) != 0;
      if (options.rotary && (bits & 2) != 0) options = with_option(options, "skv-rotary", "counter");
      const Attention all = random_attention(options, 1);
      const Attention some = random_attention(with_option(options, "kv-heads", std::to_string(groups)), 2);
      copy_shared(some, all);
      for (const char* name : {"key_value.weight", "key_value.bias"})
        set(all, name, for_each_head(get(some, name), groups));
      expect_equal(all, some);
    }
  }
}

// Keys that are values, with one map for each head, are multi-head attention whose value map is its key map.
TEST(Identities, SkvThatTurnsKeysAloneIsMhaWithOneMapForBoth) {
  AttentionOptions options = options_of("skv");
  options.rotary = true;
  const Attention skv = random_attention(options, 1);
  const Attention counter = random_attention(with_option(options, "skv-rotary", "counter"), 1);
  expect_different(skv, counter);
  options.scheme = "mha";
  const Attention mha = random_attention(options, 2);
  copy_shared(skv, mha);
  for (const char* part : {".weight", ".bias"}) {
    for (const char* map : {"key", "value"})
      set(mha, std::string(map) + part, get(skv, std::string("key_value") + part));
  }
  expect_equal(skv, mha);
}

// A split key without content is a single turned key, beside values of each group.
TEST(Identities, SplitSkvWithoutContentInQueriesIsOneTurnedKey) {
  AttentionOptions options = options_of("skv");
  options.head_width = 4;
  options.rotary = true;
  const Attention split = random_attention(with_option(options, "skv-rotary", "split"), 1);
  const Tensor kept = at::tensor({0.0, 0.0, 1.0, 1.0}).repeat({kH});  // of queries: what turns
  set(split, "query.weight", get(split, "query.weight") * kept.unsqueeze(1));
  set(split, "query.bias", get(split, "query.bias") * kept);
  options = with_option(with_option(options, "key-heads", "1"), "value-heads", std::to_string(kH));
  options.scheme = "gqa";
  options.rotary_dimensions = 2;
  const Attention gqa = random_attention(options, 2);
  copy_shared(split, gqa);
  for (const char* part : {".weight", ".bias"}) {
    const Tensor turned = get(split, std::string("turned_key") + part);
    set(gqa, std::string("key") + part, at::cat({at::zeros_like(turned), turned}));
    set(gqa, std::string("value") + part, get(split, std::string("key_value") + part));
  }
  expect_equal(split, gqa);
}

TEST(Identities, SharedQueryKeyIsMhaWithOneMapForBoth) {
  for (const bool rotary : {false, true}) {
    AttentionOptions options = with_option(options_of("skv"), "shared-qk", "true");
    options.rotary = rotary;
    const Attention shared = random_attention(options, 1);
    options.scheme = "mha";
    const Attention mha = random_attention(options, 2);
    copy_shared(shared, mha);
    for (const char* map : {"query", "key"}) {
      set(mha, std::string(map) + ".weight", get(shared, "query_key.weight"));
      set(mha, std::string(map) + ".bias", get(shared, "query_key.bias"));
    }
    expect_equal(shared, mha);
  }
}

TEST(Identities, ALonelyContentBiasOfZeroChangesNothing) {
  for (const SchemeCase& one : scheme_cases()) {
    SCOPED_TRACE(one.name);
    AttentionOptions options = one.options;
    if (options.d_model != kE) continue;
    const Attention plain = random_attention(options, 1);
    options.content_bias = true;
    const Attention biased = random_attention(options, 1);
    expect_different(plain, biased);
    set(biased, "content_bias", at::zeros({kH, kE}));
    expect_equal(plain, biased);
  }
}

}  // namespace
}  // namespace headshare
