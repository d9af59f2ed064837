#pragma once
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef void *k_tid_t;
k_tid_t k_current_get(void);
int k_thread_stack_space_get(k_tid_t thread, size_t *unused);
#ifdef __cplusplus
}
#endif
