#include <zephyr/fatal.h>
#include <zephyr/logging/log_ctrl.h>

#include "ports/zephyr/main.h"

/* A simulation that only stood still would have to be waited for. */
void k_sys_fatal_error_handler(unsigned int reason, const struct arch_esf* frame) {
  (void)reason;
  (void)frame;
  LOG_PANIC();
  hil_runner_end(1);
}

int main(void) {
  hil_runner_main();
  return 0;
}
