// Work on several cores, and memory for it.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace hil::npu {

// Calls run(context, first, last) for parts of 0..count, ``parts`` at most at a time.
void in_parts(int64_t parts, int64_t count, void (*run)(void*, int64_t, int64_t), void* context);

template <typename Body>
void parallel(int64_t parts, int64_t count, Body body) {
  in_parts(
      parts, count,
      [](void* context, int64_t first, int64_t last) {
        (*static_cast<Body*>(context))(first, last);
      },
      &body);
}

// Memory for one job, null when there is none; aligned for any vector.
template <typename Element>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : data_(static_cast<Element*>(std::aligned_alloc(
            64, (static_cast<size_t>(count) * sizeof(Element) + 64 * 4) / 64 * 64))) {}
  ~Scratch() { std::free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  Element* data() const { return data_; }

 private:
  Element* data_;
};

}  // namespace hil::npu
