#include <zephyr/sys/printk.h>

int probe_execute(char *to, const char *from);
char probe_output[64];
const char probe_model[512] = {1};

int main(void) {
  printk("probe %d\n", probe_execute(probe_output, probe_model));
  return 0;
}
