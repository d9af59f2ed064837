/* The runner as a function of a Zephyr application. */
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
/* Runs what the semihosting command line says and ends the simulation with its status. */
void hil_runner_main(void);
/* Ends the simulation. */
void hil_runner_end(int status);
#ifdef __cplusplus
}
#endif
