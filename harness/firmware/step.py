"""Runs the commands of a build (CMake and ninja), each bounded in time and with its own log. A
failure raises the log's first error as the fitting exception.

Ccache in front of the compilers, if installed, makes equal compilations once, whatever the tree. It
is not part of a firmware's key: code and data are the same with and without it. Only debug
information names the tree's headers otherwise, so the build id may differ.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.core.errors import BuildError, HarnessError, InfraError, LinkError
from harness.firmware.source import REGION, RUNNER, STRIPPED
from harness.system import paths, toolchain
from harness.system.files import DISK_FULL, content_digest
from harness.system.git import files_below
from harness.system.process import Bounds, Stop, Watch, run
from harness.system.progress import Progress, silent

_BUILD_SECONDS = 1800.0
_SILENT_SECONDS = 300.0
_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "CCACHE_DIR")  # none of them changes the result
_KILLED = re.compile(
    r"^.*(?:Killed signal terminated program|internal compiler error: Killed"
    r"|terminated with signal 9|unable to execute command: Killed|\bsh: .*\bKilled\b"
    r"|out of memory allocating|memory exhausted|Cannot allocate memory|std::bad_alloc).*",
    re.MULTILINE,
)
# ninja's block of a failed command: its outputs, the command, what it printed.
_FAILED = re.compile(
    r"^ *FAILED: .*\n(?P<command>.*)\n(?P<printed>(?:(?! *(?:\[\d+/|FAILED: |ninja: )).*\n)*)",
    re.MULTILINE,
)
_COMPILER = re.compile(r"(?:^|[/ -])(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ld|ar) ")
_SAYS_WHY = re.compile(r"error|fatal|cannot|no such", re.IGNORECASE)
# CMake 3.25 ends with 0 although it could not write the file.
_NO_BUILD_FILE = re.compile(r"^ninja: error: loading 'build\.ninja': No such file.*", re.MULTILINE)
_UNUSED = re.compile(
    r"Manually-specified variables were not used by the project:\n\n((?:[ \t]+\w+\n)+)"
)
_TOOLCHAINS = {"cortex_m": "cortex-m.cmake", "linux": "aarch64-linux.cmake"}
_OWN_FOLDERS = ("executorch", "linux", "runner")
_ROOM = 64 << 20  # bytes; enough for the files that all compilers write at once
_MOST = 20  # failures of one link that a record keeps


def run_step(
    step: str,
    argv: Sequence[str],
    directory: Path,
    target: str,
    progress: Progress,
    environment: Mapping[str, str] | None = None,
    places: Mapping[str, str] | None = None,
) -> None:
    """Runs one command of a build, bounded in time, with its output in ``<step>.log``. ``places``:
    for an error's message, folder names of the build and the names to show instead. Raises
    StepError."""
    log = directory / f"{step}.log"

    def watch(data: bytes) -> None:
        if steps := re.findall(rb"^\[(\d+/\d+)\] ", data, re.MULTILINE):
            progress(f"{target}: building the runner {steps[-1].decode()}")

    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    ended = run(
        argv,
        cwd=directory,
        environment={**kept, **(environment or {}), "LC_ALL": "C.UTF-8"},
        console=log,
        bounds=Bounds(_BUILD_SECONDS, _SILENT_SECONDS),
        watch=Watch(watch),
    )
    if ended.stop is not Stop.EXITED:
        raise InfraError(f"the {step} step was stopped: {ended.stop}", path=log)
    if ended.status != 0:
        text = log.read_text("utf-8", "replace")
        for built, shown in (places or {}).items():
            text = text.replace(f"{built}/", f"{shown}/")
        free = shutil.disk_usage(directory).free
        raise diagnose(text, FailedStep(step, log, target, ended.status, ended.signal, free))
    if step == "build":
        progress(f"{target}: the runner is built")


@dataclass(frozen=True)
class FailedStep:
    """One command of a build ("configure", "build") that ended with ``status``, or by a signal.
    ``free``: bytes on its disk then."""

    step: str
    log: Path
    target: str
    status: int | None
    signal: int | None = None
    free: int = _ROOM


class StepError(HarnessError):
    """A failed step. ``log_line``: of the first error, from 1, if one was found."""

    def __init__(
        self, message: str, failed: FailedStep, line: int | None, *, hint: str | None = None
    ) -> None:
        self.step = failed.step
        self.log = str(failed.log)
        self.log_line = line
        self.target = failed.target
        self.status = failed.status
        super().__init__(message, hint=hint or f"the whole output is in {failed.log}")


class StepDiskFull(StepError, InfraError):
    kind = "disk_full"


class StepKilled(StepError, InfraError):
    """A part of the build was killed, or got no memory."""

    kind = "build_killed"

    def __init__(self, victim: str, failed: FailedStep, line: int | None) -> None:
        text = f"something was killed while the runner was built (out of memory?): {victim.strip()}"
        super().__init__(text, failed, line)


class StepFailed(StepError, BuildError):
    """CMake or a compiler reported an error. ``stop``: its cause, as data, if it is known."""

    stop: dict[str, Any] | None = None


class LinkFailed(StepError, LinkError):
    """``failures``: a summary of each, if they could be explained."""

    failures: list[dict[str, Any]] | None = None


def diagnose(text: str, failed: FailedStep) -> StepError:
    """The error to raise for a step with this log ``text``: first failure, cause and fix."""
    # Only a failure pays for the import.
    from harness.link.build_failure import BuildFailureKind, build_failure
    from harness.link.diagnose.explain import explain_lines
    from harness.link.log.lines import lines_of

    if full := DISK_FULL.search(text):
        return StepDiskFull(f"{full[0]} while the runner was built", failed, _line(text, full))
    if killed := _KILLED.search(text):
        return StepKilled(killed[0], failed, _line(text, killed))
    if failed.signal is not None:
        return StepKilled(f"the {failed.step} step, by signal {failed.signal}", failed, None)
    if failed.free < _ROOM and (unwritten := _NO_BUILD_FILE.search(text)):
        left = f"the disk has {failed.free >> 10} KiB left, and CMake could not write build.ninja"
        return StepDiskFull(left, failed, _line(text, unwritten))
    output = f"the whole output is in {failed.log}"
    links = lines_of("" if failed.step == "configure" else text)
    if failures := explain_lines(links, failed.log, silent).failures:
        first = failures[0]
        hint = f"{first.cause} {first.fix} ({output})"
        link_failed = LinkFailed(first.text.strip(), failed, first.line, hint=hint)
        link_failed.failures = [asdict(failure) for failure in failures[:_MOST]]
        return link_failed
    stop = build_failure(text)
    not_known = stop is None or stop.kind is BuildFailureKind.NOT_KNOWN
    # A compiler or linker that failed without a message: it or its driver was killed.
    blocks = (block for block in _FAILED.finditer(text) if _COMPILER.search(block["command"]))
    silent_block = next((b for b in blocks if not _SAYS_WHY.search(b["printed"])), None)
    if not_known and (block := silent_block):
        if failed.free < _ROOM:  # ninja has deleted what did not fit
            left = f"the disk has {failed.free >> 10} KiB left, and a compiler failed silently"
            return StepDiskFull(left, failed, _line(text, block))
        return StepKilled(block[0].partition("\n")[0], failed, _line(text, block))
    if stop is None:
        message = f"the {failed.step} step failed and its log does not say why"
        return StepFailed(message, failed, None)
    if stop.kind in (BuildFailureKind.COMPILE, BuildFailureKind.NOT_KNOWN):
        return StepFailed(stop.text, failed, stop.line)  # the message needs no hint
    message = stop.text if stop.text in stop.cause else stop.cause  # it says the same at length
    error = StepFailed(message, failed, stop.line, hint=f"{stop.fix} ({output})".lstrip())
    error.stop = stop.summary()
    return error


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1


def unused_options(text: str) -> tuple[str, ...]:
    """Options that no CMake file reads, such as a misspelt name."""
    return tuple(name for block in _UNUSED.findall(text) for name in block.split())


def cmake(source: Path, tree: Path, options: Mapping[str, str]) -> tuple[str, ...]:
    """The command that configures ``source`` for ninja in ``tree``. Raises ToolMissing."""
    toolchain.require("ninja")
    return (
        str(toolchain.locate("cmake")),
        *("-S", str(source)),
        *("-B", str(tree)),
        *("-G", "Ninja"),
        *(f"-D{name}={value}" for name, value in options.items()),
    )


def ninja(tree: Path, *targets: str) -> tuple[str, ...]:
    """The command that builds in ``tree`` with every processor. Raises ToolMissing."""
    jobs = str(len(os.sched_getaffinity(0)))
    return (str(toolchain.locate("ninja")), "-C", str(tree), "-j", jobs, *targets)


def build_with_cmake(
    source: Path, directory: Path, options: Mapping[str, str], name: str, progress: Progress
) -> None:
    """Builds the runner of ``source`` in ``directory`` and leaves the files of ``products`` there.

    Raises what ``run_step`` does, and BuildError for options that no CMake file reads.
    """
    # without links, as a compiler's current directory is: cmake/options.cmake maps that path away
    tree = (directory / "build").resolve()
    tree.mkdir()
    progress(f"{name}: configuring the runner")
    argv = cmake(source, tree, {"CMAKE_RUNTIME_OUTPUT_DIRECTORY": str(tree), **options})
    run_step("configure", argv, directory, name, progress, ccache(tree))
    log = directory / "configure.log"
    # a port need not use every region of its target
    unused = unused_options(log.read_text("utf-8", "replace"))
    if unused := tuple(option for option in unused if not option.startswith(REGION)):
        raise BuildError(
            f"the runner's CMake has no option {', '.join(unused)}",
            hint=f"see {log}",
            path=log,
            unused=unused,
        )
    run_step("build", ninja(tree, RUNNER), directory, name, progress, ccache(tree))
    take(tree, products(RUNNER, stripped=(tree / STRIPPED).is_file()), directory)
    shutil.rmtree(tree)


def toolchain_file(port: str) -> Path | None:
    """The harness's CMake toolchain file of a port; None for a port with the host's compilers."""
    name = _TOOLCHAINS.get(port)
    return None if name is None else paths.data_root() / "cmake" / "toolchains" / name


def own_digest() -> str:
    """The digest of all files of the harness that a build of another runtime may read."""
    root = paths.data_root()
    folders = (root / "cmake", *(root / "targets" / name for name in _OWN_FOLDERS))
    return content_digest([file for folder in folders for file in files_below(folder)], root)


def products(program: str, *, stripped: bool = False) -> dict[str, str]:
    """The files that a build of ``program`` leaves, with their names in a Firmware's directory."""
    made = {program: RUNNER, f"{program}.map": f"{RUNNER}.map"}
    return {**made, f"{program}.stripped": STRIPPED} if stripped else made


def take(tree: Path, made: Mapping[str, str], directory: Path) -> None:
    """Copies the products of a build to their names in ``directory``. Raises BuildError."""
    for file, name in made.items():
        if not (tree / file).is_file():
            raise BuildError(f"the build ended well but left no {file}", path=tree)
        shutil.copy2(tree / file, directory / name)


def launchers(*languages: str) -> dict[str, str]:
    """CMake's options that put ccache before the compilers; none if it is not installed."""
    tool = toolchain.find("ccache")
    return {
        f"CMAKE_{language}_COMPILER_LAUNCHER": str(tool.path)
        for language in languages
        if tool is not None
    }


def ccache(tree: Path) -> dict[str, str]:
    """Ccache's environment: it ignores the build's folder ``tree`` (BASEDIR) and the current
    directory (NOHASHDIR), which the compilers leave out of their outputs. ``$CCACHE_DIR`` names
    another folder for its cache."""
    return {
        "CCACHE_DIR": os.environ.get("CCACHE_DIR") or str(paths.cache_dir("ccache")),
        "CCACHE_BASEDIR": str(tree),
        "CCACHE_NOHASHDIR": "1",
    }
