// The kernels of this build, one per operator; registry.cpp gives them their names.
#pragma once

#include "core/kernel.h"

namespace hil {

Error op_quantize_per_tensor(KernelContext& ctx, Args args);
Error op_dequantize_per_tensor(KernelContext& ctx, Args args);
Error op_quantized_add(KernelContext& ctx, Args args);
Error op_quantized_mul(KernelContext& ctx, Args args);
Error op_quantized_conv2d(KernelContext& ctx, Args args);
Error op_quantized_depthwise_conv2d(KernelContext& ctx, Args args);
Error op_quantized_linear(KernelContext& ctx, Args args);
Error op_quantized_avg_pool2d(KernelContext& ctx, Args args);
Error op_quantized_max_pool2d(KernelContext& ctx, Args args);
Error op_softmax(KernelContext& ctx, Args args);
Error op_pad(KernelContext& ctx, Args args);
Error op_transpose(KernelContext& ctx, Args args);
Error op_minimum(KernelContext& ctx, Args args);
Error op_maximum(KernelContext& ctx, Args args);
Error op_et_view(KernelContext& ctx, Args args);
Error op_view_copy(KernelContext& ctx, Args args);
Error op_clone(KernelContext& ctx, Args args);
Error op_clone_dim_order(KernelContext& ctx, Args args);
Error op_permute_copy(KernelContext& ctx, Args args);

}  // namespace hil
