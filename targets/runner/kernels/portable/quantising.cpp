// quantized_decomposed: from floats to integers with a scale and a zero point, and back, for a
// tensor, a channel or a token. ExecuTorch ends the process where these refuse.
#include <cmath>
#include <limits>

#include "kernels/operator.h"
#include "kernels/portable/call.h"
#include "kernels/portable/elements.h"

namespace hil {

namespace {

constexpr TypeSet kQuantised = kWholes & ~only(ScalarType::Long);
constexpr TypeSet kFloatAndHalf = only(ScalarType::Float) | only(ScalarType::Half);
constexpr TypeSet kUnquantised = kWideFloats | only(ScalarType::Half);
constexpr TypeSet kScales = kFloatAndHalf | only(ScalarType::BFloat16);

/// Where the elements of a channel, which have a scale of their own, are in memory.
struct Scaled {
  size_t outer = 1, channels = 1, inner = 1;

  /// Calls f(channel, element) for all elements in order.
  template <typename F>
  void each(F f) const {
    size_t i = 0;
    for (size_t o = 0; o < outer; ++o) {
      for (size_t c = 0; c < channels; ++c) {
        for (size_t k = 0; k < inner; ++k, ++i) f(c, i);
      }
    }
  }
};

Scaled along(const Tensor& t, size_t axis) {
  return {leading(t, axis), static_cast<size_t>(extent(t, axis)), trailing(t, axis)};
}

/// The same in memory order.
Scaled inside(const Tensor& t, size_t axis) {
  const size_t channels = static_cast<size_t>(extent(t, axis));
  const size_t inner = t.rank == 0 ? 1 : static_cast<size_t>(steps_of(t).of[axis]);
  const size_t each = channels * inner;
  return {each == 0 ? 0 : t.numel / each, channels, inner};
}

/// One row of channels for each token: all dimensions but the last.
Scaled tokens(const Tensor& t) {
  const size_t width = t.rank == 0 ? 1 : static_cast<size_t>(t.sizes[t.rank - 1]);
  return {1, width == 0 ? 0 : t.numel / width, width};
}

double scale_at(const Tensor& scales, size_t i) { return element_as<double>(scales, i); }

int64_t zero_at(const Tensor* zeros, size_t i) {
  return zeros == nullptr ? 0 : element_as<int64_t>(*zeros, i);
}

/// quant_min, quant_max and dtype, arguments from `first`.
struct Range {
  int64_t low = 0, high = 0, type = -1;

  Range() = default;
  Range(const Call& call, size_t first)
      : low(call.integer(first)), high(call.integer(first + 1)), type(call.integer(first + 2)) {}

