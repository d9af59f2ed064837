// The NPU behind its registers. Written from the sources named in the .cpp and tested against a
// double of the registers; not run on an FVP or a board.
#pragma once

#include "ethosu/device.h"

namespace hil::ethosu {

class Registers {
 public:
  virtual uint32_t read(uint32_t offset) = 0;
  virtual void write(uint32_t offset, uint32_t value) = 0;

 protected:
  ~Registers() = default;
};

/// An NPU's register block in this machine's address space.
class MappedRegisters final : public Registers {
 public:
  explicit constexpr MappedRegisters(uintptr_t base) : base_(base) {}
  uint32_t read(uint32_t offset) override { return at(offset); }
  void write(uint32_t offset, uint32_t value) override { at(offset) = value; }

 private:
  volatile uint32_t& at(uint32_t offset) const {
    return *reinterpret_cast<volatile uint32_t*>(base_ + offset);
  }
  uintptr_t base_;
};

class RegisterDevice final : public Device {
 public:
  /// `polls` bounds each wait; it is a number of register reads, not a time.
  explicit constexpr RegisterDevice(Registers& registers, uint32_t polls = 0xFFFFFFFF)
      : registers_(registers), polls_(polls) {}

  Error reset() override;
  void identify(uint32_t* config, uint32_t* id) override;
  Error run(Span<const uint8_t> commands, Span<const Region> regions, Fault* fault) override;

 private:
  void set_up_memory_ports();
  void set_base(uint32_t low_register, uint64_t address);
  void command(uint32_t bits);

  Registers& registers_;
  uint32_t polls_;
  bool wide_addresses_ = false;
};

}  // namespace hil::ethosu
