"""ExecuTorch on Arm: export, build, simulate, observe, judge, report."""
