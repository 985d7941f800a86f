#include "headshare/convert/shared_heads/head_groups.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "headshare/convert/shared_heads/shared_maps.h"

namespace headshare {
namespace {

// [H, H]: what heads lose of their energy together, in shares of all heads' energy.
Tensor losses_of(const HeadSlices& slices) {
  const int64_t H = slices.key.size(1);
  const int64_t d = slices.key.size(3);
  const Tensor z = key_directions(slices, 1).transpose(1, 2).flatten(2);  // [F, E, H d]
  const Tensor gram = at::adjoint(z).matmul(z);                           // [F, H d, H d]
  const double energy = at::real(gram.diagonal(0, 1, 2).sum()).item<double>();
  Tensor losses = at::zeros({H, H}, at::kDouble);
  if (energy <= 0) return losses;
  for (int64_t h = 0; h < H; ++h) {
    for (int64_t g = 0; g < h; ++g) {
      const auto block = [&](int64_t row, int64_t column) {
        return gram.slice(1, row * d, (row + 1) * d).slice(2, column * d, (column + 1) * d);
      };
      const Tensor both = at::cat({at::cat({block(h, h), block(h, g)}, 2), at::cat({block(g, h), block(g, g)}, 2)}, 1);
      const Tensor lost = at::linalg_eigvalsh(both).slice(-1, 0, d).clamp_min(0).sum() / energy;  // ascending
      losses[h][g].copy_(lost);
      losses[g][h].copy_(lost);
    }
  }
  return losses;
}

// Heads in `groups` groups of equal size, and what they lose.
class Groups {
 public:
  Groups(const Tensor& losses, int64_t groups)
      : losses_(losses.contiguous()), H_(losses.size(0)), each_(H_ / groups), heads_(static_cast<size_t>(H_)) {
    std::iota(heads_.begin(), heads_.end(), 0);
  }

  // Exchanges the two heads whose exchange helps most; false where none does.
  bool improve() {
    double best = -1e-12;
    int64_t first = 0, second = 0;
    for (int64_t i = 0; i < H_; ++i) {
      for (int64_t j = (i / each_ + 1) * each_; j < H_; ++j) {
        const double change = change_of(i, j);
        if (change >= best) continue;
        best = change;
        first = i;
        second = j;
      }
    }
    if (first == second) return false;
    std::swap(head_at(first), head_at(second));
    return true;
  }

  // Groups by their first heads, each ascending.
  std::vector<int64_t> order() const {
    std::vector<std::vector<int64_t>> groups;
    for (auto from = heads_.begin(); from != heads_.end(); from += each_) groups.emplace_back(from, from + each_);
    for (std::vector<int64_t>& group : groups) std::sort(group.begin(), group.end());
    std::sort(groups.begin(), groups.end());
    std::vector<int64_t> order;
    for (const std::vector<int64_t>& group : groups) order.insert(order.end(), group.begin(), group.end());
    return order;
  }

 private:
  int64_t& head_at(int64_t place) { return heads_[static_cast<size_t>(place)]; }
  double loss(int64_t a, int64_t b) const { return losses_.data_ptr<double>()[a * H_ + b]; }

  // The losses between a head and the group at `place`, but for the head that stands there.
  double loss_in_place(int64_t head, int64_t place) {
    double sum = 0;
    for (int64_t k = place / each_ * each_; k < (place / each_ + 1) * each_; ++k) {
      if (k != place) sum += loss(head, head_at(k));
    }
    return sum;
  }

  double change_of(int64_t i, int64_t j) {
    return loss_in_place(head_at(j), i) + loss_in_place(head_at(i), j) - loss_in_place(head_at(i), i) -
           loss_in_place(head_at(j), j);
  }

  Tensor losses_;
  int64_t H_, each_;
  std::vector<int64_t> heads_;
};

}  // namespace

Tensor pair_losses(const HeadSlices& scores, const HeadSlices& values) { return losses_of(scores) + losses_of(values); }

std::vector<int64_t> similar_heads(const Tensor& losses, int64_t groups) {
  Groups heads(losses, groups);
  while (heads.improve()) {
  }
  return heads.order();
}

}  // namespace headshare
