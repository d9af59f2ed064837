"""What a failed build said: the first error in its log, as the right kind of error."""

from __future__ import annotations

import re
from pathlib import Path

from harness.errors import BuildError, HarnessError, InfraError, LinkError

_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_KILLED = re.compile(r"Killed signal terminated program|internal compiler error: Killed")
_LINK_FAILED = re.compile(
    r"collect2: (?:error|fatal error): .*ld|ld returned \d+ exit|linker command failed"
)
_LINK_ERROR = re.compile(
    r"undefined reference to|will not fit in region|overflowed by|multiple definition of"
    r"|cannot find -l|undefined symbol:|\bld(?:\.\w+)?: (?!warning)|duplicate symbol"
    r"|linker script|ASSERT"
)
_COMPILE_ERROR = re.compile(r"(?:^|[:\s])(?:fatal )?[Ee]rror: ")
_STEP = re.compile(r"^\[\d+/\d+\] ")
_UNUSED = re.compile(
    r"Manually-specified variables were not used by the project:\n\n((?:[ \t]+\w+\n)+)"
)
_MOST = 20  # failures of one link that a record keeps


def diagnose(log: Path, text: str, step: str, **facts: object) -> HarnessError:
    """The error to raise for a failed ``step`` ("configure", "compile")."""
    number, line = _first_error(text)
    shown = line or f"the {step} step failed and its log does not say why"
    facts = {"log": str(log), "log_line": number, "step": step, **facts}
    hint = f"the whole output is in {log}"
    if match := _DISK_FULL.search(text):
        return InfraError(f"{match[0]} while the runner was built", hint=hint, **facts)
    if _KILLED.search(text):
        return InfraError(f"the compiler was killed (out of memory?): {shown}", hint=hint, **facts)
    if step != "configure" and _LINK_FAILED.search(text):
        return _link_error(shown, log, text, facts)
    return BuildError(shown, hint=hint, **facts)


def _link_error(shown: str, log: Path, text: str, facts: dict[str, object]) -> LinkError:
    """The error with why the link failed and what to do, and all failures in ``facts``."""
    from harness.link.why.explain import explain_log  # only a failure pays for it

    hint = f"the whole output is in {log}"
    try:
        failures = explain_log(text, log, lambda _message: None).failures
    except HarnessError as error:
        return LinkError(shown, hint=f"{hint} (not explained: {error.message})", **facts)
    if not failures:
        return LinkError(shown, hint=hint, **facts)
    known = [failure.summary() for failure in failures[:_MOST]]
    return LinkError(
        shown, hint=f"{failures[0].cause} {failures[0].fix} ({hint})", failures=known, **facts
    )


def unused_options(text: str) -> tuple[str, ...]:
    """Options that CMake was given and nothing asked for: a misspelt name."""
    return tuple(name for block in _UNUSED.findall(text) for name in block.split())


def _first_error(text: str) -> tuple[int | None, str | None]:
    """Line number and text of the first error; of the step that failed, where ninja says so."""
    lines = text.splitlines()
    if (found := _cmake_error(lines)) is not None:
        return found
    failed = next((i for i, line in enumerate(lines) if line.startswith("FAILED: ")), 0)
    end = next((i for i in range(failed + 1, len(lines)) if _STEP.match(lines[i])), len(lines))
    link = any(_LINK_FAILED.search(line) for line in lines[failed:end])
    for pattern in (_LINK_ERROR, _COMPILE_ERROR) if link else (_COMPILE_ERROR,):
        # the lines after FAILED are the command; it may contain words that look like errors
        for index in range(failed + 2 if failed else 0, end):
            if pattern.search(lines[index]):
                return index + 1, lines[index].strip()
    return None, None


def _cmake_error(lines: list[str]) -> tuple[int, str] | None:
    for index, line in enumerate(lines):
        if line.startswith("CMake Error"):
            words = [line.strip()]
            for more in lines[index + 1 :]:
                if more and not more.startswith(" "):
                    break
                if not more and len(words) > 1:
                    break
                if more.strip():
                    words.append(more.strip())
            return index + 1, " ".join(words)
    return None
