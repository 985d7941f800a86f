#include "headshare/models/blocks/block.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "headshare/base/testing.h"
#include "headshare/models/testing.h"

namespace headshare {
namespace {

using testing::HasSubstr;

constexpr int64_t kBatch = 2, kLength = 3, kSource = 5, kWidth = 16;

class CrossBlockTest : public testing::TestWithParam<NormPlacement> {
 protected:
  static AttentionOptions cross_options(const std::string& scheme) {
    return resolve(AttentionOptions{.scheme = scheme, .d_model = kWidth, .heads = 2});
  }

  static TransformerOptions options() {
    TransformerOptions made = resolve(small_options("mha"));
    made.norms = GetParam();
    return made;
  }

  Block block(const std::string& cross_scheme) const {
    Block made(options(), cross_options(cross_scheme));
    attach(*made, std::make_shared<DropoutClock>());
    initialise(*made, /*seed=*/1);
    made->eval();
    return made;
  }

  // Applies a norm with the weights it is made with: weight 1, bias 0.
  static Tensor norm(const Tensor& x) { return at::layer_norm(x, {kWidth}, {}, {}, 1e-5); }

  const at::NoGradGuard no_grad_;
  const Tensor x_ = at::randn({kBatch, kLength, kWidth});
  const Tensor memory_ = at::randn({kBatch, kSource, kWidth});
};

// Attention to the source comes between attention and the feed-forward sub-layer: it reads the output of attention and
// adds its own output to it.
TEST_P(CrossBlockTest, ReadsTheSourceBetweenTheOtherParts) {
  const bool before = GetParam() == NormPlacement::kBefore;
  const Block with = block("mqa");
  Block without(options());
  attach(*without, std::make_shared<DropoutClock>());
  initialise(*without, /*seed=*/1);  // starts depend on names: parameters that both have are the same
  without->eval();
  const CrossInput cross{.memory = memory_};
  const Tensor found = with->forward(x_, {.causal = true}, nullptr, &cross);

  const Tensor first = [&] {
    const Tensor sum = x_ + with->attention->self(before ? norm(x_) : x_, {.causal = true});
    return before ? sum : norm(sum);
  }();
  const Tensor change = with->cross_attention->cross(before ? norm(first) : first, memory_, {});
  const Tensor middle = before ? first + change : norm(first + change);
  const auto named = [&](const char* name) { return with->named_parameters()[std::string("feed_forward.") + name]; };
  const Tensor inner =
      at::gelu(at::linear(before ? norm(middle) : middle, named("expand.weight"), named("expand.bias")), "tanh");
  const Tensor sum = middle + at::linear(inner, named("contract.weight"), named("contract.bias"));
  EXPECT_LT((found - (before ? sum : norm(sum))).abs().max().item<double>(), 1e-5);
  EXPECT_GT((found - without->forward(x_, {.causal = true}, nullptr)).abs().max().item<double>(), 1e-4);
}

// Each beam of a sentence gives what it would give with a copy of the sentence; the memory is read once.
TEST_P(CrossBlockTest, BeamsShareTheMemoryAndACacheKeepsIt) {
  for (const char* scheme : {"mha", "mhe_mul", "collaborative"}) {
    const Block made = block(scheme);
    const Tensor visible = at::ones({kBatch, kSource}, at::kBool);
    visible[1][4] = false;
    const Tensor beams = x_.repeat_interleave(2, 0);
    const CrossInput shared{.memory = memory_, .visible_keys = visible};
    const CrossInput copied{.memory = memory_.repeat_interleave(2, 0), .visible_keys = visible.repeat_interleave(2, 0)};
    const Tensor expected = made->forward(beams, {}, nullptr, &copied);
    EXPECT_LT((made->forward(beams, {}, nullptr, &shared) - expected).abs().max().item<double>(), 1e-5) << scheme;
    KvCache cache(kSource);
    CrossInput cached = shared;
    cached.cache = &cache;
    made->forward(beams, {}, nullptr, &cached);
    cached.memory = at::zeros_like(memory_);  // the memory is not read any more
    EXPECT_LT((made->forward(beams, {}, nullptr, &cached) - expected).abs().max().item<double>(), 1e-5) << scheme;
  }
}

TEST_P(CrossBlockTest, RefusesASourceTooManyOrTooFew) {
  const Block with = block("mha");
  EXPECT_THAT(error_message([&] { with->forward(x_, {}, nullptr); }), HasSubstr("cross-attention"));
  EXPECT_THAT(error_message([&] { with->forward_at(at::zeros({1}, at::kLong), x_, {}); }),
              HasSubstr("cross-attention"));
  Block without(options());
  const CrossInput cross{.memory = memory_};
  EXPECT_THAT(error_message([&] { without->forward(x_, {}, nullptr, &cross); }), HasSubstr("cross-attention"));
}

INSTANTIATE_TEST_SUITE_P(Norms, CrossBlockTest, testing::Values(NormPlacement::kBefore, NormPlacement::kAfter),
                         [](const auto& info) { return info.param == NormPlacement::kBefore ? "Before" : "After"; });

}  // namespace
}  // namespace headshare
