// The kernels of this build, one per operator; registry.cpp gives them their names.
#pragma once

#include "core/kernel.h"

namespace hil {

Error op_quantize_per_tensor(KernelContext& ctx, Args args);
Error op_dequantize_per_tensor(KernelContext& ctx, Args args);
Error op_dequantize_per_tensor_as(KernelContext& ctx, Args args);
Error op_quantized_add(KernelContext& ctx, Args args);
Error op_quantized_mul(KernelContext& ctx, Args args);
Error op_quantized_conv2d(KernelContext& ctx, Args args);
Error op_quantized_conv2d_nhwc(KernelContext& ctx, Args args);
Error op_quantized_depthwise_conv2d(KernelContext& ctx, Args args);
Error op_quantized_depthwise_conv2d_nhwc(KernelContext& ctx, Args args);
Error op_quantized_linear(KernelContext& ctx, Args args);
Error op_quantized_avg_pool2d(KernelContext& ctx, Args args);
Error op_quantized_avg_pool2d_nhwc(KernelContext& ctx, Args args);
Error op_quantized_max_pool2d(KernelContext& ctx, Args args);
Error op_quantized_max_pool2d_nhwc(KernelContext& ctx, Args args);
Error op_quantized_activation(KernelContext& ctx, Args args);
Error op_quantized_batch_matmul(KernelContext& ctx, Args args);
Error op_quantized_div(KernelContext& ctx, Args args);
Error op_quantized_transpose_conv2d(KernelContext& ctx, Args args);
Error op_quantized_transpose_conv2d_nhwc(KernelContext& ctx, Args args);
Error op_softmax(KernelContext& ctx, Args args);
Error op_pad(KernelContext& ctx, Args args);
Error op_transpose(KernelContext& ctx, Args args);
Error op_minimum(KernelContext& ctx, Args args);
Error op_maximum(KernelContext& ctx, Args args);
Error op_et_view(KernelContext& ctx, Args args);
Error op_view_copy(KernelContext& ctx, Args args);
Error op_clone(KernelContext& ctx, Args args);
Error op_clone_dim_order(KernelContext& ctx, Args args);
Error op_to_dim_order_copy(KernelContext& ctx, Args args);
Error op_permute_copy(KernelContext& ctx, Args args);
Error op_cat(KernelContext& ctx, Args args);
Error op_select_copy(KernelContext& ctx, Args args);
Error op_unsqueeze_copy(KernelContext& ctx, Args args);
Error op_ge(KernelContext& ctx, Args args);
Error op_gt(KernelContext& ctx, Args args);
Error op_lt(KernelContext& ctx, Args args);
Error op_where(KernelContext& ctx, Args args);
Error op_amax(KernelContext& ctx, Args args);
Error op_add(KernelContext& ctx, Args args);
Error op_sub(KernelContext& ctx, Args args);
Error op_mul(KernelContext& ctx, Args args);
Error op_div(KernelContext& ctx, Args args);
Error op_softmax_float(KernelContext& ctx, Args args);
Error op_clamp(KernelContext& ctx, Args args);
Error op_convolution(KernelContext& ctx, Args args);
Error op_avg_pool2d(KernelContext& ctx, Args args);
Error op_max_pool2d_with_indices(KernelContext& ctx, Args args);

}  // namespace hil
