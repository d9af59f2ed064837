#include "ports/zephyr/main.h"

int main(void) {
  hil_runner_main();
  return 0;
}
