#include "core/method_loader.h"

#include <cstring>

#include "core/log.h"
#include "core/schema.h"
#include "core/tensor_loader.h"

namespace hil {

namespace fb = executorch_flatbuffer;

namespace {

Error invalid(const char* what) {
  HIL_LOG(Error, "invalid program: %s", what);
  return Error::InvalidProgram;
}

template <typename Vector>
size_t length(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

/// False when a value's eight-byte items lie askew.
bool items_aligned(const fb::EValue& value) {
  switch (value.val_type()) {
    case fb::KernelTypes_IntList: return elements_aligned(value.val_as_IntList()->items());
    case fb::KernelTypes_DoubleList: return elements_aligned(value.val_as_DoubleList()->items());
    default: return true;
  }
}

/// Number of list items of a value, 0 for anything that is no list of references.
size_t list_length(const fb::EValue& value) {
  switch (value.val_type()) {
    case fb::KernelTypes_IntList: return length(value.val_as_IntList()->items());
    case fb::KernelTypes_TensorList: return length(value.val_as_TensorList()->items());
    case fb::KernelTypes_OptionalTensorList:
      return length(value.val_as_OptionalTensorList()->items());
    default: return 0;
  }
}

/// Instructions and values are decoded through their union; an absent table is an error.
bool has_table(const fb::EValue& value) {
  return value.val_type() == fb::KernelTypes_NONE ? false : value.val() != nullptr;
}

}  // namespace

Error Method::init(const Program& program, const char* name, Arena& memory, Arena& temp,
                   const MethodOptions& options) {
  const fb::ExecutionPlan* plan = program.method(name);
  if (plan == nullptr) {
    HIL_LOG(Error, "the program has no method '%s'", name == nullptr ? "" : name);
    return Error::InvalidArgument;
  }
  if (ready_ || !values_.empty()) return Error::AlreadyLoaded;
  temp_ = &temp;
  options_ = options;
  MethodLoader loader(program, *plan, memory, *this);
  const Error error = loader.load();
  ready_ = error == Error::Ok;
  return error;
}

Error MethodLoader::load() {
  Counts counts;
  Error error = count(&counts);
  if (error == Error::Ok) error = check_planned_buffers();
  if (error == Error::Ok) error = report_missing_operators();
  if (error == Error::Ok) error = take_memory(counts);
  if (error == Error::Ok) error = decode_values();
  if (error == Error::Ok) error = decode_lists();
  if (error == Error::Ok) error = decode_io();
  if (error == Error::Ok) error = decode_delegates();
  if (error == Error::Ok) error = decode_instructions();
  return error;
}

// --- Counting and memory ---------------------------------------------------------------------

Error MethodLoader::count(Counts* counts) const {
  counts->values = length(plan_.values());
  counts->pointers = uint64_t{length(plan_.inputs())} + length(plan_.outputs());
  for (size_t i = 0; i < counts->values; ++i) {
    const fb::EValue& value = *plan_.values()->Get(static_cast<uint32_t>(i));
    if (!has_table(value)) return invalid("a value without content");
    if (!items_aligned(value)) return invalid("a list is not aligned to its items");
    counts->pointers += list_length(value);
  }
  for (size_t i = 0; i < length(plan_.chains()); ++i) {
    const auto* instructions = plan_.chains()->Get(static_cast<uint32_t>(i))->instructions();
    for (size_t k = 0; k < length(instructions); ++k) {
      const Error error =
          count_instruction(*instructions->Get(static_cast<uint32_t>(k)), counts);
      if (error != Error::Ok) return error;
    }
  }
  counts->delegates = length(plan_.delegates());
  for (size_t i = 0; i < counts->delegates; ++i) {
    counts->specs += length(plan_.delegates()->Get(static_cast<uint32_t>(i))->compile_specs());
  }
  return Error::Ok;
}

Error MethodLoader::count_instruction(const fb::Instruction& source, Counts* counts) const {
  if (source.instr_args() == nullptr) return invalid("an instruction without arguments");
  ++counts->instructions;
  switch (source.instr_args_type()) {
    case fb::InstructionArguments_KernelCall:
      counts->pointers += length(source.instr_args_as_KernelCall()->args());
      return Error::Ok;
    case fb::InstructionArguments_DelegateCall:
      counts->pointers += length(source.instr_args_as_DelegateCall()->args());
      return Error::Ok;
    case fb::InstructionArguments_MoveCall:
      counts->pointers += 2;
      return Error::Ok;
    case fb::InstructionArguments_JumpFalseCall:
    case fb::InstructionArguments_FreeCall:
      counts->pointers += 1;
      return Error::Ok;
    default:
      return invalid("an instruction of unknown kind");
  }
}

Error MethodLoader::check_planned_buffers() const {
  if (!elements_aligned(plan_.non_const_buffer_sizes())) {
    return invalid("the planned buffer sizes are not aligned");
  }
  for (size_t i = 0; i < length(plan_.non_const_buffer_sizes()); ++i) {
    if (plan_.non_const_buffer_sizes()->Get(static_cast<uint32_t>(i)) < 0) {
      return invalid("a planned buffer of negative size");
    }
  }
  for (size_t i = 0; i < length(plan_.non_const_buffer_device()); ++i) {
    if (plan_.non_const_buffer_device()->Get(static_cast<uint32_t>(i))->device_type() !=
        fb::DeviceType_CPU) {
      HIL_LOG(Error, "planned buffers on another device are not supported");
      return Error::NotSupported;
    }
  }
  return Error::Ok;
}

/// Places all of the method's memory in `arena`; a measuring arena only adds up.
bool MethodLoader::place(Arena& arena, const Counts& counts, MethodUsage* usage) {
  const uint64_t start = arena.used();
  const auto fits = [](auto span, uint64_t wanted) { return span.size() == wanted; };
  if (counts.pointers > SIZE_MAX / sizeof(Value*)) return false;
  const size_t buffers = length(plan_.non_const_buffer_sizes());
  const size_t planned_count = buffers == 0 ? 0 : buffers - 1;  // entry 0 is reserved
  method_.values_ = arena.make<Value>(counts.values);
  pointers_ = arena.make<Value*>(static_cast<size_t>(counts.pointers));
  method_.instructions_ = arena.make<Instruction>(counts.instructions);
  method_.delegates_ = arena.make<Delegate>(counts.delegates);
  specs_ = arena.make<CompileSpec>(counts.specs);
  planned_ = arena.make<Span<uint8_t>>(planned_count);
  if (!fits(method_.values_, counts.values) || !fits(pointers_, counts.pointers) ||
      !fits(method_.instructions_, counts.instructions) ||
      !fits(method_.delegates_, counts.delegates) || !fits(specs_, counts.specs) ||
      !fits(planned_, planned_count)) {
    return false;
  }
  usage->loaded = arena.used() - start;
  const size_t tick_count = method_.options_.clock != nullptr ? counts.instructions : 0;
  method_.ticks_ = arena.make<uint64_t>(tick_count);
  if (!fits(method_.ticks_, tick_count)) return false;
  usage->executor = arena.used() - start - usage->loaded;
  usage->planned = 0;
  for (size_t i = 0; i < planned_count; ++i) {
    const int64_t size = plan_.non_const_buffer_sizes()->Get(static_cast<uint32_t>(i + 1));
    void* buffer = arena.allocate(static_cast<uint64_t>(size));
    if (buffer == nullptr) return false;
    usage->planned += static_cast<uint64_t>(size);
    if (!arena.is_measuring()) {
      planned_[i] = Span<uint8_t>(static_cast<uint8_t*>(buffer), static_cast<size_t>(size));
      std::memset(buffer, 0, static_cast<size_t>(size));  // the same start on every simulator
    }
  }
  usage->loaded = arena.used() - start - usage->executor - usage->planned;  // with all padding
  return true;
}

Error MethodLoader::too_small(uint64_t needed) const {
  HIL_LOG(Error,
          "method allocator too small: %llu bytes needed, %zu available; "
          "build with a larger HIL_METHOD_POOL_BYTES",
          static_cast<unsigned long long>(needed), memory_.capacity());
  return Error::MemoryAllocationFailed;
}

Error MethodLoader::take_memory(const Counts& counts) {
  Arena measure = Arena::measuring(memory_);
  MethodUsage usage;
  const bool countable = place(measure, counts, &usage);
  if (!countable || measure.used() > memory_.capacity()) {
    method_.values_ = {};
    method_.instructions_ = {};
    method_.delegates_ = {};
    method_.ticks_ = {};
    return too_small(countable ? measure.used() : UINT64_MAX);
  }
  return place(memory_, counts, &method_.usage_) ? Error::Ok : Error::Internal;
}

Span<Value*> MethodLoader::take_pointers(size_t count) {
  const Span<Value*> taken = pointers_.sub(pointers_taken_, count);
  pointers_taken_ += taken.size();
  return taken;
}

// --- Values ----------------------------------------------------------------------------------

Error MethodLoader::value_at(int64_t index, Value** out) const {
  if (index < 0 || static_cast<uint64_t>(index) >= method_.values_.size()) {
    return invalid("value index out of range");
  }
  *out = &method_.values_[static_cast<size_t>(index)];
  return Error::Ok;
}

Error MethodLoader::take_values(const Indices* indices, Span<Value*>* out) {
  *out = take_pointers(length(indices));
  if (out->size() != length(indices)) return Error::Internal;
  for (size_t i = 0; i < out->size(); ++i) {
    const Error error = value_at(indices->Get(static_cast<uint32_t>(i)), &(*out)[i]);
    if (error != Error::Ok) return error;
  }
  return Error::Ok;
}

Error MethodLoader::decode_values() {
  for (size_t i = 0; i < method_.values_.size(); ++i) {
    const fb::EValue& source = *plan_.values()->Get(static_cast<uint32_t>(i));
    const Error error = decode_value(source, &method_.values_[i]);
    if (error != Error::Ok) {
      HIL_LOG(Error, "value %zu cannot be loaded", i);
      return error;
    }
  }
  return Error::Ok;
}

Error MethodLoader::decode_value(const fb::EValue& source, Value* out) {
  switch (source.val_type()) {
    case fb::KernelTypes_Null:
      out->tag = Tag::None;
      return Error::Ok;
    case fb::KernelTypes_Int:
      out->tag = Tag::Int;
      out->as_int = source.val_as_Int()->int_val();
      return Error::Ok;
    case fb::KernelTypes_Bool:
      out->tag = Tag::Bool;
      out->as_bool = source.val_as_Bool()->bool_val();
      return Error::Ok;
    case fb::KernelTypes_Double:
      out->tag = Tag::Double;
      out->as_double = source.val_as_Double()->double_val();
      return Error::Ok;
    case fb::KernelTypes_Tensor: {
      const fb::Tensor& tensor = *source.val_as_Tensor();
      out->tag = Tag::Tensor;
      out->tensor = Tensor();
      const Error error = decode_shape(tensor, &out->tensor);
      if (error != Error::Ok) return error;
      return bind_storage(program_, tensor,
                          Span<const Span<uint8_t>>(planned_.data(), planned_.size()),
                          &out->tensor);
    }
    case fb::KernelTypes_String: {
      const auto* text = source.val_as_String()->string_val();
      out->tag = Tag::String;
      out->string = text == nullptr ? Span<const char>("", 0)
                                    : Span<const char>(text->c_str(), text->size());
      return Error::Ok;
    }
    case fb::KernelTypes_DoubleList: {
      const auto* items = source.val_as_DoubleList()->items();
      out->tag = Tag::DoubleList;
      out->doubles = items == nullptr ? Span<const double>()
                                      : Span<const double>(items->data(), items->size());
      return Error::Ok;
    }
    case fb::KernelTypes_BoolList: {
      const auto* items = source.val_as_BoolList()->items();
      out->tag = Tag::BoolList;
      out->bools = items == nullptr ? Span<const uint8_t>()
                                    : Span<const uint8_t>(items->data(), items->size());
      return Error::Ok;
    }
    case fb::KernelTypes_IntList:
    case fb::KernelTypes_TensorList:
    case fb::KernelTypes_OptionalTensorList:
      out->tag = Tag::None;  // decode_lists() fills it in
      return Error::Ok;
    default:
      return invalid("a value of unknown type");
  }
}

Error MethodLoader::decode_lists() {
  for (size_t i = 0; i < method_.values_.size(); ++i) {
    const fb::EValue& source = *plan_.values()->Get(static_cast<uint32_t>(i));
    const Error error = decode_list(source, &method_.values_[i]);
    if (error != Error::Ok) {
      HIL_LOG(Error, "value %zu cannot be loaded", i);
      return error;
    }
  }
  return Error::Ok;
}

Error MethodLoader::decode_list(const fb::EValue& source, Value* out) {
  Tag tag = Tag::None;
  Tag item_tag = Tag::Tensor;
  const flatbuffers::Vector<int64_t>* ints = nullptr;
  const Indices* tensors = nullptr;
  if (source.val_type() == fb::KernelTypes_IntList) {
    tag = Tag::IntList;
    item_tag = Tag::Int;
    ints = source.val_as_IntList()->items();
  } else if (source.val_type() == fb::KernelTypes_TensorList) {
    tag = Tag::TensorList;
    tensors = source.val_as_TensorList()->items();
  } else if (source.val_type() == fb::KernelTypes_OptionalTensorList) {
    tag = Tag::OptionalTensorList;
    tensors = source.val_as_OptionalTensorList()->items();
  } else {
    return Error::Ok;
  }
  const Span<Value*> items = take_pointers(list_length(source));
  if (items.size() != list_length(source)) return Error::Internal;
  for (size_t i = 0; i < items.size(); ++i) {
    const uint32_t at = static_cast<uint32_t>(i);
    const int64_t index = ints != nullptr ? ints->Get(at) : tensors->Get(at);
    if (tag == Tag::OptionalTensorList && index == -1) {
      items[i] = nullptr;
      continue;
    }
    const Error error = value_at(index, &items[i]);
    if (error != Error::Ok) return error;
    const bool is_none = tag == Tag::OptionalTensorList && items[i]->tag == Tag::None;
    if (is_none) items[i] = nullptr;
    if (!is_none && items[i]->tag != item_tag) return invalid("a list item of the wrong type");
  }
  out->list = Span<Value* const>(items.data(), items.size());
  out->tag = tag;
  return Error::Ok;
}

Error MethodLoader::decode_io() {
  Error error = take_values(plan_.inputs(), &method_.inputs_);
  if (error == Error::Ok) error = take_values(plan_.outputs(), &method_.outputs_);
  const uint64_t start = memory_.used();
  if (error == Error::Ok) error = give_storage(method_.inputs_);
  if (error == Error::Ok) error = give_storage(method_.outputs_);
  method_.usage_.input = memory_.used() - start;
  return error;
}

/// Storage for inputs and outputs that the planner left to the runtime.
Error MethodLoader::give_storage(Span<Value*> values) {
  for (Value* value : values) {
    if (value->tag != Tag::Tensor || value->tensor.data != nullptr) continue;
    void* data = memory_.allocate(value->tensor.nbytes);
    if (data == nullptr) return too_small(memory_.used() + value->tensor.nbytes);
    value->tensor.data = static_cast<uint8_t*>(data);
    std::memset(data, 0, value->tensor.nbytes);
  }
  return Error::Ok;
}

// --- Delegates -------------------------------------------------------------------------------

Error MethodLoader::decode_delegates() {
  for (size_t i = 0; i < method_.delegates_.size(); ++i) {
    const Error error = decode_delegate(*plan_.delegates()->Get(static_cast<uint32_t>(i)),
                                        &method_.delegates_[i]);
    if (error != Error::Ok) return error;
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
  const Error error = program_.delegate_data(*source.processed(), &processed);
  if (error != Error::Ok) return error;
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

// --- Instructions ----------------------------------------------------------------------------

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
  if (base == 0 || base + overload + 2 > capacity) return invalid("operator name empty or too long");
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
    const Error error = resolve(op, &kernel, name, sizeof(name));
    if (error != Error::Ok) return error;
    if (kernel != nullptr) continue;
    size_t users = 0;
    for (size_t i = 0; i < length(plan_.chains()); ++i) {
      const auto* instructions = plan_.chains()->Get(static_cast<uint32_t>(i))->instructions();
      for (size_t k = 0; k < length(instructions); ++k) {
        const auto* call =
            instructions->Get(static_cast<uint32_t>(k))->instr_args_as_KernelCall();
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
      const Error error =
          decode_instruction(*source->Get(static_cast<uint32_t>(k)), start, length(source),
                             &method_.instructions_[next]);
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
      const Error error = resolve(static_cast<uint64_t>(call.op_index()), &out->kernel, name,
                                  sizeof(name));
      if (error != Error::Ok) return error;
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
      const Error error = value_at(call.move_from(), &out->args[0]);
      return error == Error::Ok ? value_at(call.move_to(), &out->args[1]) : error;
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
