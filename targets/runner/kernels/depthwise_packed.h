// Depthwise convolution on Helium by packing: the rows under a window are kept
// interleaved per channel, so that all taps of one output are consecutive bytes
// and one vmladav with packed weights gives the whole accumulator.
//
//   packed[channel][column][row slot]     row slot = input row modulo kernel height
//
// Each input row is packed once (per block of channels); as the window moves
// down, the slot order rotates, and so there is one copy of the weights per rotation.
#pragma once

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

#include "kernels/depthwise.h"
#include "kernels/requantize_helium.h"

namespace hil {

constexpr size_t kPackedLanes = 16;  // bytes of taps in one register
constexpr size_t kPackedBlock = 8;   // channels packed at a time

struct Packing {
  size_t columns;   // padded columns that windows reach
  size_t pitch;     // bytes of one channel
  int8_t* weights;  // [rotation][channel][kPackedLanes]
  int8_t* rows;     // [channel][column][slot]

  static size_t weight_bytes(const Window& w) { return w.h.kernel * kPackedBlock * kPackedLanes; }

  explicit Packing(const Depthwise& d)
      : columns(static_cast<size_t>(d.window.w.out - 1) * d.window.w.stride + d.window.w.kernel),
        pitch(columns * d.window.h.kernel),
        weights(d.scratch.data()),
        rows(d.scratch.data() + weight_bytes(d.window)) {}

  /// The last windows read up to a register beyond their taps.
  size_t row_bytes() const { return kPackedBlock * pitch + kPackedLanes; }
};

inline bool can_pack(const Depthwise& d) {
  const Window& win = d.window;
  const bool shape = win.channels_in == win.channels_out && d.taps() <= kPackedLanes &&
                     win.h.dilation == 1 && win.w.dilation == 1 && d.input_offset >= -127 &&
                     d.input_offset <= 128;
  if (!shape || d.scratch.size() < Packing::weight_bytes(win)) return false;
  const Packing p(d);
  return p.pitch <= UINT16_MAX / kPackedBlock &&
         p.row_bytes() <= d.scratch.size() - Packing::weight_bytes(win);
}

/// Weights of `count` channels in every rotation, and the bias with the input
/// offset's share.
inline void pack_weights(const Depthwise& d, const Packing& p, size_t first, size_t count,
                         int32_t* folded) {
  const int32_t kh = d.window.h.kernel, kw = d.window.w.kernel;
  const size_t channels = d.window.channels_out;
  fill_bytes(p.weights, 0, Packing::weight_bytes(d.window));
  for (size_t c = 0; c < count; ++c) {
    int32_t sum = 0;
    for (int32_t ky = 0; ky < kh; ++ky) {
      const int8_t* w = d.weights + static_cast<size_t>(ky) * kw * channels + first + c;
      for (int32_t kx = 0; kx < kw; ++kx, w += channels) {
        sum += *w;
        int8_t* target = p.weights + c * kPackedLanes + kx * kh;
        for (int32_t rotation = 0; rotation < kh; ++rotation) {
          const int32_t slot = ky + rotation < kh ? ky + rotation : ky + rotation - kh;
          target[slot] = *w;
          target += kPackedBlock * kPackedLanes;
        }
      }
    }
    folded[c] = wrapping_add(d.bias == nullptr ? 0 : d.bias[first + c],
                             wrapping_multiply(d.input_offset, sum));
  }
}

/// Spreads `columns` pixels of eight channels (or fewer: `lanes`) to their rows.
template <bool Whole>
inline void pack_row(const int8_t* source, size_t step, int8_t* target, size_t slots,
                     size_t columns, uint16x8_t channel_offsets, mve_pred16_t lanes) {
  for (; columns != 0; --columns) {
    if constexpr (Whole) {
      vstrbq_scatter_offset_s16(target, channel_offsets, vldrbq_s16(source));
    } else {
      vstrbq_scatter_offset_p_s16(target, channel_offsets, vldrbq_z_s16(source, lanes), lanes);
    }
    source += step;
    target += slots;
  }
}

/// A block of channels being convolved.
struct PackedBlock {
  const Depthwise& d;
  const Packing& p;
  size_t first, count;
  const int32_t* bias;

  void insert_row(const int8_t* image, int32_t y) const {
    const Window& win = d.window;
    const size_t kh = win.h.kernel;
    const int32_t slot = y % win.h.kernel;
    const size_t pad = win.w.pad;
    if (p.columns <= pad) return;
    const size_t room = p.columns - pad, width = win.w.in;
    int8_t* target = p.rows + pad * kh + (slot < 0 ? slot + win.h.kernel : slot);
    const uint16x8_t offsets = vmulq_n_u16(vidupq_n_u16(0, 1), static_cast<uint16_t>(p.pitch));
    const size_t columns = width < room ? width : room;
    const mve_pred16_t lanes = vctp16q(count);
    if (y < 0 || y >= win.h.in) {
      const int16x8_t zero = vdupq_n_s16(static_cast<int16_t>(-d.input_offset));
      for (size_t i = 0; i < columns; ++i)
        vstrbq_scatter_offset_s16(target + i * kh, offsets, zero);
      return;
    }
    const int8_t* source = image + static_cast<size_t>(y) * width * win.channels_in + first;
    if (count == kPackedBlock) {
      pack_row<true>(source, win.channels_in, target, kh, columns, offsets, lanes);
    } else {
      pack_row<false>(source, win.channels_in, target, kh, columns, offsets, lanes);
    }
  }

