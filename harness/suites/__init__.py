"""ExecuTorch's own on-target test suites, unmodified, on the FVP stand-in.

suite, options --> workspace   the folder in which the suite finds runner and stand-in
               --> replay      tests whose export the store has: only simulated again
               --> session     pytest for the rest; ``recorder`` is its plugin
               --> store       what these tests exported, for the next run
               --> verdicts    a result and the first cause of each test
               --> results     known failures applied, the report
"""
