// aten::max_pool2d_with_indices.out(self, kernel_size, stride, padding, dilation, ceil_mode,
//   out, indices) for float and int8, any dim order.
#include "kernels/layout.h"
#include "kernels/operators.h"
#include "kernels/window.h"

namespace hil {

namespace {

/// The step of each of the four dimensions of a tensor, 0 for the batch of a rank-3 one.
struct Steps {
  size_t n, c, h, w;

  explicit Steps(const Tensor& t) {
    const Strides s = strides_of(t);
    const size_t first = t.rank - 3;
    n = first == 0 ? 0 : static_cast<size_t>(s.step[0]);
    c = static_cast<size_t>(s.step[first]);
    h = static_cast<size_t>(s.step[first + 1]);
    w = static_cast<size_t>(s.step[first + 2]);
  }
  size_t at(size_t b, size_t channel, size_t y, size_t x) const {
    return b * n + channel * c + y * h + x * w;
  }
};

template <typename T>
struct Best {
  T value;
  int64_t index;
};

/// NaN beats everything, as in torch; the first of equals wins.
template <typename T>
Best<T> best_of(const Window& win, const T* plane, const Steps& in, int32_t y, int32_t x) {
  const int32_t oy = win.h.origin(y), ox = win.w.origin(x);
  const Taps rows = taps_inside(win.h, oy), columns = taps_inside(win.w, ox);
  Best<T> best = {};
  bool first = true;
  for (int32_t ky = rows.begin; ky < rows.end; ++ky) {
    const int32_t iy = oy + ky * win.h.dilation;
    for (int32_t kx = columns.begin; kx < columns.end; ++kx) {
      const int32_t ix = ox + kx * win.w.dilation;
      const T value = plane[static_cast<size_t>(iy) * in.h + static_cast<size_t>(ix) * in.w];
      if (first || value > best.value || value != value) {
        best = {value, int64_t{iy} * win.w.in + ix};
        first = false;
      }
    }
  }
  return best;
}

template <typename T>
void pool(const Window& win, const Tensor& self, Tensor& out, Tensor& indices) {
  const Steps in(self), to(out), place(indices);
  for (int32_t b = 0; b < win.batch; ++b) {
    for (int32_t c = 0; c < win.channels_in; ++c) {
      for (int32_t y = 0; y < win.h.out; ++y) {
        for (int32_t x = 0; x < win.w.out; ++x) {
          const Best<T> best = best_of<T>(win, self.as<T>() + in.at(b, c, 0, 0), in, y, x);
          out.as<T>()[to.at(b, c, y, x)] = best.value;
          indices.as<int64_t>()[place.at(b, c, y, x)] = best.index;
        }
      }
    }
  }
}

Error check_extents(KernelContext& ctx, const char* name, const Tensor& t, const Tensor& self,
                    const Window& win) {
  bool fits = t.rank == self.rank && t.sizes[t.rank - 2] == win.h.out &&
              t.sizes[t.rank - 1] == win.w.out;
  for (size_t i = 0; fits && i + 2 < t.rank; ++i) fits = t.sizes[i] == self.sizes[i];
  if (fits) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "%s does not have planes of %ldx%ld", name,
                  static_cast<long>(win.h.out), static_cast<long>(win.w.out));
}

/// A pair that may be left out.
void read_optional_pair(KernelContext& ctx, Args args, size_t index, int32_t* h, int32_t* w) {
  const bool empty = index < args.size() && args[index]->tag == Tag::IntList &&
                     args[index]->list.empty();
  if (!empty) read_pair(ctx, args, index, h, w);
}

}  // namespace

Error op_max_pool2d_with_indices(KernelContext& ctx, Args args) {
  Window win = {};
  const Tensor& self = ctx.tensor(args, 0);
  read_pair(ctx, args, 1, &win.h.kernel, &win.w.kernel);
  win.h.stride = win.h.kernel, win.w.stride = win.w.kernel;
  win.h.dilation = win.w.dilation = 1;
  read_optional_pair(ctx, args, 2, &win.h.stride, &win.w.stride);
  read_optional_pair(ctx, args, 3, &win.h.pad, &win.w.pad);
  read_optional_pair(ctx, args, 4, &win.h.dilation, &win.w.dilation);
  const bool ceil_mode = ctx.boolean(args, 5);
  Tensor& out = ctx.tensor(args, 6);
  Tensor& indices = ctx.tensor(args, 7);
  if (!ctx.ok()) return ctx.argument_error();

  HIL_TRY(check_tensor(ctx, "self", self, self.type));
  HIL_TRY(check_tensor(ctx, "out", out, self.type));
  HIL_TRY(check_tensor(ctx, "indices", indices, ScalarType::Long));
  if (self.rank != 3 && self.rank != 4) {
    return ctx.fail(Error::InvalidArgument, "self is not an image");
  }
  win.batch = self.rank == 4 ? self.sizes[0] : 1;
  win.channels_in = win.channels_out = self.sizes[self.rank - 3];
  win.h.in = self.sizes[self.rank - 2];
  win.w.in = self.sizes[self.rank - 1];
  HIL_TRY(check_axis(ctx, "height", win.h));
  HIL_TRY(check_axis(ctx, "width", win.w));
  if (win.h.pad > win.h.kernel / 2 || win.w.pad > win.w.kernel / 2) {
    return ctx.fail(Error::InvalidArgument, "padding is more than half of the kernel");
  }
  win.h.out = static_cast<int32_t>(window_count(win.h, ceil_mode));
  win.w.out = static_cast<int32_t>(window_count(win.w, ceil_mode));
  HIL_TRY(check_extents(ctx, "out", out, self, win));
  HIL_TRY(check_extents(ctx, "indices", indices, self, win));
  switch (self.type) {
    case ScalarType::Float:
      pool<float>(win, self, out, indices);
      return Error::Ok;
    case ScalarType::Char:
      pool<int8_t>(win, self, out, indices);
      return Error::Ok;
    default:
      return ctx.fail(Error::NotSupported, "element type %d is not supported",
                      static_cast<int>(self.type));
  }
}

}  // namespace hil