  /// One output row of four channels; Advance is the bytes from one window to
  /// the next when they are known here, 0 otherwise.
  template <Rounding R, int Advance>
  void dot_row(size_t channel, const int8_t* weights, int8_t* out) const {
    const mve_pred16_t lanes = vctp32q(count - channel);
    const OutputStage& stage = d.stage;
    const int32x4_t multiplier = load_multipliers(stage, first + channel, lanes);
    const int32x4_t shift = load_shifts(stage, first + channel, lanes);
    const int32x4_t low = vdupq_n_s32(stage.min), high = vdupq_n_s32(stage.max);
    const int32_t out_offset = stage.offset;
    const auto to_bytes = [&](int32x4_t acc) {
      return to_output<R>(acc, multiplier, shift, out_offset, low, high);
    };
    const int32x4_t offset = vldrwq_s32(bias + channel);
    const int8_t* t0 = p.rows + channel * p.pitch;
    const int8_t* t1 = t0 + p.pitch;
    const int8_t* t2 = t1 + p.pitch;
    const int8_t* t3 = t2 + p.pitch;
    const int8x16_t w0 = vldrbq_s8(weights), w1 = vldrbq_s8(weights + kPackedLanes);
    const int8x16_t w2 = vldrbq_s8(weights + 2 * kPackedLanes);
    const int8x16_t w3 = vldrbq_s8(weights + 3 * kPackedLanes);
    const size_t advance = d.window.h.kernel * d.window.w.stride;
    const size_t step = d.window.channels_out;
    const bool whole = count - channel >= 4;
    for (int32_t x = d.window.w.out; x != 0; --x) {
      int32_t a0, a1, a2, a3;
      int8x16_t taps;
      asm volatile(
          "vldrb.8    %q[x], [%[t0]], %[s] \n"
          "vmladav.s8 %[a0], %q[x], %q[w0] \n"
          "vldrb.8    %q[x], [%[t1]], %[s] \n"
          "vmladav.s8 %[a1], %q[x], %q[w1] \n"
          "vldrb.8    %q[x], [%[t2]], %[s] \n"
          "vmladav.s8 %[a2], %q[x], %q[w2] \n"
          "vldrb.8    %q[x], [%[t3]], %[s] \n"
          "vmladav.s8 %[a3], %q[x], %q[w3] \n"
          : [a0] "=&Te"(a0), [a1] "=&Te"(a1), [a2] "=&Te"(a2), [a3] "=&Te"(a3), [x] "=&w"(taps),
            [t0] "+r"(t0), [t1] "+r"(t1), [t2] "+r"(t2), [t3] "+r"(t3)
          : [w0] "w"(w0), [w1] "w"(w1), [w2] "w"(w2), [w3] "w"(w3), [s] "i"(Advance)
          : "memory");
      if constexpr (Advance == 0) t0 += advance, t1 += advance, t2 += advance, t3 += advance;
      store_lanes(out, to_bytes(vaddq_s32(pack_lanes(a0, a1, a2, a3), offset)), whole, lanes);
      out += step;
    }
  }

  template <Rounding R, int Advance>
  void convolve(const int8_t* image, int8_t* out) const {
    const Window& win = d.window;
    fill_bytes(p.rows, static_cast<int8_t>(-d.input_offset), p.row_bytes());
    int32_t next_row = win.h.origin(0);
    for (int32_t y = 0; y < win.h.out; ++y) {
      const int32_t origin = win.h.origin(y);
      if (next_row < origin) next_row = origin;
      for (; next_row < origin + win.h.kernel; ++next_row) insert_row(image, next_row);
      const int32_t rotation = origin % win.h.kernel;
      const int8_t* weights = p.weights + (rotation < 0 ? rotation + win.h.kernel : rotation) *
                                              (kPackedBlock * kPackedLanes);
      for (size_t c = 0; c < count; c += 4) {
        dot_row<R, Advance>(c, weights + c * kPackedLanes, out + first + c);
      }
      out += static_cast<size_t>(win.w.out) * win.channels_out;
    }
  }
};

/// Windows one and two columns apart under a kernel of three rows have loops of their own.
inline void convolve_block(const PackedBlock& block, Rounding rounding, const int8_t* image,
                           int8_t* out) {
  const bool rectified = rounding == Rounding::Rectified;
  const int32_t advance = block.d.window.h.kernel * block.d.window.w.stride;
  if (advance == 3) {
    return rectified ? block.convolve<Rounding::Rectified, 3>(image, out)
                     : block.convolve<Rounding::Away, 3>(image, out);
  }
  if (advance == 6 && rectified) return block.convolve<Rounding::Rectified, 6>(image, out);
  block.convolve<Rounding::Away, 0>(image, out);
}

/// For Rounding::Away and Rounding::Rectified.
inline void depthwise_packed(const Depthwise& d, Rounding rounding) {
  const Window& win = d.window;
  const Packing p(d);
  const size_t channels = win.channels_out;
  int32_t folded[kPackedBlock] = {};
  for (size_t first = 0; first < channels; first += kPackedBlock) {
    const size_t left = channels - first;
    const PackedBlock block = {d, p, first, left < kPackedBlock ? left : kPackedBlock, folded};
    pack_weights(d, p, first, block.count, folded);
    for (int32_t b = 0; b < win.batch; ++b) {
      convolve_block(block, rounding, d.input + b * win.image_in(), d.output + b * win.image_out());
    }
  }
}

}  // namespace hil

#endif
