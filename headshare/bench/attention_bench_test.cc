#include "headshare/bench/attention_bench.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headshare/attention/schemes/latent_testing.h"
#include "headshare/base/error.h"
#include "headshare/bench/attention_check.h"
#include "headshare/bench/process_memory.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

constexpr std::string kSchemes[] = {"mha",       "sha",          "gqa",     "mqa",     "skv",
                                    "el_shared", "el_lossless",  "mhe_add", "mhe_mul", "collaborative",
                                    "lrkv",      "shared_query", "mla"};

class AttentionBench : public testing::Test {
 protected:
  // Small cases on several threads mostly wait for one another.
  AttentionBench() { at::set_num_threads(1); }
};

AttentionCase small_case(const std::string& scheme) {
  return {.scheme = scheme, .batch = 2, .heads = 4, .head_width = 8, .key_width = 16, .queries = 70, .keys = 70};
}

AttentionBenchOptions quick() { return {.turns = {.least_rounds = 1, .most_rounds = 1}, .small_roofs = true}; }

std::vector<AttentionRow> bench(const AttentionCase& one, const AttentionBenchOptions& options = quick()) {
  return bench_attention({one}, options);
}

TEST_F(AttentionBench, EveryContenderOfEverySchemeIsRight) {
  for (const std::string& scheme : kSchemes) {
    for (const Pass pass : {Pass::kForward, Pass::kTraining}) {
      for (const bool causal : {false, true}) {
        for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
          AttentionCase one = small_case(scheme);
          one.pass = pass;
          one.causal = causal;
          one.precision = precision;
          SCOPED_TRACE(case_name(one));
          double fastest = 0;
          for (const AttentionRow& row : bench(one)) {
            EXPECT_EQ(row.refused, "") << row.contender;
            ASSERT_TRUE(row.ratio.has_value());
            EXPECT_GT(row.timing.median_ms, 0);
            if (row.is_baseline) fastest = std::max(fastest, *row.ratio);
          }
          EXPECT_EQ(fastest, 1);
        }
      }
    }
  }
}

TEST_F(AttentionBench, DropoutIsCheckedByItsStatisticsAndMasks) {
  for (const std::string& scheme : kSchemes) {
    for (const bool causal : {false, true}) {
      AttentionCase one = small_case(scheme);
      one.batch = 4;
      one.queries = one.keys = 128;
      one.causal = causal;
      one.pass = Pass::kTraining;
      one.dropout = 0.1;
      SCOPED_TRACE(case_name(one));
      for (const AttentionRow& row : bench(one)) EXPECT_EQ(row.refused, "") << row.contender;
      one.dropout_mask = DropoutMaskKind::kShared;
      EXPECT_EQ(bench(one).front().refused, "");
    }
  }
}

// Returns contenders that are wrong in one way each.
AttentionBenchOptions spoilt(std::function<void(Contender*)> spoil) {
  AttentionBenchOptions options = quick();
  options.contenders = [spoil](const CaseInputs& inputs) {
    std::vector<Contender> contenders = make_contenders(inputs);
    spoil(&contenders.front());
    return contenders;
  };
  return options;
}

void expect_refusal(const AttentionCase& one, const AttentionBenchOptions& options, const std::string& why) {
  const auto rows = bench(one, options);
  EXPECT_THAT(rows.front().refused, HasSubstr(why));
  EXPECT_EQ(rows.front().timing.repetitions, 0);
  EXPECT_FALSE(rows.front().ratio.has_value());
  EXPECT_EQ(rows[1].refused, "");
}

TEST_F(AttentionBench, WrongContendersAreNotTimed) {
  AttentionCase one = small_case("mhe_add");
  const auto wrong_heads = spoilt([](Contender* c) { c->heads = [run = c->heads] { return run() * 1.001; }; });
  expect_refusal(one, wrong_heads, "heads differ");
  one.pass = Pass::kTraining;
  expect_refusal(one, wrong_heads, "heads differ");
  const auto wrong_gradient = spoilt([](Contender* c) {
    c->heads = [run = c->heads, keys = c->leaves[1]] {
      const Tensor unseen = 0.001 * keys.sum();  // a gradient that the heads themselves do not show
      return run() + unseen - unseen.detach();
    };
  });
  expect_refusal(one, wrong_gradient, "gradients of keys differ");
}

TEST_F(AttentionBench, AContenderThatDoesNotFitLeavesTheOthers) {
  const auto large =
      spoilt([](Contender* c) { c->heads = []() -> Tensor { TORCH_CHECK_WITH(OutOfMemoryError, false, "no room"); }; });
  expect_refusal(small_case("mha"), large, "it does not fit into the memory of cpu");
}

