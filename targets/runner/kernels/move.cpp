#include "kernels/move.h"

#include "kernels/bytes.h"

namespace hil {

namespace {

template <typename T>
void move_elements(const T* in, T* out, const Walk::Loop& loop) {
  for (int32_t i = 0; i < loop.count; ++i) out[i * loop.out] = in[i * loop.a];
}

void move_row(const uint8_t* in, uint8_t* out, size_t size, const Walk::Loop& loop) {
  if (loop.count == 1 || (loop.out == 1 && loop.a == 1)) {
    return copy_bytes(out, in, static_cast<size_t>(loop.count) * size);
  }
  switch (size) {
    case 1:
      return move_elements(in, out, loop);
    case 2:
      return move_elements(reinterpret_cast<const uint16_t*>(in), reinterpret_cast<uint16_t*>(out),
                           loop);
    case 4:
      return move_elements(reinterpret_cast<const uint32_t*>(in), reinterpret_cast<uint32_t*>(out),
                           loop);
    default:
      return move_elements(reinterpret_cast<const uint64_t*>(in), reinterpret_cast<uint64_t*>(out),
                           loop);
  }
}

/// Storage offset of the element at a row-major logical index.
size_t offset_of(const Tensor& t, const Strides& strides, size_t index) {
  size_t offset = 0;
  for (size_t dim = t.rank; dim-- > 0;) {
    const size_t size = static_cast<size_t>(t.sizes[dim]);
    offset += index % size * static_cast<size_t>(strides.step[dim]);
    index /= size;
  }
  return offset;
}

}  // namespace

Error check_movable(KernelContext& ctx, const Tensor& in, const Tensor& out) {
  HIL_TRY(check_tensor(ctx, "self", in, in.type));
  HIL_TRY(check_tensor(ctx, "out", out, in.type));
  if (element_size(in.type) != 0) return Error::Ok;
  return ctx.fail(Error::InvalidArgument, "element type %d is not known",
                  static_cast<int>(in.type));
}

void move_all(const Walk& walk, const void* in, void* out, size_t size) {
  walk.each_row([&](int32_t o, int32_t a, int32_t, const Walk::Loop& loop) {
    move_row(static_cast<const uint8_t*>(in) + a * static_cast<int32_t>(size),
             static_cast<uint8_t*>(out) + o * static_cast<int32_t>(size), size, loop);
  });
}

void place(const Tensor& in, Tensor& out, size_t first) {
  if (in.numel == 0) return;
  const Strides from = strides_of(in), to = strides_of(out);
  const size_t size = element_size(in.type);
  Walk walk;
  for (size_t i = 0; i < out.rank; ++i) {
    const size_t dim = out.dim_order[i];
    walk.nest({in.sizes[dim], to.step[dim], from.step[dim], 0});
  }
  move_all(walk, in.data, out.data + first * size, size);
}

Error reshape(KernelContext& ctx, const Tensor& in, Tensor& out) {
  HIL_TRY(check_movable(ctx, in, out));
  HIL_TRY(check_numel(ctx, "out", out, in.numel));
  if (is_contiguous(in) && is_contiguous(out)) {
    copy_bytes(out.data, in.data, out.nbytes);
    return Error::Ok;
  }
  const Strides from = strides_of(in), to = strides_of(out);
  const size_t size = element_size(in.type);
  for (size_t i = 0; i < out.numel; ++i) {
    copy_bytes(out.data + offset_of(out, to, i) * size, in.data + offset_of(in, from, i) * size,
               size);
  }
  return Error::Ok;
}

Error clone(KernelContext& ctx, const Tensor& in, Tensor& out) {
  HIL_TRY(check_movable(ctx, in, out));
  if (!same_shape(in, out)) {
    return ctx.fail(Error::InvalidArgument, "self and out differ in shape");
  }
  place(in, out, 0);
  return Error::Ok;
}

Error permute(KernelContext& ctx, const Tensor& in, const int32_t* perm, size_t count,
              Tensor& out) {
  HIL_TRY(check_movable(ctx, in, out));
  if (count != in.rank || out.rank != in.rank) {
    return ctx.fail(Error::InvalidArgument, "permutation of %u for ranks %u and %u",
                    static_cast<unsigned>(count), static_cast<unsigned>(in.rank),
                    static_cast<unsigned>(out.rank));
  }
  const Strides si = strides_of(in), so = strides_of(out);
  int32_t source[kMaxRank];
  uint32_t seen = 0;
  for (size_t i = 0; i < count; ++i) {
    source[i] = perm[i] < 0 ? perm[i] + in.rank : perm[i];
    const bool fits = source[i] >= 0 && source[i] < in.rank && out.sizes[i] == in.sizes[source[i]];
    if (!fits || (seen >> source[i] & 1) != 0) {
      return ctx.fail(Error::InvalidArgument, "out is not the permuted shape of the input");
    }
    seen |= 1u << source[i];
  }
  if (in.numel == 0) return Error::Ok;
  Walk walk;
  for (size_t i = 0; i < count; ++i) {
    const size_t dim = out.dim_order[i];
    walk.nest({out.sizes[dim], so.step[dim], si.step[source[dim]], 0});
  }
  move_all(walk, in.data, out.data, element_size(in.type));
  return Error::Ok;
}

}  // namespace hil
