#include "core/method.h"

#include <cstring>

#include "core/digest.h"
#include "core/log.h"

namespace hil {

namespace {

bool all_bound(Span<Value* const> args) {
  for (const Value* value : args) {
    if (lacks_data(*value)) return false;
  }
  return true;
}

/// The bytes of a tensor or scalar value; false for any other.
bool value_bytes(const Value& value, Span<const uint8_t>* out) {
  switch (value.tag) {
    case Tag::Tensor:
      *out = Span<const uint8_t>(value.tensor.data, value.tensor.nbytes);
      return value.tensor.data != nullptr || value.tensor.nbytes == 0;
    case Tag::Int:
      *out = Span<const uint8_t>(reinterpret_cast<const uint8_t*>(&value.as_int), 8);
      return true;
    case Tag::Double:
      *out = Span<const uint8_t>(reinterpret_cast<const uint8_t*>(&value.as_double), 8);
      return true;
    case Tag::Bool:
      *out = Span<const uint8_t>(reinterpret_cast<const uint8_t*>(&value.as_bool), 1);
      return true;
    default:
      return false;
  }
}

}  // namespace

const char* instruction_name(const Instruction& instruction) {
  switch (instruction.kind) {
    case Instruction::Kind::Kernel:
      return instruction.kernel->name;
    case Instruction::Kind::Delegate:
      return instruction.delegate->id;
    case Instruction::Kind::Move:
      return "MoveCall";
    case Instruction::Kind::JumpFalse:
      return "JumpFalseCall";
    case Instruction::Kind::Free:
      return "FreeCall";
  }
  return "?";
}

Method::~Method() {
  for (Delegate& delegate : delegates_) {
    if (delegate.handle != nullptr) delegate.backend->destroy(delegate.handle);
  }
}

Error Method::set_input(size_t index, Span<const uint8_t> bytes) {
  if (!ready_) return Error::InvalidState;
  if (index >= inputs_.size()) {
    HIL_LOG(Error, "there is no input %zu, the method takes %zu", index, inputs_.size());
    return Error::InvalidArgument;
  }
  Value& value = *inputs_[index];
  if (value.tag == Tag::None) {
    HIL_LOG(Info, "input %zu is None in the program: what was given for it is not used", index);
    return Error::Ok;
  }
  Span<const uint8_t> storage;
  if (!value_bytes(value, &storage) || (value.tag == Tag::Tensor && value.tensor.constant)) {
    HIL_LOG(Error, "input %zu cannot be set: it is neither a mutable tensor nor a scalar", index);
    return Error::InvalidType;
  }
  if (bytes.size() != storage.size()) {
    HIL_LOG(Error, "input %zu has the wrong size: expected %zu bytes, got %zu", index,
            storage.size(), bytes.size());
    return Error::InvalidArgument;
  }
  if (value.tag == Tag::Bool) {
    value.as_bool = bytes[0] != 0;
  } else if (!bytes.empty()) {
    std::memcpy(const_cast<uint8_t*>(storage.data()), bytes.data(), bytes.size());
  }
  return Error::Ok;
}

Error Method::output_bytes(size_t index, Span<const uint8_t>* out) const {
  if (!ready_) return Error::InvalidState;
  if (index < outputs_.size() && value_bytes(*outputs_[index], out)) return Error::Ok;
  HIL_LOG(Error, "output %zu is neither a tensor with data nor a scalar", index);
  return Error::InvalidType;
}

Error Method::execute() {
  if (!ready_) return Error::InvalidState;
  for (uint64_t& ticks : ticks_) ticks = 0;
  uint64_t budget = options_.max_instructions != 0 ? options_.max_instructions : UINT64_MAX;
  for (size_t next = 0; next < instructions_.size();) {
    if (budget-- == 0) {
      HIL_LOG(Error, "no end after %llu instructions",
              static_cast<unsigned long long>(options_.max_instructions));
      return Error::OutOfResources;
    }
    const size_t current = next++;
    const Error error = options_.clock == nullptr ? run(instructions_[current], &next)
                                                  : run_timed(current, &next);
    if (error != Error::Ok) {
      HIL_LOG(Error, "instruction %zu (%s) failed: %s (0x%x)", current,
              instruction_name(instructions_[current]), error_name(error),
              static_cast<unsigned>(error));
      return error;
    }
#ifdef HIL_VALUE_DIGESTS
    const Span<Value*> args = instructions_[current].args;
    if (!args.empty()) log_digest(current, *args[args.size() - 1]);
#endif
  }
  return Error::Ok;
}

Error Method::run_timed(size_t current, size_t* next) {
  const uint64_t start = options_.clock();
  const Error error = run(instructions_[current], next);
  ticks_[current] += options_.clock() - start;
  return error;
}

Error Method::run(const Instruction& instruction, size_t* next) {
  switch (instruction.kind) {
    case Instruction::Kind::Kernel:
      return run_kernel(instruction);
    case Instruction::Kind::Delegate:
      return run_delegate(instruction);
    case Instruction::Kind::Move:
      return run_move(instruction);
    case Instruction::Kind::JumpFalse:
      return run_jump(instruction, next);
    case Instruction::Kind::Free:
      // Only a tensor without a planned place could be freed, and those are refused at load.
      return Error::Ok;
  }
  return Error::Internal;
}

Error Method::run_kernel(const Instruction& instruction) {
  Args args(instruction.args.data(), instruction.args.size());
  KernelContext context(instruction.kernel->name, temp_);
  if (!all_bound_) {
    const Args checked = instruction.binds_output && !args.empty() ? args.sub(0, 1) : args;
    if (!all_bound(checked)) {
      return context.fail(Error::InvalidState, "an argument has no data yet");
    }
  }
  const bool constant_output = !args.empty() && args[args.size() - 1]->tag == Tag::Tensor &&
                               args[args.size() - 1]->tensor.constant;
  if (constant_output && !instruction.binds_output) {
    return context.fail(Error::InvalidProgram, "its output is a constant");
  }
  const Error error = instruction.kernel->function(context, args);
  temp_->rewind(0);
  if (instruction.binds_output && error == Error::Ok) {
    // A view of a constant must stay as unwritable as the constant.
    const Value& source = *args[0];
    Value& view = *args[args.size() - 1];
    if (source.tag == Tag::Tensor && view.tag == Tag::Tensor) {
      view.tensor.constant = source.tensor.constant;
    }
  }
  return error;
}

Error Method::run_delegate(const Instruction& instruction) {
  const Args args(instruction.args.data(), instruction.args.size());
  if (!all_bound_ && !all_bound(args)) return Error::InvalidState;
  const Error error =
      instruction.delegate->backend->execute(instruction.delegate->handle, args, *temp_);
  temp_->rewind(0);
  return error;
}

Error Method::run_move(const Instruction& instruction) {
  const Value& from = *instruction.args[0];
  Value& to = *instruction.args[1];
  if (from.tag != to.tag) {
    HIL_LOG(Error, "a value cannot be moved into one of another type");
    return Error::InvalidType;
  }
  to = from;
  return Error::Ok;
}

Error Method::run_jump(const Instruction& instruction, size_t* next) {
  const Value& condition = *instruction.args[0];
  bool truth = false;
  if (condition.tag == Tag::Bool) {
    truth = condition.as_bool;
  } else if (condition.tag == Tag::Tensor && condition.tensor.type == ScalarType::Bool &&
             condition.tensor.numel == 1 && condition.tensor.data != nullptr) {
    truth = condition.tensor.data[0] != 0;
  } else {
    HIL_LOG(Error, "the condition is neither a bool nor a tensor of one bool");
    return Error::InvalidType;
  }
  if (!truth) *next = instruction.target;
  return Error::Ok;
}

}  // namespace hil
