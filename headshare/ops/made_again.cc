#include "headshare/ops/made_again.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "headshare/base/error.h"
#include "headshare/ops/precision.h"

namespace headshare {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Not every torch that is supported has this call (emptied_values_refuse_reading()).
template <typename Storage>
constexpr bool kErrorCanGo = requires(Storage& storage) {
  storage.clear_data_ptr_access_error_msg_();
};

template <typename Storage>
void refuse_reading(Storage& storage) {
  if constexpr (kErrorCanGo<Storage>) {
    storage.release_data_and_set_meta_custom_data_ptr_error_msg_(
        "headshare reads a value that it makes again in the backward pass only; this is a defect of headshare");
  }
}

template <typename Storage>
void allow_reading(Storage& storage) {
  if constexpr (kErrorCanGo<Storage>) storage.clear_data_ptr_access_error_msg_();
}

// A value shares its storage with what operations saved of it, so that to fill the storage is to fill them all.
struct Emptied : torch::CustomClassHolder {
  Emptied(const Tensor& value, const variable_list& read, std::function<Tensor()> make)
      : value(value.detach()), make(std::move(make)), precision(ComputeIn::current(value.device().type())) {
    for (const Tensor& one : read) this->read.push_back(one.defined() ? one.detach() : one);
  }

  void empty() const {
    c10::StorageImpl& storage = *value.storage().unsafeGetStorageImpl();
    storage.set_data_ptr_noswap(storage.allocator()->allocate(0));
    storage.set_nbytes(0);
    refuse_reading(storage);
  }

  // Fills the storage once: a second backward pass over a graph that was retained finds it full.
  void fill() {
    if (!value.defined()) return;
    const at::NoGradGuard no_grad;
    const ComputeIn as_before(precision, value.device().type());
    const Tensor made = make();
    HS_CHECK(made.scalar_type() == value.scalar_type() && made.sizes() == value.sizes() && made.is_contiguous(),
             "a value that is made again is ", made.scalar_type(), made.sizes(), " and was ", value.scalar_type(),
             value.sizes());
    c10::StorageImpl& from = *made.storage().unsafeGetStorageImpl();
    c10::StorageImpl& to = *value.storage().unsafeGetStorageImpl();
    const size_t bytes = from.nbytes();
    allow_reading(to);
    to.set_data_ptr_noswap(from.set_data_ptr(c10::DataPtr(nullptr, made.device())));
    to.set_nbytes(bytes);
    from.set_nbytes(0);
    value = Tensor();
    make = nullptr;
  }

  Tensor value;
  variable_list read;
  std::function<Tensor()> make;
  Precision precision;
};

class FillBeforeBackward : public torch::autograd::Function<FillBeforeBackward> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& result, const c10::intrusive_ptr<Emptied>& emptied) {
    context->saved_data["emptied"] = c10::IValue::make_capsule(emptied);
    context->save_for_backward(std::move(emptied->read));
    return result.view_as(result);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    context->get_saved_variables();  // throws where one has changed since
    const auto capsule = context->saved_data["emptied"].toCapsule();
    static_cast<Emptied*>(capsule.get())->fill();
    return {gradients[0], Tensor()};
  }
};

// Tells whether anything but the caller holds the memory of `value`.
bool is_saved(const Tensor& value) { return value.use_count() > 1 || value.storage().use_count() > 1; }

}  // namespace

Tensor made_again(const Tensor& value, const std::vector<Tensor>& read, std::function<Tensor()> make,
                  const Tensor& result) {
  const bool whole = value.is_contiguous() && value.storage_offset() == 0 && !value.is_meta();
  if (!at::GradMode::is_enabled() || !result.requires_grad() || !whole || !is_saved(value)) return result;
  const auto emptied = c10::make_intrusive<Emptied>(value, read, std::move(make));
  Tensor returned = FillBeforeBackward::apply(result, emptied);
  emptied->empty();
  return returned;
}

bool emptied_values_refuse_reading() { return kErrorCanGo<c10::StorageImpl>; }

}  // namespace headshare
