// aten::floor.out(self, out) for float; integers are their own floor.
#include <cmath>

#include "kernels/arithmetic.h"
#include "kernels/bytes.h"
#include "kernels/operator.h"

namespace hil {

Error op_floor(KernelContext& ctx, Args args) {
  const Tensor& self = ctx.tensor(args, 0);
  Tensor& out = ctx.tensor(args, 1);
  if (!ctx.ok()) return ctx.argument_error();
  HIL_TRY(check_operands(ctx, self, self, out));
  if (!same_layout(self, out)) {
    return ctx.fail(Error::InvalidArgument, "self and out differ in shape or dim order");
  }
  switch (self.type) {
    case ScalarType::Float:
      for (size_t i = 0; i < out.numel; ++i) out.as<float>()[i] = std::floor(self.as<float>()[i]);
      return Error::Ok;
    case ScalarType::Byte:
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::Long:
      copy_bytes(out.data, self.data, out.nbytes);
      return Error::Ok;
    default:
      return unsupported_type(ctx, self.type);
  }
}
HIL_OPERATOR("aten::floor.out", op_floor);

}  // namespace hil
