// A native program's kernel, as far as the driver library asks: a source of the program, not of an
// archive, for a strong definition wins only once it is linked.
#include "ethosu/linux/doorbell_npu.h"

namespace EthosU {

System& system() {
  static hil::ethosu::linux_driver::DoorbellNpu npu;
  static hil::ethosu::linux_driver::UserDriver driver(npu);
  return driver;
}

}  // namespace EthosU