  bool is(ScalarType other) const { return type == static_cast<int64_t>(other); }
};

Error require_to_quantise(KernelContext& ctx, const Tensor& input, const Range& range,
                          const Tensor& out) {
  HIL_TRY(require_type(ctx, input, kUnquantised));
  HIL_REQUIRE(range.is(out.type), "out has another element type than dtype");
  HIL_TRY(require_type(ctx, out, kQuantised));
  const int bits = static_cast<int>(element_size(out.type)) * 8;
  const bool is_signed = out.type != ScalarType::Byte;
  const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  HIL_REQUIRE(range.low >= low && range.high <= high, "quant_min or quant_max is out of range");
  return give_shape_of(ctx, out, input);
}

template <typename W>
int64_t quantised(W value, double scale, int64_t zero, const Range& range) {
  const float inverse = 1.0f / static_cast<float>(scale);
  const float scaled = static_cast<float>(static_cast<W>(inverse) * value);
  const double rounded =
      static_cast<double>(static_cast<float>(static_cast<int32_t>(zero)) + std::nearbyint(scaled));
  const int64_t whole = rounded >= -0x1p63 && rounded < 0x1p63 ? static_cast<int64_t>(rounded)
                                                               : INT64_MIN;
  const int64_t most = whole < range.low ? range.low : whole;
  return range.high < most ? range.high : most;
}

template <typename Scale, typename Zero>
void quantise(const Tensor& input, const Scaled& layout, const Range& range, Tensor& out,
              Scale scale, Zero zero) {
  const Writer<int64_t> write = writer_of<int64_t>(out.type);
  const size_t size = element_size(out.type);
  for_float_type(input.type, [&](auto none) {
    using E = decltype(none);
    layout.each([&](size_t channel, size_t i) {
      const auto value = static_cast<Wide<E>>(input.as<E>()[i]);
      write(out.data + i * size, quantised(value, scale(channel), zero(channel), range));
    });
  });
}

Error require_to_dequantise(KernelContext& ctx, const Tensor& input, const Range& range,
                            int64_t out_type, const Tensor& out) {
  HIL_TRY(require_type(ctx, input, kQuantised));
  HIL_REQUIRE(range.is(input.type), "the input has another element type than dtype");
  HIL_REQUIRE(out_type < 0 || out_type == static_cast<int64_t>(out.type),
              "out has another element type than out_dtype");
  HIL_TRY(require_type(ctx, out, kUnquantised));
  HIL_REQUIRE(range.low <= range.high, "quant_min is more than quant_max");
  return give_shape_of(ctx, out, input);
}

/// `early`: the integers are of out's type before they are scaled.
template <typename Scale, typename Zero>
void dequantise(const Tensor& input, const Scaled& layout, Tensor& out, Scale scale, Zero zero,
                bool early = false) {
  for_float_type(out.type, [&](auto none) {
    using E = decltype(none);
    layout.each([&](size_t channel, size_t i) {
      const int64_t whole = wrapped(
          ScalarType::Int, element_as<int64_t>(input, i) - static_cast<int32_t>(zero(channel)));
      const float factor = static_cast<float>(scale(channel));
      if (early) {
        const Wide<E> own = kept<E>(static_cast<Wide<E>>(whole));
        out.as<E>()[i] = static_cast<E>(own * static_cast<Wide<E>>(factor));
      } else {
        out.as<E>()[i] = static_cast<E>(static_cast<Wide<E>>(static_cast<float>(whole) * factor));
      }
    });
  });
}

Error require_one(KernelContext& ctx, const Tensor& scale, const Tensor& zero) {
  HIL_TRY(require_type(ctx, scale, only(ScalarType::Double)));
  HIL_TRY(require_type(ctx, zero, only(ScalarType::Long)));
  HIL_REQUIRE(scale.numel == 1 && zero.numel == 1, "there is more than one scale or zero point");
  return Error::Ok;
}

Error quantise_channels(KernelContext& ctx, const Tensor& input, const Call& call,
                        const Scaled& layout, const Range& range, Tensor& out) {
  const Tensor& scales = call.tensor(1);
  const Tensor& zeros = call.tensor(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, scales, only(ScalarType::Double)));
  HIL_TRY(require_type(ctx, zeros, only(ScalarType::Long)));
  HIL_REQUIRE(scales.numel == layout.channels && zeros.numel == layout.channels,
              "there are more or fewer scales than channels");
  HIL_TRY(require_to_quantise(ctx, input, range, out));
  quantise(
      input, layout, range, out, [&](size_t c) { return scale_at(scales, c); },
      [&](size_t c) { return zero_at(&zeros, c); });
  return Error::Ok;
}

/// `type`: that of the result, -1 if it is out's. `vector`: ExecuTorch rounds those otherwise.
Error dequantise_channels(KernelContext& ctx, const Tensor& input, const Call& call,
                          const Scaled& layout, const Range& range, int64_t type, bool vector,
                          Tensor& out) {
  const Tensor& scales = call.tensor(1);
  const Tensor* zeros = call.tensor_or_none(2);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(scales.numel == layout.channels, "there are more or fewer scales than channels");
  HIL_TRY(require_type(ctx, scales, kWideFloats));
  if (zeros != nullptr) {
    // ExecuTorch takes int32, too, and reads it as int64.
    HIL_TRY(require_type(ctx, *zeros, only(ScalarType::Long)));
    HIL_REQUIRE(zeros->numel == layout.channels,
                "there are more or fewer zero points than channels");
  }
  HIL_TRY(require_to_dequantise(ctx, input, range, type, out));
  if (input.type == ScalarType::Char && out.type == ScalarType::Float) {
    for (size_t c = 0; c < layout.channels && input.numel != 0; ++c) {
      const int64_t zero = zero_at(zeros, c);
      HIL_REQUIRE(zero >= range.low && zero <= range.high, "a zero point is out of range");
    }
  }
  dequantise(
      input, layout, out, [&](size_t c) { return scale_at(scales, c); },
      [&](size_t c) { return zero_at(zeros, c); }, vector);
  return Error::Ok;
}

/// The smallest and largest of floats give a scale and a zero point.
struct Chosen {
  static constexpr double kLeast = 6.1e-5f;
  double scale;
  int64_t zero;

