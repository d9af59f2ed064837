// How an operator becomes part of the build: one line next to its kernel.
#pragma once

#include <type_traits>

#include "core/kernel.h"

/// Gives a kernel a name that programs use ("namespace::operator.overload"); a kernel may have
/// several. It stands at the start of a line, after the kernel, in a file op_*.cpp or in any file
/// of portable/, in which the kernel is no static function: registry.cmake makes the table of all
/// kernels from these lines.
#define HIL_OPERATOR(name, function)                                               \
  static_assert(std::is_same<decltype(&(function)), ::hil::KernelFunction>::value, \
                name ": a kernel is an Error function(KernelContext&, Args) in namespace hil")
