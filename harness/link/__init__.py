"""Link failures: why a link failed, the smallest thing that still fails, and whether a hook is one.

``explain`` reads a log or a build directory, ``reduce`` shrinks a failing link to a folder that
needs nothing but the toolchain, ``check`` proves that a weak default can be overridden.
"""