  bool choose(const float* values, size_t count, const int32_t low, const int32_t high) {
    float min = values[0], max = values[0];
    for (size_t i = 1; i < count; ++i) {
      if (values[i] < min) min = values[i];
      if (max < values[i]) max = values[i];
    }
    min = 0.0f < min ? 0.0f : min;
    max = max < 0.0f ? 0.0f : max;
    const float steps = static_cast<float>(high - low);
    scale = (static_cast<double>(max) - static_cast<double>(min)) / static_cast<double>(high - low);
    const float single = static_cast<float>(scale);
    if (single == 0.0f || std::isinf(1.0f / single)) scale = 0.1;
    if (!(scale > 0.0)) return false;
    if (scale < kLeast) {
      const float least = static_cast<float>(kLeast), own = static_cast<float>(scale);
      scale = kLeast;
      if (min == 0.0f) {
        max = least * steps;
      } else if (max == 0.0f) {
        min = -least * steps;
      } else {
        min *= least / own;
        max *= least / own;
      }
    }
    const double down = static_cast<double>(min) / scale, up = static_cast<double>(max) / scale;
    const bool by_min = std::abs(static_cast<double>(low)) - std::abs(down) <
                        std::abs(static_cast<double>(high)) - std::abs(up);
    const double place = by_min ? low - down : high - up;
    if (place < low) {
      zero = low;
    } else if (place > high) {
      zero = high;
    } else {
      zero = static_cast<int64_t>(std::nearbyint(static_cast<float>(place)));
    }
    return true;
  }
};

/// Tables of packed integers: 8, 4 or 2 bits each.
struct Table {
  const Tensor& weight;
  int bits;

  size_t width() const {
    return static_cast<size_t>(weight.sizes[1]) * static_cast<size_t>(8 / bits);
  }
  int32_t at(size_t row, size_t column) const {
    const size_t start = row * static_cast<size_t>(weight.sizes[1]);
    if (bits == 8) return static_cast<int32_t>(element_as<int64_t>(weight, start + column));
    const uint8_t* bytes = weight.as<uint8_t>() + start;
    if (bits == 4) {
      const uint8_t byte = bytes[column / 2];
      return (column % 2 == 0 ? byte >> 4 : byte & 0x0f) - 8;
    }
    return ((bytes[column / 4] >> (column % 4 * 2)) & 3) - 2;
  }
};

Error require_scales(KernelContext& ctx, const Table& table, const Tensor& scales,
                     const Tensor* zeros, const Tensor& out) {
  HIL_REQUIRE(table.weight.rank == 2, "weight is no matrix");
  HIL_REQUIRE(scales.rank == 1 || scales.rank == 2, "there are no scales of rows or groups");
  HIL_REQUIRE(scales.sizes[0] == table.weight.sizes[0], "there are more or fewer scales than rows");
  const size_t groups = scales.rank == 2 ? static_cast<size_t>(scales.sizes[1]) : 1;
  HIL_REQUIRE(groups != 0 && table.width() % groups == 0, "the groups do not divide the rows");
  HIL_TRY(require_type(
      ctx, table.weight,
      table.bits == 8 ? only(ScalarType::Byte) | only(ScalarType::Char) : only(ScalarType::Byte)));
  HIL_TRY(require_type(ctx, out, kScales));
  HIL_TRY(require_type(ctx, scales, kScales));
  if (zeros == nullptr) return Error::Ok;
  HIL_REQUIRE(has_shape(*zeros, Shape::of(scales)), "scales and zero points differ in shape");
  return require_same_type(ctx, {zeros, &out});
}

/// Rows of a table. `typed`: the scales may be of another type than the result.
Error embed(KernelContext& ctx, Args args, int bits, bool typed) {
  const Call call{ctx, args};
  const Table table{call.tensor(0), bits};
  const Tensor& scales = call.tensor(1);
  const Tensor* zeros = call.tensor_or_none(2);
  const int64_t low = call.integer(3), high = call.integer(4);
  const Tensor& indices = call.tensor(5);
  const int64_t type = typed ? call.type_or_none(6) : -1;
  Tensor& out = call.tensor(typed ? 7 : 6);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_scales(ctx, table, scales, zeros, out));
  if (!typed || zeros != nullptr) HIL_TRY(require_same_type(ctx, {&scales, &out}));
  HIL_TRY(require_type(
      ctx, indices,
      bits == 8 ? only(ScalarType::Long) : only(ScalarType::Long) | only(ScalarType::Int)));
  HIL_REQUIRE(low <= high, "weight_quant_min is more than weight_quant_max");
  HIL_REQUIRE(type < 0 || type == static_cast<int64_t>(out.type),
              "out has another element type than dtype");
  Shape shape = Shape::of(indices);
  HIL_REQUIRE(shape.add(static_cast<int64_t>(table.width())), "there are too many dimensions");
  HIL_TRY(give_shape(ctx, out, shape));
  const size_t width = table.width();
  const size_t groups = scales.rank == 2 ? static_cast<size_t>(scales.sizes[1]) : 1;
  const size_t group = width / groups;
  for (size_t i = 0; i < indices.numel; ++i) {
    const int64_t row = element_as<int64_t>(indices, i);
    HIL_REQUIRE(row >= 0 && row < table.weight.sizes[0], "an index is outside weight");
    for (size_t k = 0; k < width; ++k) {
      const size_t own = static_cast<size_t>(row) * groups + k / group;
      const float zero = zeros == nullptr ? 0.0f : element_as<float>(*zeros, own);
      const float value = static_cast<float>(table.at(static_cast<size_t>(row), k)) - zero;
      writer_of<float>(out.type)(out.data + (i * width + k) * element_size(out.type),
                                 value * element_as<float>(scales, own));
    }
  }
  return Error::Ok;
}

