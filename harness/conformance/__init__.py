"""ExecuTorch's own on-target test suites, unmodified, run through the FVP stand-in.

suite, options --> stage (a directory the suite finds everything in)
               --> run (pytest, its workers, one event per phase of a test)
               --> verdicts (result and first cause; what is known to fail laid over)
               --> report (table, JSON, JUnit)
"""
