// Results element by element of one to three inputs that broadcast.
#pragma once

#include <type_traits>

#include "kernels/portable/call.h"

namespace hil {

/// Where the operands of each output element are. Rows of elements, in the output's memory order.
/// Inputs that broadcast are walked in logical order, as ExecuTorch's do.
class Broadcast {
 public:
  static constexpr size_t kMostInputs = 3;

  Broadcast(const Tensor* const* inputs, size_t count, const Tensor& out);

  bool at_row() const { return row_ < rows_; }
  void next_row();
  size_t width() const { return width_; }
  size_t offset(size_t input) const { return offset_[input]; }
  /// Elements between neighbours in a row: 0 or more.
  size_t step(size_t input) const { return step_[input]; }

 private:
  size_t rows_ = 1, row_ = 0, width_ = 1, count_;
  size_t depth_ = 0;  // dimensions around the row
  int32_t sizes_[kMaxRank] = {}, index_[kMaxRank] = {};
  size_t steps_[kMostInputs][kMaxRank] = {};
  size_t offset_[kMostInputs] = {}, step_[kMostInputs] = {};
};

namespace operands {

template <typename T, typename Each>
auto call(Each each, const T (&v)[1]) {
  return each(v[0]);
}
template <typename T, typename Each>
auto call(Each each, const T (&v)[2]) {
  return each(v[0], v[1]);
}
template <typename T, typename Each>
auto call(Each each, const T (&v)[3]) {
  return each(v[0], v[1], v[2]);
}

}  // namespace operands

/// Where one input is read from.
template <typename T>
struct Input {
  const uint8_t* at;
  size_t step;  // bytes
  Reader<T> read;

  T next() {
    const T value = read(at);
    at += step;
    return value;
  }
};

/// out = each(inputs...), computed in T: bool, int64_t, float or double. An integer result has the
/// range of `computed`. Types and shapes have been checked.
template <typename T, size_t N, typename Each>
void map_as(ScalarType computed, const Tensor* const (&inputs)[N], Tensor& out, Each each) {
  if (out.numel == 0) return;
  const Writer<T> write = writer_of<T>(out.type);
  const size_t size = element_size(out.type);
  uint8_t* target = out.data;
  for (Broadcast rows(inputs, N, out); rows.at_row(); rows.next_row()) {
    Input<T> in[N];
    for (size_t k = 0; k < N; ++k) {
      const size_t own = element_size(inputs[k]->type);
      in[k] = {inputs[k]->data + rows.offset(k) * own, rows.step(k) * own,
               reader_of<T>(inputs[k]->type)};
    }
    for (size_t i = rows.width(); i != 0; --i, target += size) {
      T v[N];
      for (size_t k = 0; k < N; ++k) v[k] = in[k].next();
      write(target, wrapped(computed, static_cast<T>(operands::call(each, v))));
    }
  }
}

/// The same for floats alone, without a call for each element.
template <size_t N, typename Each>
bool map_floats(const Tensor* const (&inputs)[N], Tensor& out, Each each) {
  bool plain = out.type == ScalarType::Float;
  for (const Tensor* t : inputs) plain = plain && t->type == ScalarType::Float;
  if (!plain) return false;
  float* target = out.template as<float>();
  if (out.numel == 0) return true;
  for (Broadcast rows(inputs, N, out); rows.at_row(); rows.next_row()) {
    const float* in[N];
    for (size_t k = 0; k < N; ++k) in[k] = inputs[k]->template as<float>() + rows.offset(k);
    for (size_t i = 0; i < rows.width(); ++i) {
      float v[N];
      for (size_t k = 0; k < N; ++k) v[k] = in[k][i * rows.step(k)];
      *target++ = static_cast<float>(operands::call(each, v));
    }
  }
  return true;
}

/// out = each(inputs...) in the type that `computed` says: each is called with int64_t, float or
/// double.
template <size_t N, typename Each>
void map_in(ScalarType computed, const Tensor* const (&inputs)[N], Tensor& out, Each each) {
  if (computed == ScalarType::Float) {
    if (!map_floats(inputs, out, each)) map_as<float>(computed, inputs, out, each);
  } else if (computed == ScalarType::Double) {
    map_as<double>(computed, inputs, out, each);
  } else {
    map_as<int64_t>(computed, inputs, out, each);
  }
}

/// A number as it is in the type that is computed in.
struct Constant {
  int64_t whole;
  float single;
  double twice;

  Constant(const Number& number, ScalarType computed)
      : whole(whole_of(number, computed)), single(number.as<float>()), twice(number.as<double>()) {}

  static int64_t whole_of(const Number& number, ScalarType computed) {
    if (is_float(computed)) return 0;
    if (is_bool(computed)) return number.as<double>() != 0.0 ? 1 : 0;
    return wrapped(computed, number.as<int64_t>());
  }
  int64_t like(int64_t) const { return whole; }
  float like(float) const { return single; }
  double like(double) const { return twice; }
};

}  // namespace hil