/// A float of type E that is added to another one.
template <typename E>
E added(E sum, Wide<E> part) {
  return static_cast<E>(static_cast<Wide<E>>(sum) + kept<E>(part));
}

Error require_mixed(KernelContext& ctx, const Tensor& input, const Tensor& weight,
                    const Tensor& scales, const Tensor* zeros, const Tensor& out) {
  HIL_REQUIRE(input.rank == 2 && weight.rank == 2 && out.rank == 2,
              "input, weight or out is no matrix");
  HIL_REQUIRE(scales.rank >= 1 && scales.sizes[0] == weight.sizes[0],
              "there are more or fewer scales than rows");
  HIL_TRY(require_same_type(ctx, {&input, &scales}));
  HIL_TRY(require_type(ctx, weight, only(ScalarType::Char)));
  HIL_TRY(require_type(ctx, input, kFloatAndHalf));
  HIL_REQUIRE(zeros == nullptr, "zero points are not supported");
  return Error::Ok;
}

/// Calls f with a zero of float or Half.
template <typename F>
void for_float_or_half(ScalarType type, F f) {
  if (type == ScalarType::Float) {
    f(float{});
  } else {
    f(Half());
  }
}

}  // namespace

Error portable_quantize_per_tensor(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const double scale = call.real(1);
  const int64_t zero = call.integer(2);
  const Range range(call, 3);
  Tensor& out = call.tensor(6);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_to_quantise(ctx, input, range, out));
  quantise(
      input, {1, 1, input.numel}, range, out, [&](size_t) { return scale; },
      [&](size_t) { return zero; });
  return Error::Ok;
}
HIL_OPERATOR("quantized_decomposed::quantize_per_tensor.out", portable_quantize_per_tensor);

Error portable_quantize_per_tensor_by_tensors(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const Tensor& scale = call.tensor(1);
  const Tensor& zero = call.tensor(2);
  const Range range(call, 3);
  Tensor& out = call.tensor(6);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_one(ctx, scale, zero));
  return quantise_channels(ctx, input, call, {1, 1, input.numel}, range, out);
}
HIL_OPERATOR("quantized_decomposed::quantize_per_tensor.Tensor_out",
             portable_quantize_per_tensor_by_tensors);

Error portable_quantize_per_channel(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  size_t axis = 0;
  const int64_t dim = call.integer(3);
  const Range range(call, 4);
  Tensor& out = call.tensor(7);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_dim(ctx, input, dim, &axis));
  return quantise_channels(ctx, input, call, along(input, axis), range, out);
}
HIL_OPERATOR("quantized_decomposed::quantize_per_channel.out", portable_quantize_per_channel);

