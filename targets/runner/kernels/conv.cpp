#include "kernels/conv.h"

#include "kernels/bytes.h"
#include "kernels/dot.h"
#include "kernels/dot_rows.h"

namespace hil {

namespace {

/// One accumulator. Taps that are neighbours in memory are one run.
int32_t convolve_at(const Convolution& c, const int8_t* image, int32_t y, int32_t x,
                    int32_t channel) {
  const Window& win = c.window;
  const int32_t group = channel / (win.channels_out / c.groups());
  const int32_t oy = win.h.origin(y), ox = win.w.origin(x);
  const Taps rows = taps_inside(win.h, oy), columns = taps_inside(win.w, ox);
  const int8_t* weights = c.weights + channel * c.column();
  int32_t acc = c.bias == nullptr ? 0 : c.bias[channel];
  const bool one_run = win.w.dilation == 1 && c.group_channels == win.channels_in;
  const int32_t taps = columns.end - columns.begin;
  const int32_t runs = one_run ? (taps > 0 ? 1 : 0) : taps;
  const size_t length = static_cast<size_t>(one_run ? taps : 1) * c.group_channels;
  for (int32_t ky = rows.begin; ky < rows.end; ++ky) {
    const size_t iy = oy + ky * win.h.dilation, ix = ox + columns.begin * win.w.dilation;
    const int8_t* in = image + (iy * win.w.in + ix) * win.channels_in + group * c.group_channels;
    const int8_t* w = weights +
                      (static_cast<size_t>(ky) * win.w.kernel + columns.begin) * c.group_channels;
    for (int32_t run = 0; run < runs; ++run) {
      acc = wrapping_add(acc, dot_offset(in, c.input_offset, w, length));
      in += static_cast<size_t>(win.w.dilation) * win.channels_in;
      w += c.group_channels;
    }
  }
  return acc;
}

void convolve_one_by_one(const Convolution& c) {
  const Window& win = c.window;
  int8_t* out = c.output;
  for (int32_t b = 0; b < win.batch; ++b) {
    const int8_t* image = c.input + b * win.image_in();
    for (int32_t y = 0; y < win.h.out; ++y) {
      for (int32_t x = 0; x < win.w.out; ++x) {
        for (int32_t n = 0; n < win.channels_out; ++n) {
          *out++ = to_output(convolve_at(c, image, y, x, n), c.stage, n);
        }
      }
    }
  }
}

/// One column of the im2col matrix: the bytes under the window at (y, x).
void gather_column(const Convolution& c, const int8_t* image, int32_t group, int32_t y, int32_t x,
                   int8_t* column) {
  const Window& win = c.window;
  const int8_t zero = static_cast<int8_t>(-c.input_offset);
  const int32_t oy = win.h.origin(y), ox = win.w.origin(x);
  const Taps rows = taps_inside(win.h, oy), columns = taps_inside(win.w, ox);
  const size_t depth = c.group_channels;
  const size_t row_bytes = win.w.kernel * depth;
  const size_t before = columns.begin * depth, inside = (columns.end - columns.begin) * depth;
  const bool one_run = win.w.dilation == 1 && c.group_channels == win.channels_in;
  for (int32_t ky = 0; ky < win.h.kernel; ++ky, column += row_bytes) {
    if (ky < rows.begin || ky >= rows.end) {
      fill_bytes(column, zero, row_bytes);
      continue;
    }
    if (inside != row_bytes) {
      fill_bytes(column, zero, before);
      fill_bytes(column + before + inside, zero, row_bytes - before - inside);
    }
    const size_t first = ox + columns.begin * win.w.dilation;
    const int8_t* in = image +
                       (static_cast<size_t>(oy + ky * win.h.dilation) * win.w.in + first) *
                           win.channels_in +
                       group * c.group_channels;
    if (one_run) {
      copy_bytes(column + before, in, inside);
      continue;
    }
    for (size_t at = before; at < before + inside; at += depth) {
      copy_bytes(column + at, in, depth);
      in += static_cast<size_t>(win.w.dilation) * win.channels_in;
    }
  }
}

/// A block of output channels of one group over all positions.
struct ChannelBlock {
  int32_t group;
  size_t first;
  ByteRows weights;
  const int32_t* bias;
  OutputStage stage;
  Rounding rounding;
};

void convolve_columns(const Convolution& c, const int8_t* image, const ChannelBlock& block,
                      int8_t* out) {
  const Window& win = c.window;
  const size_t column = c.column();
  const size_t capacity = c.scratch.size() / column;
  const size_t batch = capacity < 4 ? capacity : 4;
  size_t held = 0;
  for (int32_t y = 0; y < win.h.out; ++y) {
    for (int32_t x = 0; x < win.w.out; ++x) {
      gather_column(c, image, block.group, y, x, c.scratch.data() + held * column);
      const bool last = y + 1 == win.h.out && x + 1 == win.w.out;
      if (++held < batch && !last) continue;
      dot_rows(block.rounding, {c.scratch.data(), column, column, held}, block.weights, block.bias,
               block.stage, out + block.first, win.channels_out);
      out += held * win.channels_out;
      held = 0;
    }
  }
}

/// 1x1 windows without padding read the image in place.
void convolve_pixels(const Convolution& c, const int8_t* image, const ChannelBlock& block,
                     int8_t* out) {
  const Window& win = c.window;
  const size_t pixel = win.channels_in, step = pixel * win.w.stride;
  const int8_t* in = image + block.group * c.group_channels;
  const size_t depth = c.group_channels;
  if (win.h.stride == 1 && win.w.stride == 1) {
    return dot_rows(block.rounding, {in, pixel, depth, win.positions()}, block.weights, block.bias,
                    block.stage, out + block.first, win.channels_out);
  }
  for (int32_t y = 0; y < win.h.out; ++y) {
    dot_rows(block.rounding, {in, step, depth, static_cast<size_t>(win.w.out)}, block.weights,
             block.bias, block.stage, out + block.first, win.channels_out);
    in += win.w.in * pixel * win.h.stride;
    out += win.w.out * win.channels_out;
  }
}

/// As products of rows; false when there is no room for a column or no byte for a zero.
bool convolve_rows(const Convolution& c) {
  const Window& win = c.window;
  const bool pixels = win.h.kernel == 1 && win.w.kernel == 1 && !win.padded();
  const bool zero_fits = c.input_offset >= -127 && c.input_offset <= 128;
  if (!pixels && (!zero_fits || c.scratch.size() < c.column())) return false;
  const size_t per_group = win.channels_out / c.groups();
  int32_t folded[kBiasBlock];
  for (size_t n = 0; n < static_cast<size_t>(win.channels_out);) {
    const size_t group = n / per_group;
    const size_t left = (group + 1) * per_group - n;
    const ByteRows weights = {c.weights + n * c.column(), c.column(), c.column(),
                              left < kBiasBlock ? left : kBiasBlock};
    OutputStage stage = c.stage;
    stage.multipliers += n * stage.step;
    stage.shifts += n * stage.step;
    fold_bias(weights, c.bias == nullptr ? nullptr : c.bias + n, c.input_offset, folded);
    const ChannelBlock block = {static_cast<int32_t>(group),       n, weights, folded, stage,
                                rounding_for(stage, weights.count)};
    for (int32_t b = 0; b < win.batch; ++b) {
      const int8_t* image = c.input + b * win.image_in();
      int8_t* out = c.output + b * win.image_out();
      pixels ? convolve_pixels(c, image, block, out) : convolve_columns(c, image, block, out);
    }
    n += weights.count;
  }
  return true;
}

}  // namespace

void convolve(const Convolution& c) {
  if (!convolve_rows(c)) convolve_one_by_one(c);
}

}  // namespace hil
