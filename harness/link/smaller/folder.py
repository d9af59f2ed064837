"""The folder that a reduced link failure is handed over in."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.link.failure import Failure
from harness.link.line.capture import Replay, shell

_MESSAGE = re.compile(
    r"undefined reference to|multiple definition of|overflowed by|will not fit in region|"
    r"is not an object|not recogni[sz]ed|uses VFP register arguments|cannot find|overlaps section|"
    r"relocation truncated|error:"
)

_SCRIPT = """\
#!/bin/sh
# Needs only the toolchain's linker. Expected to fail with:
#   {message}
# Exits with the linker's own status. Another linker: LD=/path/to/ld sh repro.sh
cd "$(dirname "$0")" || exit 2
trap 'rm -f {product}' EXIT
LC_ALL=C "${{LD:-{linker}}}" {words} -o {product}
"""

_README = """\
# A link that fails: {subject}

    {message}

Run `sh repro.sh`. It links the files of this folder and nothing else, and ends as the original
link did.

- Cause: {cause}
- Fix: {fix}
- Reduced from `{output}` ({before}).
- Made with: {versions}
{stubs}"""

_TEST = '''\
"""Fails for as long as the link of this folder fails."""

import subprocess
from pathlib import Path


def test_links() -> None:
    """The fix for: {subject}."""
    done = subprocess.run(
        ["sh", str(Path(__file__).parent / "repro.sh")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
'''


def write_folder(
    out: Path, again: Replay, work: Path, words: Sequence[str], text: str, failure: Failure,
    with_test: bool,
) -> str:  # fmt: skip
    """Write everything; returns the message that the link must end with."""
    out.mkdir(parents=True)
    for file in sorted(work.rglob("*")):
        name = file.relative_to(work)
        used = str(name) in words or file.suffix not in (".o", ".obj", ".a", ".elf")
        if file.is_file() and used and not file.name.startswith("."):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, out / name)
    message = essential(text, failure)
    linker = _name(again)
    fields = {
        "product": Path(again.command.output).name, "message": message,
        "linker": linker, "words": shell(words), "subject": failure.subject,
        "cause": failure.cause, "fix": failure.fix, "output": again.command.output,
        "before": again.command.origin, "versions": "; ".join(_versions(again)),
        "stubs": "- `stubs.o` defines what only has to exist.\n" if "stubs.o" in words else "",
    }  # fmt: skip
    (out / "repro.sh").write_text(_SCRIPT.format(**fields))
    (out / "repro.sh").chmod(0o755)
    (out / "README.md").write_text(_README.format(**fields))
    (out / "failure.json").write_text(json.dumps(failure.summary(), indent=1) + "\n")
    if with_test:
        (out / "test_link.py").write_text(_TEST.format(**fields))
    return message


def essential(text: str, failure: Failure) -> str:
    """The line that names the failure, without the linker's own name."""
    subject = failure.symbol or failure.region or ""
    shown = failure.demangled or subject
    lines = [line for line in text.splitlines() if _MESSAGE.search(line)]
    about = [x for x in lines if (shown and shown in x) or (subject and subject in x)]
    best = next((x for x in about if "overflowed by" in x), about[0] if about else None)
    chosen = best or (lines[0] if lines else text.strip().splitlines()[-1])
    return re.sub(r"^\S*\bld[^:\s]*: ?", "", chosen.strip())


def _name(again: Replay) -> str:
    """The linker by the name a person with the toolchain on PATH would call it."""
    path = Path(again.call.argv[0])
    driver = Path(again.call.driver or "")
    prefixed = re.sub(r"(?:gcc|g\+\+|cc|c\+\+)$", path.name, driver.name)
    for name in (prefixed, path.name):
        found = shutil.which(name)
        if found and _version(found) == _version(str(path)):
            return name
    return str(path)


def _versions(again: Replay) -> list[str]:
    said = []
    for program in (again.call.driver, again.call.argv[0]):
        if program:
            said += _version(program)
    return said


def _version(program: str) -> list[str]:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30,
                          check=False)  # fmt: skip
    return done.stdout.splitlines()[:1]
