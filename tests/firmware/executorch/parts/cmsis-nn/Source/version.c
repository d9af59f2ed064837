int arm_nn_version(void) { return 1; }
