/* What kernels share: the requantization beside this file. */
int arm_nn_version(void);
