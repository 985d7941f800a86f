#include <gtest/gtest.h>

#include "headshare/kernels/attention.h"
#include "headshare/kernels/attention_cases.h"

namespace headshare::kernels {
namespace {

using DecodingTest = EveryInstructionSet;

// The cases have one query, or several that have no order; some have enough keys to be divided among threads, or more
// heads than lanes.
std::vector<Case> decode_cases() {
  std::vector<Case> all;
  for (Case one : cases()) {
    if (one.dropout > 0) continue;
    one.sizes.T = 1;
    all.push_back(one);
    one.causal = one.alibi = false;
    for (const int64_t queries : {2, 5, 40}) {
      one.sizes.T = queries;
      all.push_back(one);
    }
  }
  all.push_back(
      {.name = "divided", .sizes = own_heads({.H = 2, .S = 900, .Dk = 8, .Dv = 8}), .key_bias = true, .alibi = true});
  all.push_back({.name = "divided_shared",
                 .sizes = {.B = 2, .H = 6, .Hq = 6, .S = 900, .Dk = 8, .Dv = 8},
                 .key_bias = true,
                 .hidden_tail = 300});
  all.push_back({.name = "many_heads", .sizes = {.H = 130, .Hq = 130, .S = 300, .Dk = 8, .Dv = 8}, .key_bias = true});
  return all;
}

Poisoned decode(const Problem& p, int64_t threads) {
  const AttentionSizes& s = p.c.sizes;
  Poisoned out(s.B, s.H, s.T, s.Dv, {});
  attention_decode<float>(s, p.rule(), p.inputs(), out.view, machine_with(std_threads(threads)));
  return out;
}

TEST_P(DecodingTest, EqualsTheReference) {
  for (const Case& one : decode_cases()) {
    SCOPED_TRACE(testing::Message() << one.name << ", " << one.sizes.T << " queries");
    const Problem problem(one);
    const Expected expected = expected_out(problem);
    for (const int64_t threads : {1, 5}) {
      const Poisoned out = decode(problem, threads);
      EXPECT_LE(expected.gap(out.view), expected.tolerance);
      EXPECT_TRUE(out.untouched());
    }
  }
}

TEST_P(DecodingTest, Bf16EqualsTheReferenceOfItsInputs) {
  for (const Case& one : decode_cases()) {
    if (!suits_bf16(one)) continue;
    SCOPED_TRACE(one.name);
    Problem problem(one);
    const AttentionSizes& s = one.sizes;
    const auto query = narrowed(&problem.query), key = narrowed(&problem.key), value = narrowed(&problem.value);
    Poisoned like(s.B, s.H, s.T, s.Dv, {});
    auto out = room(like);
    attention_decode<Bf16>(s, problem.rule(),
                           {seen(query, problem.query), seen(key, problem.key), seen(value, problem.value)},
                           written(out, like), machine_with(std_threads(5)));
    widen(out, &like);
    const Expected expected = expected_out(problem, Kept::kBf16);
    EXPECT_LE(expected.gap(like.view), expected.tolerance);
    EXPECT_TRUE(like.untouched());
  }
}

// NaN comes from a query, from one key among hidden ones, from a score beyond the largest float; with heads along lanes
// and keys along lanes.
TEST_P(DecodingTest, NanShows) {
  for (const int64_t sharing : {1, 6, 12}) {
    for (const char* what : {"query", "key", "infinite score"}) {
      SCOPED_TRACE(testing::Message() << what << ", " << sharing << " heads of queries a key head");
      Problem p({.name = "nan",
                 .sizes = {.H = sharing, .Hq = sharing, .S = 900, .Dk = 8, .Dv = 8},
                 .scale = 1,
                 .hidden_head = 700});
      float* query = p.query.view.at(0, 0);
      float* key = p.key.view.at(0, 0) + 800 * p.key.view.row;
      if (what == std::string("query")) query[0] = std::nanf("");
      if (what == std::string("key")) key[0] = std::nanf("");
      if (what == std::string("infinite score")) query[0] = key[0] = 1e30F;
      for (const int64_t threads : {1, 5}) {
        const Poisoned out = decode(p, threads);
        EXPECT_TRUE(std::isnan(out.view.at(0, 0)[0]));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllOfThem, DecodingTest, testing::ValuesIn(tiles_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace headshare::kernels
