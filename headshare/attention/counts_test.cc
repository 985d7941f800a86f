// These tests compare parameters and cache sizes with docs/mathematics.md#overview and the counts that the MHE paper
// prints.
#include <gtest/gtest.h>

#include "headshare/attention/schemes/gqa.h"
#include "headshare/attention/testing.h"
#include "headshare/base/strings/format.h"

namespace headshare {
namespace {

AttentionCost cost_of(AttentionOptions options) {
  const DeclareOn meta(at::kMeta);
  return make_scheme(resolve(options))->cost();
}

// A row counts 12 encoder layers of width 768 with 12 heads of 64.
struct EncoderRow {
  std::string scheme;
  int64_t exact;
  const char* printed;
};

// The paper prints 28.32M for MHA, twice its rounded 14.16M; the exact count rounds to 28.31M.
const std::vector<EncoderRow> kEncoderTable = {
    {"sha", 8847360, "8.85M"},     {"mha", 28311552, "28.31M"}, {"el_shared", 14155776, "14.16M"},
    {"mqa", 15335424, "15.34M"},   {"skv", 21233664, "21.23M"}, {"mhe_add", 8875008, "8.88M"},
    {"mhe_mul", 8875008, "8.88M"},
};

TEST(Counts, EncoderTable) {
  for (const EncoderRow& row : kEncoderTable) {
    const AttentionCost cost = cost_of({.scheme = row.scheme, .d_model = 768, .heads = 12});
    EXPECT_EQ(12 * cost.parameters, row.exact) << row.scheme;
    EXPECT_EQ(format_count(static_cast<double>(12 * cost.parameters)), row.printed) << row.scheme;
    EXPECT_EQ(cost.biases, 0);
  }
}

// The paper's abstract counts "additional" parameters against SHA and against MHE.
TEST(Counts, AdditionalParameters) {
  for (const int64_t heads : {4, 8, 12, 16}) {
    const int64_t d = 64;
    const auto parameters = [&](const std::string& scheme) {
      return cost_of({.scheme = scheme, .d_model = heads * d, .heads = heads}).parameters;
    };
    EXPECT_EQ(parameters("mhe_mul") - parameters("sha"), 3 * heads * d);
    EXPECT_EQ(parameters("mha") - parameters("mhe_mul"), (3 * heads * heads - 3 * heads) * d * d - 3 * heads * d);
  }
}

// A row counts encoder and decoder layers together; a decoder layer has two attention sub-layers.
struct TranslationRow {
  const char* name;
  int64_t layers, d_model, heads, mha, mhe;
  const char *mha_printed, *mhe_printed;
};

const std::vector<TranslationRow> kTranslationTable = {
    {"base", 12, 512, 8, 18874368, 6515712, "18.87M", "6.52M"},
    {"16H", 12, 512, 16, 18874368, 5630976, "18.87M", "5.63M"},
    {"4H", 12, 512, 4, 18874368, 8285184, "18.87M", "8.29M"},
    {"4L", 8, 512, 8, 12582912, 4343808, "12.58M", "4.34M"},
    {"8L", 16, 512, 8, 25165824, 8687616, "25.17M", "8.69M"},
    {"12H", 12, 768, 12, 42467328, 13312512, "42.47M", "13.31M"},
    {"big", 12, 1024, 16, 75497472, 22468608, "75.50M", "22.47M"},
};

TEST(Counts, TranslationTable) {
  for (const TranslationRow& row : kTranslationTable) {
    SCOPED_TRACE(row.name);
    const int64_t sub_layers = row.layers * 3 / 2;
    const auto total = [&](const std::string& scheme) {
      return sub_layers * cost_of({.scheme = scheme, .d_model = row.d_model, .heads = row.heads}).parameters;
    };
    EXPECT_EQ(total("mha"), row.mha);
    EXPECT_EQ(format_count(static_cast<double>(row.mha)), row.mha_printed);
    for (const std::string mhe : {"mhe_add", "mhe_mul"}) EXPECT_EQ(total(mhe), row.mhe);
    EXPECT_EQ(format_count(static_cast<double>(row.mhe)), row.mhe_printed);
  }
}

TEST(Counts, TheOtherSchemes) {
  const int64_t E = 768, H = 12, D = 64;
  const auto cost = [&](AttentionOptions options) {
    options.d_model = E;
    options.heads = H;
    return cost_of(options);
  };
  EXPECT_EQ(cost({.scheme = "gqa"}).parameters, 2 * E * E + 2 * E * 3 * D);
  EXPECT_EQ(cost({.scheme = "gqa", .own = GqaOptions{.groups = 6}}).parameters, 2 * E * E + 2 * E * 6 * D);
  EXPECT_EQ(cost({.scheme = "el_lossless"}).parameters, 4 * E * E);
  EXPECT_EQ(cost(with_option({.scheme = "skv"}, "shared-qk", "true")).parameters, 3 * E * E);
  EXPECT_EQ(cost(with_option({.scheme = "el_shared"}, "averaged-values", "true")).parameters, 2 * E * E);
  EXPECT_EQ(cost({.scheme = "mha", .key_width = 384}).parameters, 2 * E * 384 + 2 * E * E);
  EXPECT_EQ(cost({.scheme = "collaborative"}).parameters, 2 * E * 384 + H * 384 + 2 * E * E);
  EXPECT_EQ(cost({.scheme = "collaborative", .key_width = 64, .content_bias = true}).parameters,
            2 * E * 64 + H * 64 + 2 * E * E + H * E);
}

// Sparse query attention (Filipek, 2025) has fewer heads of the same width: fewer scores, queries and outputs.
TEST(Counts, FewerHeadsOfTheUsualWidthAreSqa) {
  const int64_t E = 768, D = 64;
  for (const int64_t heads : {3, 6, 12}) {
    const AttentionCost cost =
        cost_of({.scheme = "gqa", .d_model = E, .heads = heads, .head_width = D, .own = GqaOptions{.groups = 3}});
    EXPECT_EQ(cost.parameters, 2 * E * heads * D + 2 * E * 3 * D);
    EXPECT_EQ(cost.effective, cost.parameters);
    EXPECT_EQ(cost.cache_elements, 2 * 3 * D);
    EXPECT_EQ(cost_of({.scheme = "mha", .d_model = E, .heads = heads, .head_width = D}).parameters, 4 * E * heads * D);
  }
}

TEST(Counts, CacheElementsPerToken) {
  const auto elements = [](AttentionOptions options) {
    options.d_model = 768;
    options.heads = 12;
    return cost_of(options).cache_elements;
  };
  EXPECT_EQ(elements({.scheme = "mha"}), 1536);
  EXPECT_EQ(elements({.scheme = "mha", .key_width = 384}), 384 + 768);
  EXPECT_EQ(elements({.scheme = "gqa"}), 2 * 3 * 64);
  EXPECT_EQ(elements({.scheme = "skv"}), 768);
  EXPECT_EQ(elements(with_option({.scheme = "skv"}, "shared-qk", "true")), 1536);
  EXPECT_EQ(elements({.scheme = "el_shared"}), 768);
  EXPECT_EQ(elements(with_option({.scheme = "el_shared"}, "averaged-values", "true")), 1536);
  EXPECT_EQ(elements({.scheme = "el_lossless"}), 768);
  for (const std::string one : {"sha", "mqa", "mhe_add", "mhe_mul"}) {
    EXPECT_EQ(elements({.scheme = one}), 128) << one;
    EXPECT_EQ(elements({.scheme = one, .content_bias = true}), 128 + 12) << one;
  }
  EXPECT_EQ(elements({.scheme = "collaborative", .key_width = 384}), 1152);
  EXPECT_EQ(elements({.scheme = "collaborative", .key_width = 64}), 832);
  EXPECT_EQ(elements({.scheme = "collaborative", .key_width = 64, .content_bias = true}), 832 + 12);
}

TEST(Counts, EffectiveParameters) {
  const int64_t E = 768, H = 12, D = 64, shared = 3 * E * D + E * E;
  const auto effective = [&](AttentionOptions options) {
    options.d_model = E;
    options.heads = H;
    return cost_of(options).effective;
  };
  EXPECT_EQ(effective({.scheme = "sha"}), 4 * E * D);
  for (const std::string mhe : {"mhe_add", "mhe_mul"}) {
    EXPECT_EQ(effective({.scheme = mhe}), shared + H * D);
    EXPECT_EQ(effective({.scheme = mhe, .alibi = true}), shared + H * D);
  }
  for (const std::string other : {"mha", "gqa", "mqa", "skv", "el_shared", "el_lossless", "collaborative"}) {
    EXPECT_EQ(effective({.scheme = other}), cost_of({.scheme = other, .d_model = E, .heads = H}).parameters);
    EXPECT_EQ(effective({.scheme = other, .content_bias = true}), effective({.scheme = other}) + H * E);
  }
  // O no longer folds where the heads differ, and MHE-ADD is then SHA with a content bias.
  EXPECT_EQ(effective({.scheme = "sha", .alibi = true}), shared);
  EXPECT_EQ(effective({.scheme = "sha", .content_bias = true}), shared + H * E);
  EXPECT_EQ(effective({.scheme = "mhe_add", .content_bias = true}), shared + H * E);
  EXPECT_EQ(effective({.scheme = "mhe_mul", .content_bias = true}), shared + H * D + H * E);
  // Rotary positions come between embedding and product, which keeps eK apart.
  EXPECT_EQ(effective({.scheme = "mhe_add", .rotary = true}), shared + 2 * H * D);
  EXPECT_EQ(effective({.scheme = "mhe_mul", .rotary = true}), shared + 3 * H * D / 2);
  // Dimensions that do not turn count as without positions.
  EXPECT_EQ(effective({.scheme = "mhe_add", .rotary = true, .rotary_dimensions = 16}), shared + H * (D + 16));
  EXPECT_EQ(effective({.scheme = "mhe_mul", .rotary = true, .rotary_dimensions = 16}), shared + H * (D + 8));
  EXPECT_EQ(effective({.scheme = "mha", .qk_norm = true, .rotary = true, .rotary_dimensions = 16}), 4 * E * E + D + 16);
  // A gate comes between value and output, and a sink shares nothing that is the same for all keys.
  const auto gated = [&](const std::string& scheme) {
    return effective({.scheme = scheme, .gate = OutputGate::kHead});
  };
  EXPECT_EQ(gated("sha"), shared + E * H);
  EXPECT_EQ(gated("mhe_add"), shared + 2 * H * D + E * H);
  EXPECT_EQ(effective({.scheme = "mhe_add", .sinks = true}), shared + 3 * H * D + H);
  EXPECT_EQ(effective({.scheme = "mhe_add", .gate = OutputGate::kElement, .sinks = true}),
            shared + 3 * H * D + H + E * H * D);
}

TEST(Counts, CostIsWhatTheModuleHolds) {
  for (const SchemeCase& one : scheme_variants()) {
    SCOPED_TRACE(one.name);
    const Attention layer(one.options);
    int64_t parameters = 0, biases = 0;
    for (const auto& item : layer->named_parameters()) {
      const bool is_bias = item.key().ends_with(".bias");
      (is_bias ? biases : parameters) += item.value().numel();
    }
    EXPECT_EQ(layer->scheme().cost().parameters, parameters);
    EXPECT_EQ(layer->scheme().cost().biases, biases);
    EXPECT_EQ(biases > 0, one.options.projection_bias);
    EXPECT_LE(layer->scheme().cost().effective, parameters);
  }
}

}  // namespace
}  // namespace headshare