Error portable_quantize_per_token(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const Range range(call, 3);
  Tensor& out = call.tensor(6);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(input.rank >= 1, "the input has no tokens");
  return quantise_channels(ctx, input, call, tokens(input), range, out);
}
HIL_OPERATOR("quantized_decomposed::quantize_per_token.out", portable_quantize_per_token);

Error portable_dequantize_per_tensor(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const double scale = call.real(1);
  const int64_t zero = call.integer(2);
  const Range range(call, 3);
  const int64_t type = call.type_or_none(6);
  Tensor& out = call.tensor(7);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_to_dequantise(ctx, input, range, type, out));
  dequantise(
      input, {1, 1, input.numel}, out, [&](size_t) { return scale; }, [&](size_t) { return zero; });
  return Error::Ok;
}
HIL_OPERATOR("quantized_decomposed::dequantize_per_tensor.out", portable_dequantize_per_tensor);

Error portable_dequantize_per_tensor_by_tensors(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const Tensor& scale = call.tensor(1);
  const Tensor& zero = call.tensor(2);
  const Range range(call, 3);
  const int64_t type = call.type_or_none(6);
  Tensor& out = call.tensor(7);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_one(ctx, scale, zero));
  HIL_TRY(require_to_dequantise(ctx, input, range, type, out));
  dequantise(
      input, {1, 1, input.numel}, out, [&](size_t) { return scale_at(scale, 0); },
      [&](size_t) { return zero_at(&zero, 0); });
  return Error::Ok;
}
HIL_OPERATOR("quantized_decomposed::dequantize_per_tensor.Tensor_out",
             portable_dequantize_per_tensor_by_tensors);

Error portable_dequantize_per_channel(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  size_t axis = 0;
  const int64_t dim = call.integer(3);
  const Range range(call, 4);
  const int64_t type = call.type_or_none(7);
  Tensor& out = call.tensor(8);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_dim(ctx, input, dim, &axis));
  return dequantise_channels(ctx, input, call, inside(input, axis), range, type, input.rank == 1,
                             out);
}
HIL_OPERATOR("quantized_decomposed::dequantize_per_channel.out", portable_dequantize_per_channel);

Error portable_dequantize_per_token(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const Range range(call, 3);
  const int64_t type = call.integer(6);
  Tensor& out = call.tensor(7);
  if (!call.ok()) return ctx.argument_error();
  HIL_REQUIRE(input.rank >= 1, "the input has no tokens");
  return dequantise_channels(ctx, input, call, tokens(input), range, type, false, out);
}
HIL_OPERATOR("quantized_decomposed::dequantize_per_token.out", portable_dequantize_per_token);

Error portable_choose_qparams(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  Range range;
  range.low = call.integer(1);
  range.high = call.integer(2);
  Tensor& scale = call.tensor(5);
  Tensor& zero = call.tensor(6);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, input, only(ScalarType::Float)));
  HIL_TRY(require_one(ctx, scale, zero));
  HIL_REQUIRE(input.numel != 0, "the input is empty");
  HIL_REQUIRE(range.low < range.high && range.low >= INT32_MIN && range.high <= INT32_MAX,
              "quant_min or quant_max is out of range");
  Chosen chosen = {};
  HIL_REQUIRE(chosen.choose(input.as<float>(), input.numel, static_cast<int32_t>(range.low),
                            static_cast<int32_t>(range.high)),
              "there is no scale for such values");
  scale.as<double>()[0] = chosen.scale;
  zero.as<int64_t>()[0] = chosen.zero;
  return Error::Ok;
}
HIL_OPERATOR("quantized_decomposed::choose_qparams.Tensor_out", portable_choose_qparams);

