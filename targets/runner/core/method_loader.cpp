#include "core/method_loader.h"

#include <cstring>

#include "core/loading.h"

namespace hil {

using loading::invalid;
using loading::length;
using loading::list_length;

namespace {

/// False when a value's eight-byte items lie askew.
bool items_aligned(const fb::EValue& value) {
  switch (value.val_type()) {
    case fb::KernelTypes_IntList:
      return elements_aligned(value.val_as_IntList()->items());
    case fb::KernelTypes_DoubleList:
      return elements_aligned(value.val_as_DoubleList()->items());
    default:
      return true;
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
  all_bound_ = true;
  for (const Value& value : values_) all_bound_ = all_bound_ && !lacks_data(value);
  return error;
}

Error MethodLoader::load() {
  Counts counts;
  HIL_TRY(count(&counts));
  HIL_TRY(check_planned_buffers());
  HIL_TRY(report_missing_operators());
  HIL_TRY(take_memory(counts));
  HIL_TRY(decode_values());
  HIL_TRY(decode_lists());
  HIL_TRY(decode_io());
  HIL_TRY(decode_delegates());
  return decode_instructions();
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
      HIL_TRY(count_instruction(*instructions->Get(static_cast<uint32_t>(k)), counts));
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

}  // namespace hil
