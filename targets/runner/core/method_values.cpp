// The method loader's values, lists, inputs and outputs.
#include <cstring>

#include "core/loading.h"
#include "core/tensor_loader.h"

namespace hil {

using loading::invalid;
using loading::length;
using loading::list_length;

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
    HIL_TRY(value_at(indices->Get(static_cast<uint32_t>(i)), &(*out)[i]));
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
      HIL_TRY(decode_shape(tensor, &out->tensor));
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
    HIL_TRY(value_at(index, &items[i]));
    const bool is_none = tag == Tag::OptionalTensorList && items[i]->tag == Tag::None;
    if (is_none) items[i] = nullptr;
    if (!is_none && items[i]->tag != item_tag) return invalid("a list item of the wrong type");
  }
  out->list = Span<Value* const>(items.data(), items.size());
  out->tag = tag;
  return Error::Ok;
}

Error MethodLoader::decode_io() {
  HIL_TRY(take_values(plan_.inputs(), &method_.inputs_));
  HIL_TRY(take_values(plan_.outputs(), &method_.outputs_));
  const uint64_t start = memory_.used();
  HIL_TRY(give_storage(method_.inputs_));
  HIL_TRY(give_storage(method_.outputs_));
  method_.usage_.input = memory_.used() - start;
  return Error::Ok;
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

}  // namespace hil
