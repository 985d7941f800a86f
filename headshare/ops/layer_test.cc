#include "headshare/ops/layer.h"

#include <gmock/gmock.h>

#include "headshare/base/error.h"
#include "headshare/ops/declare_with.h"
#include "headshare/ops/linear.h"
#include "headshare/ops/testing.h"

namespace headshare {
namespace {

using testing::ElementsAre;

class Inner : public Layer {
 public:
  explicit Inner(int64_t width) {
    weight = declare("weight", {width, 8}, Init::normal(0.5));
    gain = declare("gain", {width}, Init::constant(2), Decay::kNo);
    idle = declare("idle", {3}, Init{.mean = 1, .deviation = 0.1}, Decay::kNo, Role::kInert);
  }
  Tensor weight, gain, idle;
};

// An Outer registers `extra` modules before the one that both models share.
class Outer : public Layer {
 public:
  explicit Outer(int extra) {
    for (int i = 0; i < extra; ++i) register_module(join_text("extra", i), std::make_shared<Inner>(5));
    inner = register_module("inner", std::make_shared<Inner>(4));
    own = declare("own", {6}, Init::normal(1));
  }
  std::shared_ptr<Inner> inner;
  Tensor own;
};

std::vector<std::string> names_of(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const Declared& one : declared_parameters(module)) names.push_back(one.name);
  return names;
}

TEST(Layer, DeclaresParametersWithFullNamesInOrder) {
  const Outer model(1);
  EXPECT_THAT(names_of(model), ElementsAre("own", "extra0.weight", "extra0.gain", "extra0.idle", "inner.weight",
                                           "inner.gain", "inner.idle"));
  const std::vector<Declared> all = declared_parameters(model);
  EXPECT_EQ(all[5].decay, Decay::kNo);
  EXPECT_EQ(all[4].decay, Decay::kYes);
  EXPECT_EQ(all[5].role, Role::kLearned);
  EXPECT_EQ(all[6].role, Role::kInert);
  EXPECT_TRUE(all[4].tensor.is_same(model.inner->weight));
}

TEST(Layer, ASharedModuleIsListedOnce) {
  struct Pair : torch::nn::Module {
    Pair() {
      const auto shared = std::make_shared<Inner>(2);
      register_module("first", shared);
      register_module("second", shared);
    }
  };
  EXPECT_THAT(names_of(Pair()), ElementsAre("first.weight", "first.gain", "first.idle"));
}

TEST(Layer, InitialValuesDependOnSeedAndNameOnly) {
  Outer one(0), other(3), reseeded(0);
  initialise(one, 7);
  initialise(other, 7);
  initialise(reseeded, 8);
  EXPECT_TRUE(at::equal(one.inner->weight, other.inner->weight));
  EXPECT_TRUE(at::equal(one.inner->idle, other.inner->idle));
  EXPECT_TRUE(at::equal(one.own, other.own));
  EXPECT_FALSE(at::equal(one.inner->weight, reseeded.inner->weight));
  EXPECT_FALSE(at::equal(one.inner->weight.flatten().slice(0, 0, 6), one.own));
}

TEST(Layer, InitialValuesFollowTheirDistribution) {
  struct Big : Layer {
    Big() { weight = declare("weight", {200, 500}, Init{.mean = 3, .deviation = 0.5}); }
    Tensor weight;
  };
  Big big;
  initialise(big, 1);
  const double n = static_cast<double>(big.weight.numel());
  EXPECT_NEAR(big.weight.mean().item<double>(), 3, 5 * 0.5 / std::sqrt(n));
  EXPECT_NEAR(big.weight.std().item<double>(), 0.5, 5 * 0.5 / std::sqrt(2 * n));
  Inner inner(4);
  initialise(inner, 1);
  EXPECT_TRUE(at::equal(inner.gain, at::full({4}, 2.0)));
}

TEST(Layer, InitialValuesAreTheSameInDouble) {
  Outer narrow(0), wide(0);
  wide.to(at::kDouble);
  initialise(narrow, 7);
  initialise(wide, 7);
  EXPECT_EQ(wide.inner->weight.scalar_type(), at::kDouble);
  EXPECT_TRUE(at::equal(narrow.inner->weight.to(at::kDouble), wide.inner->weight));
  EXPECT_TRUE(declared_parameters(wide)[1].tensor.is_same(wide.inner->weight));
}

TEST(Layer, DeclareOnMetaTakesNoMemory) {
  {
    const DeclareOn meta(at::kMeta);
    const Inner inner(int64_t{1} << 50);
    EXPECT_EQ(inner.weight.numel(), int64_t{1} << 53);
    EXPECT_TRUE(inner.weight.is_meta());
  }
  EXPECT_TRUE(Inner(2).weight.is_cpu());
}

TEST(Layer, AttachTellsEveryLayerItsPath) {
  Outer model(2);
  attach(model, std::make_shared<DropoutClock>());
  EXPECT_EQ(model.path(), "");
  EXPECT_EQ(model.inner->path(), "inner");
}

class Dropout : public testing::Test {
 protected:
  Dropout() { attach(model_, clock_); }

  Tensor mask(uint64_t part = 0) { return dropout(at::ones({64, 64}), 0.3, *model_.inner, part); }