Error portable_choose_qparams_per_token(KernelContext& ctx, Args args) {
  constexpr int32_t kLow = -128, kHigh = 127;
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  Tensor& scales = call.tensor(2);
  Tensor& zeros = call.tensor(3);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_type(ctx, input, only(ScalarType::Float)));
  HIL_TRY(require_type(ctx, scales, only(ScalarType::Double)));
  HIL_TRY(require_type(ctx, zeros, only(ScalarType::Long)));
  HIL_REQUIRE(input.rank >= 1, "the input has no tokens");
  Shape shape = Shape::of(input);
  shape.sizes[shape.rank - 1] = 1;
  HIL_TRY(give_shape(ctx, scales, shape));
  HIL_TRY(give_shape(ctx, zeros, shape));
  const size_t width = static_cast<size_t>(input.sizes[input.rank - 1]);
  HIL_REQUIRE(width != 0 || scales.numel == 0, "a token is empty");
  for (size_t i = 0; i < scales.numel; ++i) {
    Chosen chosen = {};
    HIL_REQUIRE(chosen.choose(input.as<float>() + i * width, width, kLow, kHigh),
                "there is no scale for such values");
    scales.as<double>()[i] = chosen.scale;
    zeros.as<int64_t>()[i] = chosen.zero;
  }
  return Error::Ok;
}
HIL_OPERATOR("quantized_decomposed::choose_qparams_per_token_asymmetric.out",
             portable_choose_qparams_per_token);

Error portable_quantized_add(KernelContext& ctx, Args args) {
  constexpr size_t kFirst[] = {0, 5, 10};  // a, b, and the result, whose tensor comes last
  const Call call{ctx, args};
  const Tensor& a = call.tensor(0);
  const Tensor& b = call.tensor(5);
  Tensor& out = call.tensor(14);
  float scale[3];
  int32_t zero[3];
  Range range;
  for (size_t i = 0; i < 3; ++i) {
    const size_t at = kFirst[i] + (i == 2 ? 0 : 1);
    scale[i] = static_cast<float>(call.real(at));
    zero[i] = static_cast<int32_t>(call.integer(at + 1));
    range.low = call.integer(at + 2);
    range.high = call.integer(at + 3);
    if (!call.ok()) return ctx.argument_error();
    HIL_REQUIRE(range.low >= 0 && range.high <= 255 && range.low <= range.high,
                "quant_min or quant_max is out of range");
  }
  HIL_TRY(require_same_type(ctx, {&a, &b, &out}));
  HIL_TRY(require_type(ctx, a, kWholes));
  if (a.numel != 1 || b.numel != 1 || out.numel != 1) {
    HIL_REQUIRE(has_shape(b, Shape::of(a)), "the tensors differ in shape");
    HIL_TRY(give_shape_of(ctx, out, a));
  }
  const auto real = [&](const Tensor& t, size_t i, size_t k) {
    return static_cast<float>(element_as<int64_t>(t, i) - zero[k]) * scale[k];
  };
  const float inverse = 1.0f / scale[2];
  for (size_t i = 0; i < out.numel; ++i) {
    const float sum = real(a, i, 0) + real(b, i, 1);
    const float made = static_cast<float>(zero[2]) + std::nearbyint(inverse * sum);
    int64_t whole = made >= -0x1p63f && made < 0x1p63f ? static_cast<int64_t>(made) : INT64_MIN;
    whole = whole < range.low ? range.low : whole;
    whole = range.high < whole ? range.high : whole;
    writer_of<int64_t>(out.type)(out.data + i * element_size(out.type), whole);
  }
  return Error::Ok;
}
HIL_OPERATOR("quantized_decomposed::add.out", portable_quantized_add);

Error portable_embedding_byte(KernelContext& ctx, Args args) { return embed(ctx, args, 8, false); }
HIL_OPERATOR("quantized_decomposed::embedding_byte.out", portable_embedding_byte);

Error portable_embedding_byte_typed(KernelContext& ctx, Args args) {
  return embed(ctx, args, 8, true);
}
HIL_OPERATOR("quantized_decomposed::embedding_byte.dtype_out", portable_embedding_byte_typed);

Error portable_embedding_4bit(KernelContext& ctx, Args args) { return embed(ctx, args, 4, false); }
HIL_OPERATOR("quantized_decomposed::embedding_4bit.out", portable_embedding_4bit);

Error portable_embedding_4bit_typed(KernelContext& ctx, Args args) {
  return embed(ctx, args, 4, true);
}
HIL_OPERATOR("quantized_decomposed::embedding_4bit.dtype_out", portable_embedding_4bit_typed);

Error portable_embedding_2bit(KernelContext& ctx, Args args) { return embed(ctx, args, 2, false); }
HIL_OPERATOR("quantized_decomposed::embedding_2bit.out", portable_embedding_2bit);

