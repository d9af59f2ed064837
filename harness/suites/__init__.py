"""ExecuTorch's own on-target test suites, unmodified, on the FVP stand-in.

suite, options --> run         tests with stored exports are only simulated again
               --> session     the folder with runner and stand-in, and pytest for the rest;
                               ``recorder`` is its plugin
               --> store       the exports of these tests, for the next run
               --> results     a result and the first cause of each test, the report
               --> suites      known failures applied
"""
