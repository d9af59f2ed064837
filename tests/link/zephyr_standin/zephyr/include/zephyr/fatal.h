#pragma once
struct arch_esf;
void k_sys_fatal_error_handler(unsigned int reason, const struct arch_esf* frame);