Error portable_embedding_2bit_typed(KernelContext& ctx, Args args) {
  return embed(ctx, args, 2, true);
}
HIL_OPERATOR("quantized_decomposed::embedding_2bit.dtype_out", portable_embedding_2bit_typed);

Error portable_mixed_mm(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const Tensor& weight = call.tensor(1);
  const Tensor& scales = call.tensor(2);
  const Tensor* zeros = call.tensor_or_none(3);
  Tensor& out = call.tensor(4);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_mixed(ctx, input, weight, scales, zeros, out));
  HIL_REQUIRE(scales.rank == 1 && input.sizes[1] == weight.sizes[0],
              "input, weight and scales do not fit each other");
  HIL_TRY(require_same_type(ctx, {&input, &out}));
  Shape shape = Shape::of(input);
  shape.sizes[1] = weight.sizes[1];
  HIL_TRY(give_shape(ctx, out, shape));
  const size_t inner = static_cast<size_t>(input.sizes[1]);
  const size_t columns = static_cast<size_t>(weight.sizes[1]);
  for_float_or_half(input.type, [&](auto none) {
    using E = decltype(none);
    for (size_t i = 0; i < out.numel; ++i) {
      const E* row = input.as<E>() + i / columns * inner;
      E sum{};
      for (size_t k = 0; k < inner; ++k) {
        const float factor = weight.as<int8_t>()[k * columns + i % columns];
        const float part = kept<E>(static_cast<float>(row[k]) * factor);
        sum = added<E>(sum, part * static_cast<float>(scales.as<E>()[k]));
      }
      out.as<E>()[i] = sum;
    }
  });
  return Error::Ok;
}
HIL_OPERATOR("quantized_decomposed::mixed_mm.out", portable_mixed_mm);

Error portable_mixed_linear(KernelContext& ctx, Args args) {
  const Call call{ctx, args};
  const Tensor& input = call.tensor(0);
  const Tensor& weight = call.tensor(1);
  const Tensor& scales = call.tensor(2);
  const Tensor* zeros = call.tensor_or_none(3);
  const int64_t type = call.type_or_none(4);
  Tensor& out = call.tensor(5);
  if (!call.ok()) return ctx.argument_error();
  HIL_TRY(require_mixed(ctx, input, weight, scales, zeros, out));
  HIL_REQUIRE(scales.rank <= 2 && input.sizes[1] == weight.sizes[1],
              "input, weight and scales do not fit each other");
  HIL_REQUIRE(type < 0 || type == static_cast<int64_t>(out.type),
              "out has another element type than dtype");
  HIL_TRY(require_type(ctx, out, type < 0 ? kUnquantised : kFloatAndHalf));
  Shape shape = Shape::of(input);
  shape.sizes[1] = weight.sizes[0];
  HIL_TRY(give_shape(ctx, out, shape));
  const size_t inner = static_cast<size_t>(input.sizes[1]);
  const size_t rows = static_cast<size_t>(weight.sizes[0]);
  const size_t parts = scales.rank == 2 ? static_cast<size_t>(scales.sizes[1]) : 1;
  HIL_REQUIRE(parts != 0, "there are no scales");
  const size_t group = inner == 0 ? 1 : (inner + parts - 1) / parts;
  const size_t groups = (inner + group - 1) / group;
  for_float_or_half(input.type, [&](auto none) {
    using E = decltype(none);
    for_float_type(out.type, [&](auto made) {
      using O = decltype(made);
      for (size_t i = 0; i < out.numel; ++i) {
        const E* values = input.as<E>() + i / rows * inner;
        const int8_t* factors = weight.as<int8_t>() + i % rows * inner;
        O sum{};
        for (size_t k = 0; k < inner; k += group) {
          O part{};
          for (size_t l = k; l < inner && l < k + group; ++l) {
            const float product = kept<E>(static_cast<float>(values[l]) * factors[l]);
            part = added<O>(part, product);
          }
          const float scale = static_cast<float>(scales.as<E>()[i % rows * groups + k / group]);
          sum = added<O>(sum, static_cast<Wide<O>>(part) * static_cast<Wide<O>>(scale));
        }
        out.as<O>()[i] = sum;
      }
    });
  });
  return Error::Ok;
}
HIL_OPERATOR("quantized_decomposed::mixed_linear.out", portable_mixed_linear);

}  // namespace hil
