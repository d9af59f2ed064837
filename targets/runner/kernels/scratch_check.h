// Whether a program's scratch has the size that its kernel asks for, which CMake's
// HIL_RUNTIME_CHECKS turns off.
#pragma once

#include "hil_options.h"
#include "kernels/scratch_sizes.h"

namespace hil {

#if HIL_RUNTIME_CHECKS

/// Fails when the program's scratch tensor was planned for another core. A host
/// build runs programs for every core and accepts what any of them plans.
template <typename Size>
Error check_scratch(KernelContext& ctx, const Tensor& scratch, Size size) {
#if defined(__ARM_FEATURE_MVE)
  constexpr ScratchIsa isas[] = {ScratchIsa::Mve};
#elif defined(__ARM_FEATURE_DSP)
  constexpr ScratchIsa isas[] = {ScratchIsa::Dsp};
#elif defined(__arm__)
  constexpr ScratchIsa isas[] = {ScratchIsa::Scalar};
#else
  constexpr ScratchIsa isas[] = {ScratchIsa::Mve, ScratchIsa::Dsp, ScratchIsa::Scalar};
#endif
  for (const ScratchIsa isa : isas) {
    if (scratch.nbytes == size(isa)) return Error::Ok;
  }
  return ctx.fail(Error::InvalidArgument, "planned scratch %u bytes, kernel needs %u",
                  static_cast<unsigned>(scratch.nbytes), static_cast<unsigned>(size(isas[0])));
}

#else

template <typename Size>
Error check_scratch(KernelContext&, const Tensor&, Size) {
  return Error::Ok;
}

#endif

}  // namespace hil
