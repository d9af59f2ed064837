// Typed access to arguments: a wrong program must end in an error, never in a wrong read.
#include "core/kernel.h"

#include <doctest/doctest.h>

#include "fake_platform.h"

namespace {

hil::Value integer(int64_t value) {
  hil::Value v;
  v.tag = hil::Tag::Int;
  v.as_int = value;
  return v;
}

}  // namespace

TEST_CASE("right arguments are returned") {
  hil::Value two = integer(2), three = integer(3), list, real, flag, none, tensor;
  hil::Value* items[] = {&two, &three};
  list.list = {items, 2};
  list.tag = hil::Tag::IntList;
  real.tag = hil::Tag::Double;
  real.as_double = 0.5;
  flag.tag = hil::Tag::Bool;
  flag.as_bool = true;
  tensor.tensor = hil::Tensor();
  tensor.tag = hil::Tag::Tensor;
  hil::Value* const values[] = {&two, &list, &real, &flag, &none, &tensor};
  const hil::Args args(values, 6);
  hil::KernelContext context("test::op");
  int32_t ints[2];
  CHECK(context.integer(args, 0) == 2);
  context.int_list(args, 1, ints, 2);
  CHECK(ints[1] == 3);
  CHECK(context.number(args, 2) == 0.5);
  CHECK(context.number(args, 0) == 2.0);
  CHECK(context.boolean(args, 3));
  CHECK(context.optional_tensor(args, 4) == nullptr);
  CHECK(context.optional_tensor(args, 5) == &tensor.tensor);
  CHECK(&context.tensor(args, 5) == &tensor.tensor);
  CHECK(context.ok());
}

TEST_CASE("the first wrong argument is reported with its index") {
  fake::reset();
  fake::take_log();
  hil::Value two = integer(2), none;
  hil::Value* const values[] = {&two, &none};
  const hil::Args args(values, 2);
  hil::KernelContext context("test::op");
  CHECK(context.tensor(args, 1).data == nullptr);
  context.boolean(args, 0);
  context.integer(args, 9);
  CHECK_FALSE(context.ok());
  CHECK(context.argument_error() == hil::Error::InvalidArgument);
  CHECK(fake::contains(fake::take_log(), "test::op: argument 1 is missing"));
}

TEST_CASE("int lists of the wrong length, item type or range are refused") {
  hil::Value big = integer(int64_t{1} << 40), none, list;
  hil::Value* items[] = {&big};
  list.list = {items, 1};
  list.tag = hil::Tag::IntList;
  hil::Value* const values[] = {&list};
  const hil::Args args(values, 1);
  int32_t out[2];
  hil::KernelContext range("r"), length("l"), type("t");
  range.int_list(args, 0, out, 1);
  CHECK_FALSE(range.ok());
  big.as_int = 1;
  length.int_list(args, 0, out, 2);
  CHECK_FALSE(length.ok());
  items[0] = &none;
  type.int_list(args, 0, out, 1);
  CHECK_FALSE(type.ok());
}

TEST_CASE("a list longer than there is place for is refused") {
  hil::Value items[] = {integer(1), integer(2), integer(3)}, list;
  hil::Value* pointers[] = {&items[0], &items[1], &items[2]};
  list.list = {pointers, 3};
  list.tag = hil::Tag::IntList;
  hil::Value* const values[] = {&list};
  const hil::Args args(values, 1);
  int32_t out[] = {7, 7, 7};
  hil::KernelContext all("a"), some("s");
  CHECK(all.int_list_upto(args, 0, out, 3) == 3);
  CHECK(all.ok());
  out[2] = 7;
  CHECK(some.int_list_upto(args, 0, out, 2) == 0);
  CHECK_FALSE(some.ok());
  CHECK(out[2] == 7);
}

TEST_CASE("find_kernel knows whole names only") {
  CHECK(hil::find_kernel(fake::kernels(), "test::copy.out") != nullptr);
  CHECK(hil::find_kernel(fake::kernels(), "test::copy") == nullptr);
}

TEST_CASE("scratch comes from the temp pool, and is told when it does not fit") {
  fake::reset();
  fake::take_log();
  alignas(32) uint8_t pool[64];
  hil::Arena temp({pool, sizeof(pool)});
  hil::KernelContext context("test::op", &temp);
  hil::Span<uint32_t> words;
  REQUIRE(context.scratch(10, &words) == hil::Error::Ok);
  CHECK(words.size() == 10);
  CHECK(reinterpret_cast<uint8_t*>(words.data()) == pool);
  hil::Span<uint32_t> more;
  CHECK(context.scratch(7, &more) == hil::Error::MemoryAllocationFailed);
  CHECK(fake::contains(fake::take_log(),
                       "test::op: temp allocator too small: 28 bytes needed, 24 available"));
  hil::KernelContext without("test::op");
  CHECK(without.scratch(1, &more) == hil::Error::MemoryAllocationFailed);
}

TEST_CASE("a list may lack tensors, or be one that lacks none") {
  hil::Value tensor, list, integers;
  tensor.tensor = hil::Tensor();
  tensor.tag = hil::Tag::Tensor;
  hil::Value* const items[] = {nullptr, &tensor};
  list.list = {items, 2};
  integers.tag = hil::Tag::IntList;
  for (const hil::Tag tag : {hil::Tag::OptionalTensorList, hil::Tag::TensorList}) {
    list.tag = tag;
    hil::Value* const values[] = {&list, &integers};
    hil::KernelContext context("test::op");
    CHECK(context.optional_tensor_list({values, 2}, 0).size() == 2);
    CHECK(context.ok());
    CHECK(context.optional_tensor_list({values, 2}, 1).empty());
    CHECK_FALSE(context.ok());
  }
}
