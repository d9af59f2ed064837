"""ExecuTorch's own CI jobs for Arm, job by job, on the FVP stand-in.

jobs.yaml, workflows of the checkout --> jobs        the jobs, and where the list is out of date
                                     --> workspace   a copy of the checkout, commands, environment
                                     --> run         a job's own commands; ``suites.recorder``
                                                     watches its pytest
                                     --> results     a verdict for each call of the FVP, the report
"""
