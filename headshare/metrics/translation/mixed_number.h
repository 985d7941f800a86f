// Computes with numbers as Python programs with numpy 2 do, bit for bit: published intervals and p-values are made so.
#pragma once

#include <span>
#include <vector>

namespace headshare {

// This is a Python float or a numpy.float32. An operation with a float32 is one of float32s: its other operand is
// rounded first. All else is in double.
struct MixedNumber {
  double value = 0;
  bool single = false;

  MixedNumber() = default;
  MixedNumber(double value) : value(value) {}  // NOLINT: a Python number stands for itself in a formula
  MixedNumber(double value, bool single) : value(value), single(single) {}
  static MixedNumber of_float(float value) { return {value, true}; }

  friend MixedNumber operator+(MixedNumber a, MixedNumber b) {
    return combine(a, b, [](auto x, auto y) { return x + y; });
  }
  friend MixedNumber operator-(MixedNumber a, MixedNumber b) {
    return combine(a, b, [](auto x, auto y) { return x - y; });
  }
  friend MixedNumber operator*(MixedNumber a, MixedNumber b) {
    return combine(a, b, [](auto x, auto y) { return x * y; });
  }
  friend MixedNumber operator/(MixedNumber a, MixedNumber b) {
    return combine(a, b, [](auto x, auto y) { return x / y; });
  }

 private:
  template <class Operation>
  static MixedNumber combine(MixedNumber a, MixedNumber b, Operation operation) {
    if (!a.single && !b.single) return operation(a.value, b.value);
    return of_float(operation(static_cast<float>(a.value), static_cast<float>(b.value)));
  }
};

// This is numpy.array(numbers): of float32 when all are.
class MixedArray {
 public:
  explicit MixedArray(std::span<const MixedNumber> numbers);

  const std::vector<double>& values() const { return values_; }
  bool single() const { return single_; }

  MixedNumber mean() const;                               // numpy's, by sums of halves
  MixedArray distances(const MixedArray& to) const;       // |this - to|, of the same length
  size_t count_above(double middle, double bound) const;  // of (this - middle) > bound, `middle` of this type

 private:
  MixedArray() = default;
  double round(double value) const { return single_ ? static_cast<double>(static_cast<float>(value)) : value; }

  std::vector<double> values_;
  bool single_ = false;
};

}  // namespace headshare
