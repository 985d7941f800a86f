#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>
#include <vector>

#include "headshare/text/hash/legacy_normal.h"
#include "headshare/text/hash/word_hasher.h"
#include "headshare/text/interface/worker_pool.h"

namespace headshare {
namespace {

constexpr uint32_t kRotationSeed = 42;

using Projection = std::array<double, Signature::kBits>;

// Keeps the vectors r_g seen last: prefixes and suffixes repeat in other words. When full it starts anew.
class Projections {
 public:
  const Projection& of(uint32_t seed) {
    constexpr size_t kMost = 1 << 15;
    if (const auto found = kept_.find(seed); found != kept_.end()) return found->second;
    if (kept_.size() >= kMost) kept_.clear();
    Projection& fresh = kept_[seed];
    LegacyNormal normal(seed);
    for (double& number : fresh) number = normal.next();
    return fresh;
  }

 private:
  std::unordered_map<uint32_t, Projection> kept_;
};

// Returns R twice in a row, so that a rotation is a stretch of it; behind it is room for a strip that is longer than
// the rest.
std::vector<double> rotation_numbers(int64_t room) {
  std::vector<double> numbers(static_cast<size_t>(2 * kHashBuckets + room));
  LegacyNormal normal(kRotationSeed);
  for (size_t i = 0; i < kHashBuckets; ++i) numbers[i] = numbers[i + kHashBuckets] = normal.next();
  return numbers;
}

Signature signs(const Projection& sums) {
  Signature signature;
  for (size_t j = 0; j < sums.size(); ++j) {
    uint64_t& half = j < sums.size() / 2 ? signature.high : signature.low;
    half = half << 1 | static_cast<uint64_t>(sums[j] > 0);
  }
  return signature;
}

class LshHasher : public WordHasher {
 public:
  explicit LshHasher(std::shared_ptr<const WordFeatures> features)
      : features_(std::move(features)), rotation_(rotation_numbers(kStrip)) {}

  Signature signature(std::string_view word) const override {
    const std::vector<WordFeature> found = features_->features(word);
    Projection sums{};
    pool_.run([] { return std::make_unique<Projections>(); },
              [&](Projections& projections) {
                for (const WordFeature& feature : found) {
                  const Projection& random = projections.of(feature.seed);
                  for (size_t j = 0; j < sums.size(); ++j) sums[j] += feature.weight * random[j];
                }
              });
    return signs(sums);
  }

  int64_t bucket(std::string_view word) const override {
    const std::vector<WordFeature> found = features_->features(word);
    double most = -std::numeric_limits<double>::infinity();
    int64_t best = 0;
    for (int64_t begin = 0; begin < kHashBuckets; begin += kStrip) {
      const std::array<double, kStrip> sums = strip(found, begin);
      const int64_t count = std::min(kStrip, kHashBuckets - begin);
      for (int64_t i = 0; i < count; ++i) {
        const double sum = sums[static_cast<size_t>(i)];
        const double score = begin + i < kHashBuckets / 2 ? sum : -sum;
        if (score > most) {
          most = score;
          best = begin + i;
        }
      }
    }
    return best;
  }

  std::string name() const override { return "lsh"; }
  nlohmann::json settings() const override { return features_->settings(); }

 private:
  // So few sums stay in registers while all features are added.
  static constexpr int64_t kStrip = 16;

  // Returns the sums of kStrip rotations from `begin` on.
  std::array<double, kStrip> strip(const std::vector<WordFeature>& features, int64_t begin) const {
    std::array<double, kStrip> sums{};
    for (const WordFeature& feature : features) {
      const double* turned = rotation_.data() + feature.place + begin;
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += feature.weight * turned[i];
    }
    return sums;
  }

  std::shared_ptr<const WordFeatures> features_;
  std::vector<double> rotation_;
  mutable WorkerPool<Projections> pool_;
};

}  // namespace

std::shared_ptr<const WordHasher> make_lsh_hasher(std::shared_ptr<const WordFeatures> features) {
  return std::make_shared<LshHasher>(std::move(features));
}

}  // namespace headshare
