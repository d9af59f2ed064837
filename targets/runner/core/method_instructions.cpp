// The method loader's delegates, operators and instructions.
#include <cstring>

#include "core/loading.h"

namespace hil {

using loading::invalid;
using loading::length;

Error MethodLoader::decode_delegates() {
  for (size_t i = 0; i < method_.delegates_.size(); ++i) {
    HIL_TRY(
        decode_delegate(*plan_.delegates()->Get(static_cast<uint32_t>(i)), &method_.delegates_[i]));
  }
  return Error::Ok;
}

Error MethodLoader::decode_delegate(const fb::BackendDelegate& source, Delegate* out) {
  if (source.id() == nullptr || source.processed() == nullptr) {
    return invalid("a delegate without name or data");
  }
  out->id = source.id()->c_str();
  for (const BackendEntry& entry : method_.options_.backends) {
    if (std::strcmp(entry.id, out->id) == 0) out->backend = entry.backend;
  }
  if (out->backend == nullptr) {
    HIL_LOG(Error, "Backend %s is not registered.", out->id);
    return Error::NotFound;
  }
  Span<const uint8_t> processed;
  HIL_TRY(program_.delegate_data(*source.processed(), &processed));
  const Span<CompileSpec> specs = specs_.sub(specs_taken_, length(source.compile_specs()));
  specs_taken_ += specs.size();
  for (size_t i = 0; i < specs.size(); ++i) {
    const fb::CompileSpec& spec = *source.compile_specs()->Get(static_cast<uint32_t>(i));
    specs[i].key = spec.key() == nullptr ? "" : spec.key()->c_str();
    if (spec.value() != nullptr) {
      specs[i].value = Span<const uint8_t>(spec.value()->data(), spec.value()->size());
    }
  }
  DelegateSetup setup{program_, processed, Span<const CompileSpec>(specs.data(), specs.size()),
                      memory_};
  return out->backend->init(setup, &out->handle);
}

namespace {
constexpr size_t kMaxOperatorName = 128;
constexpr char kViewOperator[] = "executorch_prim::et_view.default";
}  // namespace

/// The kernel of operator `op_index`, null when the build has none; its name either way.
Error MethodLoader::resolve(uint64_t op_index, const KernelEntry** kernel, char* name,
                            size_t capacity) const {
  if (op_index >= length(plan_.operators())) return invalid("operator index out of range");
  const fb::Operator& op = *plan_.operators()->Get(static_cast<uint32_t>(op_index));
  const size_t base = length(op.name());
  const size_t overload = length(op.overload());
  if (base == 0 || base + overload + 2 > capacity)
    return invalid("operator name empty or too long");
  std::memcpy(name, op.name()->c_str(), base + 1);
  if (overload > 0) {
    name[base] = '.';
    std::memcpy(name + base + 1, op.overload()->c_str(), overload + 1);
  }
  *kernel = find_kernel(method_.options_.kernels, name);
  return Error::Ok;
}

Error MethodLoader::report_missing_operators() const {
  size_t affected = 0;
  for (size_t op = 0; op < length(plan_.operators()); ++op) {
    const KernelEntry* kernel = nullptr;
    char name[kMaxOperatorName];
    HIL_TRY(resolve(op, &kernel, name, sizeof(name)));
    if (kernel != nullptr) continue;
    size_t users = 0;
    for (size_t i = 0; i < length(plan_.chains()); ++i) {
      const auto* instructions = plan_.chains()->Get(static_cast<uint32_t>(i))->instructions();
      for (size_t k = 0; k < length(instructions); ++k) {
        const auto* call = instructions->Get(static_cast<uint32_t>(k))->instr_args_as_KernelCall();
        if (call != nullptr && call->op_index() == static_cast<int64_t>(op)) ++users;
      }
    }
    if (users == 0) continue;
    affected += users;
    HIL_LOG(Error, "kernel '%s' not found.", name);
    HIL_LOG(Error, "Missing operator: [%zu] %s", op, name);
  }
  if (affected == 0) return Error::Ok;
  HIL_LOG(Error, "There are %zu instructions don't have corresponding operator registered",
          affected);
  return Error::OperatorMissing;
}

Error MethodLoader::decode_instructions() {
  size_t next = 0;
  for (size_t i = 0; i < length(plan_.chains()); ++i) {
    const auto* source = plan_.chains()->Get(static_cast<uint32_t>(i))->instructions();
    const size_t start = next;
    for (size_t k = 0; k < length(source); ++k, ++next) {
      const Error error = decode_instruction(*source->Get(static_cast<uint32_t>(k)), start,
                                             length(source), &method_.instructions_[next]);
      if (error != Error::Ok) {
        HIL_LOG(Error, "instruction %zu:%zu cannot be loaded", i, k);
        return error;
      }
    }
  }
  return Error::Ok;
}

Error MethodLoader::decode_instruction(const fb::Instruction& source, size_t chain_start,
                                       size_t chain_length, Instruction* out) {
  switch (source.instr_args_type()) {
    case fb::InstructionArguments_KernelCall: {
      const fb::KernelCall& call = *source.instr_args_as_KernelCall();
      char name[kMaxOperatorName];
      if (call.op_index() < 0) return invalid("operator index out of range");
      HIL_TRY(resolve(static_cast<uint64_t>(call.op_index()), &out->kernel, name, sizeof(name)));
      out->kind = Instruction::Kind::Kernel;
      out->binds_output = std::strcmp(name, kViewOperator) == 0;
      return take_values(call.args(), &out->args);
    }
    case fb::InstructionArguments_DelegateCall: {
      const fb::DelegateCall& call = *source.instr_args_as_DelegateCall();
      if (call.delegate_index() < 0 ||
          static_cast<uint64_t>(call.delegate_index()) >= method_.delegates_.size()) {
        return invalid("delegate index out of range");
      }
      out->kind = Instruction::Kind::Delegate;
      out->delegate = &method_.delegates_[static_cast<size_t>(call.delegate_index())];
      return take_values(call.args(), &out->args);
    }
    case fb::InstructionArguments_MoveCall: {
      const fb::MoveCall& call = *source.instr_args_as_MoveCall();
      out->kind = Instruction::Kind::Move;
      out->args = take_pointers(2);
      HIL_TRY(value_at(call.move_from(), &out->args[0]));
      return value_at(call.move_to(), &out->args[1]);
    }
    case fb::InstructionArguments_JumpFalseCall: {
      const fb::JumpFalseCall& call = *source.instr_args_as_JumpFalseCall();
      const int64_t target = call.destination_instruction();
      if (target < 0 || static_cast<uint64_t>(target) > chain_length) {
        return invalid("jump target out of range");
      }
      out->kind = Instruction::Kind::JumpFalse;
      out->target = static_cast<uint32_t>(chain_start + static_cast<size_t>(target));
      out->args = take_pointers(1);
      return value_at(call.cond_value_index(), &out->args[0]);
    }
    case fb::InstructionArguments_FreeCall:
      out->kind = Instruction::Kind::Free;
      out->args = take_pointers(1);
      return value_at(source.instr_args_as_FreeCall()->value_index(), &out->args[0]);
    default:
      return invalid("an instruction of unknown kind");
  }
}

}  // namespace hil