TEST_F(AttentionBench, WrongDropoutIsNotTimed) {
  AttentionCase one = small_case("mha");
  one.batch = 8;
  one.pass = Pass::kTraining;
  one.dropout = 0.1;
  AttentionBenchOptions none = quick();
  none.contenders = [](const CaseInputs& inputs) {
    CaseInputs without = inputs;
    without.dropout.p = 0;
    return std::vector<Contender>{make_contenders(without)[0], make_contenders(inputs)[1]};
  };
  expect_refusal(one, none, "a variance of 0");
  AttentionBenchOptions too_much = quick();
  too_much.contenders = [](const CaseInputs& inputs) {
    CaseInputs twice = inputs;
    twice.dropout.p *= 2;
    return std::vector<Contender>{make_contenders(twice)[0], make_contenders(inputs)[1]};
  };
  expect_refusal(one, too_much, "a variance of 2.");
  const auto other_mask = spoilt([](Contender* c) {
    c->heads = [run = c->heads] {
      const Tensor backward = run();
      return backward + (at::rand_like(backward) < 0.1).to(at::kFloat).mul(backward.detach());
    };
  });
  for (const std::string scheme : {"mha", "skv"}) {
    one.scheme = scheme;
    const CaseInputs inputs = make_inputs(one, Fill::kNormal);
    EXPECT_FALSE(check_dropout_gradient(make_contenders(inputs)[0]).has_value());
    EXPECT_THAT(check_dropout_gradient(other_mask.contenders(inputs)[0]).value_or(""),
                HasSubstr("another dropout mask"));
  }
}

TEST_F(AttentionBench, SharedMemoryHasItsTorchForms) {
  const auto names = [](const AttentionCase& one) {
    std::vector<std::string> list;
    for (const Contender& c : make_contenders(make_inputs(one, Fill::kNormal))) list.push_back(c.name);
    return list;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(small_case("mha")), (Names{"headshare", "torch_sdpa"}));
  EXPECT_EQ(names(small_case("sha")), (Names{"headshare", "torch_sdpa"}));
  EXPECT_EQ(names(small_case("el_lossless")),
            (Names{"headshare", "torch_sdpa", "torch_sdpa_expanded", "torch_sdpa_gqa"}));
  EXPECT_EQ(names(small_case("mqa")), (Names{"headshare", "torch_sdpa", "torch_sdpa_expanded", "torch_sdpa_gqa"}));
  EXPECT_EQ(names(small_case("collaborative")),
            (Names{"headshare", "torch_sdpa", "torch_sdpa_padded", "torch_sdpa_expanded"}));
  for (const Contender& c : make_contenders(make_inputs(small_case("collaborative"), Fill::kNormal)))
    EXPECT_EQ(c.is_baseline, c.name != "headshare") << c.name;
  AttentionCase decode = small_case("mqa");
  decode.queries = 1;
  EXPECT_EQ(names(decode), (Names{"headshare", "torch_sdpa_expanded", "torch_sdpa_gqa"}));
}

TEST_F(AttentionBench, DecodingReadsACacheOfTheSchemesOwnSize) {
  std::vector<AttentionCase> group;
  for (const std::string scheme : {"mha", "mhe_add"}) {
    group.push_back(small_case(scheme));
    group.back().queries = 1;
    group.back().causal = true;
  }
  const auto rows = bench_attention(group, quick());
  EXPECT_EQ(rows.front().cache_bytes, 2 * 2 * 4 * 70 * 8 * 4);  // keys and values, B, H, S, D, bytes
  EXPECT_EQ(rows.back().cache_bytes * 4, rows.front().cache_bytes);
  for (const AttentionRow& row : rows) EXPECT_EQ(row.refused, "") << row.contender;
}

// The scheme poses keys and values that are computed from one part of the memory, and one part that is both, in the
// form for few queries.
TEST_F(AttentionBench, ASchemeMayPoseKeysAndValuesOfOnePart) {
  const AddedScheme added{latent_scheme()};
  AttentionCase one = small_case("latent");
  one.batch = 4;
  one.causal = true;
  for (const Pass pass : {Pass::kForward, Pass::kTraining}) {
    one.pass = pass;
    for (const AttentionRow& row : bench(one)) EXPECT_EQ(row.refused, "") << row.contender;
  }
  one.queries = one.keys = 128;
  one.dropout = 0.1;
  for (const AttentionRow& row : bench(one)) EXPECT_EQ(row.refused, "") << row.contender;
  const auto wrong_gradient = spoilt([](Contender* c) {
    c->heads = [run = c->heads, part = c->leaves[1]] {
      const Tensor unseen = 0.01 * part.sum();
      return run() + unseen - unseen.detach();
    };
  });
  one.dropout = 0;
  expect_refusal(one, wrong_gradient, "gradients of keys and values differ");
  one.pass = Pass::kForward;
  one.queries = 1;
  EXPECT_EQ(values_in_keys(make_inputs(one, Fill::kNormal).problem()), std::optional<int64_t>(0));
  const std::vector<AttentionRow> decoding = bench(one);
  EXPECT_EQ(decoding.front().backend, "decode");
  EXPECT_EQ(decoding.front().cache_bytes, 4 * 128 * (kLatentWidth + kTurnedWidth) * 4);
  for (const AttentionRow& row : decoding) EXPECT_EQ(row.refused, "") << row.contender;
}

