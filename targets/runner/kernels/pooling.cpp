#include "kernels/pooling.h"

namespace hil {

void read_optional_pair(KernelContext& ctx, Args args, size_t index, int32_t* h, int32_t* w) {
  const bool empty = index < args.size() && args[index]->tag == Tag::IntList &&
                     args[index]->list.empty();
  if (!empty) read_pair(ctx, args, index, h, w);
}

void read_pooling(KernelContext& ctx, Args args, Window* window) {
  read_pair(ctx, args, 1, &window->h.kernel, &window->w.kernel);
  window->h.stride = window->h.kernel, window->w.stride = window->w.kernel;
  window->h.dilation = window->w.dilation = 1;
  read_optional_pair(ctx, args, 2, &window->h.stride, &window->w.stride);
  read_optional_pair(ctx, args, 3, &window->h.pad, &window->w.pad);
}

Error check_pooling_pad(KernelContext& ctx, const Window& window) {
  if (window.h.pad <= window.h.kernel / 2 && window.w.pad <= window.w.kernel / 2) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "padding is more than half of the kernel");
}

Error read_planes(KernelContext& ctx, const Tensor& self, bool ceil_mode, Window* window) {
  if (self.rank != 3 && self.rank != 4) {
    return ctx.fail(Error::InvalidArgument, "self is not an image");
  }
  window->batch = self.rank == 4 ? self.sizes[0] : 1;
  window->channels_in = window->channels_out = self.sizes[self.rank - 3];
  window->h.in = self.sizes[self.rank - 2];
  window->w.in = self.sizes[self.rank - 1];
  HIL_TRY(check_axis(ctx, "height", window->h));
  HIL_TRY(check_axis(ctx, "width", window->w));
  HIL_TRY(check_pooling_pad(ctx, *window));
  window->h.out = static_cast<int32_t>(window_count(window->h, ceil_mode));
  window->w.out = static_cast<int32_t>(window_count(window->w, ceil_mode));
  return Error::Ok;
}

Error check_planes(KernelContext& ctx, const char* name, const Tensor& t, const Tensor& self,
                   const Window& window) {
  bool fits = t.rank == self.rank && t.sizes[t.rank - 2] == window.h.out &&
              t.sizes[t.rank - 1] == window.w.out;
  for (size_t i = 0; fits && i + 2 < t.rank; ++i) fits = t.sizes[i] == self.sizes[i];
  if (fits) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "%s does not have planes of %ldx%ld", name,
                  static_cast<long>(window.h.out), static_cast<long>(window.w.out));
}

Error read_adaptive(KernelContext& ctx, Args args, const Tensor& self, const Tensor& out,
                    Window* window) {
  int32_t sizes[2];
  ctx.int_list(args, 1, sizes, 2);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_tensor(ctx, "self", self, self.type));
  HIL_TRY(check_tensor(ctx, "out", out, self.type));
  window->h.kernel = window->w.kernel = window->h.stride = window->w.stride = 1;
  window->h.dilation = window->w.dilation = 1;
  HIL_TRY(read_planes(ctx, self, false, window));
  window->h.out = sizes[0], window->w.out = sizes[1];
  HIL_TRY(check_planes(ctx, "out", out, self, *window));
  if (self.numel == 0 && out.numel != 0) return ctx.fail(Error::InvalidArgument, "self is empty");
  return Error::Ok;
}

Extent adaptive_extent(const Axis& axis, int32_t position) {
  const int64_t begin = int64_t{position} * axis.in / axis.out;
  const int64_t end = ((int64_t{position} + 1) * axis.in + axis.out - 1) / axis.out;
  return {static_cast<int32_t>(begin), static_cast<int32_t>(end)};
}

PlaneSteps::PlaneSteps(const Tensor& t) {
  const Strides s = strides_of(t);
  const size_t first = t.rank - 3u;
  n = first == 0 ? 0 : static_cast<size_t>(s.step[0]);
  c = static_cast<size_t>(s.step[first]);
  h = static_cast<size_t>(s.step[first + 1]);
  w = static_cast<size_t>(s.step[first + 2]);
}

}  // namespace hil
