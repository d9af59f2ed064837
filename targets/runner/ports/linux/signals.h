#pragma once

namespace hil {

/// From now on a signal that ends the program for a fault of its own is told, with the registers,
/// before it does.
void tell_of_signals();

}  // namespace hil
