"""Lines as the vintages of ExecuTorch's runner write them, for the tests of the reader."""

from __future__ import annotations

VINTAGES = {
    "early 2024": "{level} executorch:arm_executor_runner.cpp:60] {text}",
    "late 2024": "{level} [executorch:arm_executor_runner.cpp:364] {text}",
    "mid 2025": "{level} [executorch:arm_executor_runner.cpp:211 main()] {text}",
    "zephyr sample": "{level} [executorch:main.cpp] {text}",
    "host": "[method.cpp:788] {text}",
}
ENDS = {"raw": "\x04", "empty": "", "diamond": "\u2666"}


def log(vintage: str, *messages: str, level: str = "I", newline: str = "\n") -> bytes:
    lines = [VINTAGES[vintage].format(level=level, text=text) for text in messages]
    return "".join(line + newline for line in lines).encode()