  std::shared_ptr<DropoutClock> clock_ = std::make_shared<DropoutClock>(DropoutClock{.seed = 5, .tick = 11});
  Outer model_ = Outer(1);
};

TEST_F(Dropout, MaskIsKeyedBySeedPathTickAndPart) {
  const Tensor before = mask();
  EXPECT_TRUE(at::equal(before, mask()));  // drawn again, as activation checkpointing does
  EXPECT_FALSE(at::equal(before, mask(/*part=*/1)));
  EXPECT_FALSE(at::equal(before, dropout(at::ones({64, 64}), 0.3, model_)));
  clock_->tick = 12;
  EXPECT_FALSE(at::equal(before, mask()));
  *clock_ = {.seed = 6, .tick = 11};
  EXPECT_FALSE(at::equal(before, mask()));
  clock_->seed = 5;
  EXPECT_TRUE(at::equal(before, mask()));

  Outer other(4);  // more layers around the same path change nothing
  attach(other, clock_);
  EXPECT_TRUE(at::equal(before, dropout(at::ones({64, 64}), 0.3, *other.inner)));
}

TEST_F(Dropout, ASharedModuleDrawsTheMasksOfThePlaceAtHand) {
  struct Places : Layer {
    Places() {
      for (const char* name : {"one", "ones", "two"}) {
        places.push_back(register_module(name, std::make_shared<Outer>(0)));
      }
    }
    std::vector<std::shared_ptr<Outer>> places;
  };
  Places model;
  attach(model, clock_);
  const auto mask_of = [&](int place) {
    return dropout(at::ones({64, 64}), 0.3, *model.places.at(static_cast<size_t>(place))->inner);
  };
  const std::vector<Tensor> own = {mask_of(0), mask_of(1), mask_of(2)};
  EXPECT_FALSE(at::equal(own[0], own[2]));
  {
    const UsedAs second(*clock_, "one", "two");
    EXPECT_TRUE(at::equal(mask_of(0), own[2]));
    EXPECT_TRUE(at::equal(mask_of(1), own[1])) << "only begins alike";
    {
      const UsedAs third(*clock_, "one", "three");
      EXPECT_FALSE(at::equal(mask_of(0), own[2]));
    }
    EXPECT_TRUE(at::equal(mask_of(0), own[2]));
  }
  EXPECT_TRUE(at::equal(mask_of(0), own[0]));
}

TEST_F(Dropout, NeighbouringStreamsAreIndependent) {
  const double n = 64 * 64;
  for (uint64_t part = 1; part < 20; ++part) {
    const double both = (mask(0) > 0).logical_and(mask(part) > 0).sum().item<double>() / n;
    EXPECT_NEAR(both, 0.49, 5 * std::sqrt(0.49 * 0.51 / n)) << part;
  }
}

TEST_F(Dropout, DropsAtItsRateAndKeepsTheMean) {
  const Tensor out = dropout(at::full({1000, 200}, 2.0), 0.3, *model_.inner);
  const double n = 2e5;
  const double kept = (out != 0).sum().item<double>() / n;
  EXPECT_NEAR(kept, 0.7, 5 * std::sqrt(0.3 * 0.7 / n));
  // The probability is drawn to the nearest 1/65536.
  EXPECT_NEAR(out.max().item<float>(), 2 / 0.7, 2 / 0.7 * (0.51 / 65536 / 0.7));
}

TEST_F(Dropout, GradientUsesTheSameMask) {
  const Tensor x = at::ones({64, 64}).requires_grad_();
  const Tensor out = dropout(x, 0.3, *model_.inner);
  out.sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), out));
}

TEST_F(Dropout, IsTheIdentityInEvaluationAndAtZero) {
  const Tensor x = at::ones({4, 4});
  EXPECT_TRUE(dropout(x, 0, *model_.inner).is_same(x));
  model_.eval();
  EXPECT_TRUE(dropout(x, 0.5, *model_.inner).is_same(x));
}

TEST_F(Dropout, NeedsAnAttachedSite) {
  const Outer loose(0);
  EXPECT_THROW(dropout(at::ones({4}), 0.5, loose), Error);
}

TEST_F(Dropout, IsKeyedOnCudaToo) {
  HS_NEEDS_CUDA();
  const Tensor x = at::ones({64, 64}, at::kCUDA);
  const Tensor before = dropout(x, 0.3, *model_.inner);
  EXPECT_TRUE(at::equal(before, dropout(x, 0.3, *model_.inner)));
  EXPECT_FALSE(at::equal(before, dropout(x, 0.3, *model_.inner, /*part=*/1)));
}

TEST(DeclareWith, LayersTakeTheTensorsThatTheyAreGiven) {
  std::vector<Tensor> given;
  const auto make = [&](at::IntArrayRef sizes) {
    given.push_back(at::ones(sizes).requires_grad_());
    return given.back() * 2;  // no leaf
  };
  std::shared_ptr<Inner> layer;
  {
    const DeclareWith with(make);
    layer = std::make_shared<Inner>(4);
  }
  ASSERT_EQ(given.size(), 3U);
  EXPECT_THAT(names_of(*layer), ElementsAre("weight", "gain", "idle"));
  EXPECT_FALSE(layer->weight.is_leaf());
  layer->weight.sum().backward();
  EXPECT_TRUE(given[0].grad().eq(2).all().item<bool>());
  EXPECT_TRUE(std::make_shared<Inner>(4)->weight.is_leaf()) << "afterwards layers make their own again";
}

}  // namespace
}  // namespace headshare
