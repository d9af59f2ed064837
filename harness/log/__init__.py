"""The log grammar of runners and simulators: console bytes in, typed events out.

``parser.parse_console`` reads a whole console; ``parser.LogParser`` is fed while a run goes on. The
messages are rows of ``patterns.yaml``. The parser survives bytes that are not UTF-8: an
undefined-operator message can carry garbage.
"""
