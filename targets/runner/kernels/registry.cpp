// Which operators this build has, under the names programs use.
#include "kernels/operators.h"

namespace hil {

namespace {

constexpr KernelEntry kKernels[] = {
    {"cortex_m::quantize_per_tensor.out", op_quantize_per_tensor},
    {"cortex_m::dequantize_per_tensor.out", op_dequantize_per_tensor},
    {"quantized_decomposed::quantize_per_tensor.out", op_quantize_per_tensor},
    {"quantized_decomposed::dequantize_per_tensor.out", op_dequantize_per_tensor_as},
    {"cortex_m::quantized_add.out", op_quantized_add},
    {"cortex_m::quantized_mul.out", op_quantized_mul},
    {"cortex_m::quantized_conv2d.out", op_quantized_conv2d},
    {"cortex_m::quantized_conv2d_nhwc.out", op_quantized_conv2d_nhwc},
    {"cortex_m::quantized_depthwise_conv2d.out", op_quantized_depthwise_conv2d},
    {"cortex_m::quantized_depthwise_conv2d_nhwc.out", op_quantized_depthwise_conv2d_nhwc},
    {"cortex_m::quantized_linear.out", op_quantized_linear},
    {"cortex_m::quantized_avg_pool2d.out", op_quantized_avg_pool2d},
    {"cortex_m::quantized_avg_pool2d_nhwc.out", op_quantized_avg_pool2d_nhwc},
    {"cortex_m::quantized_max_pool2d.out", op_quantized_max_pool2d},
    {"cortex_m::quantized_max_pool2d_nhwc.out", op_quantized_max_pool2d_nhwc},
    {"cortex_m::quantized_activation.out", op_quantized_activation},
    {"cortex_m::quantized_batch_matmul.out", op_quantized_batch_matmul},
    {"cortex_m::quantized_div.out", op_quantized_div},
    {"cortex_m::quantized_transpose_conv2d.out", op_quantized_transpose_conv2d},
    {"cortex_m::quantized_transpose_conv2d_nhwc.out", op_quantized_transpose_conv2d_nhwc},
    {"cortex_m::softmax.out", op_softmax},
    {"cortex_m::pad.out", op_pad},
    {"cortex_m::transpose.out", op_transpose},
    {"cortex_m::minimum.out", op_minimum},
    {"cortex_m::maximum.out", op_maximum},
    {"executorch_prim::et_view.default", op_et_view},
    {"aten::view_copy.out", op_view_copy},
    {"aten::clone.out", op_clone},
    {"dim_order_ops::_clone_dim_order.out", op_clone_dim_order},
    {"dim_order_ops::_to_dim_order_copy.out", op_to_dim_order_copy},
    {"aten::permute_copy.out", op_permute_copy},
    {"aten::cat.out", op_cat},
    {"aten::select_copy.int_out", op_select_copy},
    {"aten::unsqueeze_copy.out", op_unsqueeze_copy},
    {"aten::ge.Tensor_out", op_ge},
    {"aten::gt.Tensor_out", op_gt},
    {"aten::lt.Tensor_out", op_lt},
    {"aten::where.self_out", op_where},
    {"aten::amax.out", op_amax},
    {"aten::add.out", op_add},
    {"aten::sub.out", op_sub},
    {"aten::mul.out", op_mul},
    {"aten::div.out", op_div},
    {"aten::_softmax.out", op_softmax_float},
    {"aten::clamp.out", op_clamp},
    {"aten::convolution.out", op_convolution},
    {"aten::avg_pool2d.out", op_avg_pool2d},
    {"aten::max_pool2d_with_indices.out", op_max_pool2d_with_indices},
};

}  // namespace

Span<const KernelEntry> kernel_table() {
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace hil