TEST_F(AttentionBench, OperationsAreThoseOfHeadsThatShareNothing) {
  const auto operations = [](const AttentionCase& one) {
    return operations_of(one, make_inputs(one, Fill::kNormal).problem());
  };
  AttentionCase one = small_case("mha");
  const double pairs = 2 * 4 * 70 * 70;
  EXPECT_EQ(operations(one), 2 * pairs * 2 * 8);
  for (const std::string scheme : {"mqa", "mhe_add"}) EXPECT_EQ(operations(small_case(scheme)), operations(one));
  one.pass = Pass::kTraining;
  EXPECT_EQ(operations(one), 2 * pairs * 7 * 8);
  one.causal = true;
  EXPECT_EQ(operations(one), 2 * (2.0 * 4 * 70 * 71 / 2) * 7 * 8);
  AttentionCase wide = small_case("collaborative");  // keys of 16, values of 8
  EXPECT_EQ(operations(wide), 2 * pairs * (16 + 8));
  wide.pass = Pass::kTraining;
  EXPECT_EQ(operations(wide), 2 * pairs * (4 * 16 + 3 * 8));
  AttentionCase decode = small_case("mha");
  decode.queries = 1;
  decode.causal = true;  // which hides nothing from the last token
  EXPECT_EQ(operations(decode), 2 * (2.0 * 4 * 70) * 2 * 8);
}

TEST_F(AttentionBench, RowsStandBesideTheRoofOfTheirTurns) {
  AttentionCase forward = small_case("mha"), decode = small_case("mqa");
  decode.queries = 1;
  AttentionBenchOptions options = quick();
  options.contenders = [](const CaseInputs& inputs) {
    std::vector<Contender> contenders = make_contenders(inputs);
    contenders.back().heads = [run = contenders.back().heads] { return run() * 1.01; };  // wrong
    return contenders;
  };
  const auto rows = bench_attention({forward, decode}, options);
  for (const AttentionRow& row : rows) {
    const bool stream = row.of.queries == 1;
    EXPECT_EQ(row.rate.kind, stream ? RoofKind::kStream : RoofKind::kProduct);
    EXPECT_GT(row.rate.roof, 0);
    if (!row.refused.empty()) {
      EXPECT_EQ(row.rate.per_second, 0);
      continue;
    }
    const double work = stream ? 2 * 2 * 70 * 8 * 4 : 2.0 * (2 * 4 * 70 * 70) * 2 * 8;  // cache bytes; operations
    EXPECT_NEAR(row.rate.per_second * row.timing.median_ms / 1000, work, 1e-6 * work);
    ASSERT_EQ(row.arithmetic.has_value(), stream);
    if (!stream) continue;
    EXPECT_EQ(row.arithmetic->kind, RoofKind::kProduct);
    EXPECT_EQ(row.arithmetic->roof, rows.front().rate.roof);
    const double operations = 2.0 * (2 * 4 * 70) * 2 * 8;
    EXPECT_NEAR(row.arithmetic->per_second * row.timing.median_ms / 1000, operations, 1e-6 * operations);
  }
  EXPECT_NE(rows.front().rate.roof, rows.back().rate.roof);
}

TEST_F(AttentionBench, UnevenCausalMasksAreRefused) {
  AttentionCase uneven = small_case("mha");
  uneven.causal = true;
  uneven.keys = 90;
  EXPECT_THROW(make_contenders(make_inputs(uneven, Fill::kNormal)), Error);
}

TEST(ProcessMemory, CountsWhatWasTakenAtThePeak) {
  const auto peak = peak_bytes_of([] { at::ones({64, 1 << 20}, at::kChar); });
  if (!peak) GTEST_SKIP() << "the system does not tell";
  EXPECT_GE(*peak, 60 << 20);
  EXPECT_LT(*peak, 100 << 20);
}

}  // namespace
}  // namespace headshare
