#include "parallel.h"

#include <pthread.h>

#include <algorithm>

namespace hil::npu {
namespace {

constexpr int64_t kMost = 8;

struct Part {
  void (*run)(void*, int64_t, int64_t);
  void* context;
  int64_t first, last;
};

void* start(void* given) {
  const Part& part = *static_cast<Part*>(given);
  part.run(part.context, part.first, part.last);
  return nullptr;
}

}  // namespace

void in_parts(int64_t parts, int64_t count, void (*run)(void*, int64_t, int64_t), void* context) {
  parts = std::max<int64_t>(1, std::min({parts, count, kMost}));
  Part part[kMost];
  pthread_t thread[kMost];
  bool started[kMost] = {};
  for (int64_t n = 0; n < parts; ++n) {
    part[n] = {run, context, count * n / parts, count * (n + 1) / parts};
    started[n] = n > 0 && pthread_create(&thread[n], nullptr, start, &part[n]) == 0;
  }
  for (int64_t n = 0; n < parts; ++n) {
    if (!started[n]) {
      start(&part[n]);
    }
  }
  for (int64_t n = 0; n < parts; ++n) {
    if (started[n]) {
      pthread_join(thread[n], nullptr);
    }
  }
}

}  // namespace hil::npu
