"""The cache of exported programs, by content key.

A new entry is filled in a temporary directory next to its place, sealed (``artifact_cache``) and
renamed: it is complete or absent, whatever dies. Its facts are the files that the model was made
of, and the class of CPU where the program depends on it: a store is shared by machines.
"""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.export.program import Program, load_program
from harness.system import artifact_cache
from harness.system.artifact_cache import processor
from harness.system.files import MALFORMED, disk_errors
from harness.system.locks import in_use
from harness.system.paths import cache_dir

_SEPARATOR = "+"
NO_INPUTS: Mapping[str, str] = MappingProxyType({})
_CPU_VARIABLES = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS")
_WRITING = "writing the program cache"


def entry_dir(key: str, inputs: Mapping[str, str] = NO_INPUTS, cpu: str = "") -> Path:
    """Return the folder of an entry; each state of the inputs has one.

    ``inputs``: the files and folders that the program was made of besides what its key covers,
    their state by name (``child.source.input_files``); ``cpu``: the class of CPU that exported it,
    where its bytes depend on that, else ""."""
    state = artifact_cache.key_of([dict(inputs), cpu])[:12]
    return cache_dir("programs") / f"{key}{_SEPARATOR}{state}"


def load(key: str, home: str = "") -> Program | None:
    """Return the cached Program of a key; None without a whole one whose inputs are unchanged.

    ``home``: the folder of the model's file."""
    for place in _places(key):
        entry = artifact_cache.load(place, key)
        if entry is not None and _holds(entry.facts, home):
            return _program(place)
    return None


def invalid_reason(key: str) -> str:
    """Why an entry of the key cannot be used although it is there; "" when there is no such."""
    for place in _places(key):
        try:
            entry = artifact_cache.check(place)
        except artifact_cache.NotAsStored as error:
            return str(error)
        if entry is not None and entry.key != key:
            return f"it is that of {entry.key}"
    return ""


def by_pte(sha256: str) -> Program | None:
    """Return the cached Program of this ``.pte``, whatever became of the model's files."""
    for file in cache_dir("programs").glob("[!.]*/program.json"):
        program = _program(file.parent)
        if program is not None and program.pte_sha256 == sha256:
            in_use(file.parent)
            with suppress(artifact_cache.NotAsStored):
                if artifact_cache.check(file.parent) is not None:
                    return program
    return None


@contextmanager
def locked(key: str, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the right to write a key. ``on_wait`` is called when another process has it.

    Raises InfraError, DiskError."""
    programs = cache_dir("programs")
    with ExitStack() as stack:
        with disk_errors(_WRITING):
            programs.mkdir(parents=True, exist_ok=True)
            stack.enter_context(artifact_cache.locked(programs / key, on_wait=on_wait))
        yield


def store(key: str, write: Callable[[Path], tuple[Program, Mapping[str, str]]]) -> Program:
    """Put one entry; ``write`` fills the directory it is given and describes it, with its inputs.

    Call with the key's lock held. Raises DiskError, leaving nothing, when the disk is full.
    """
    programs = cache_dir("programs")
    with disk_errors(_WRITING):
        for killed in programs.glob(f".{glob.escape(key)}.tmp-*"):
            shutil.rmtree(killed)
        temporary = programs / f".{key}.tmp-{os.getpid()}"
        temporary.mkdir()
        try:
            program, inputs = write(temporary)
            program.save()
            cpu = cpu_class() if program.not_reproducible else ""
            artifact_cache.seal(temporary, key, {"files": dict(inputs), "cpu": cpu})
            place = entry_dir(key, inputs, cpu)
            in_use(place)
            if place.exists():
                shutil.rmtree(place)
            temporary.rename(place)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return replace(program, directory=place)


def _places(key: str) -> list[Path]:
    return sorted(cache_dir("programs").glob(f"{glob.escape(key)}{_SEPARATOR}*"))


def _program(place: Path) -> Program | None:
    try:
        return load_program(place)
    except (OSError, *MALFORMED):
        return None


def _holds(facts: Mapping[str, Any], home: str) -> bool:
    """Whether an export here of a model in the folder ``home`` would read the same again."""
    try:
        files = facts["files"].items()
        here = facts["cpu"] in ("", cpu_class())
        # "./": the model opened it relative to the current directory, which an export has, too
        return here and all(
            state_of(Path("" if name.startswith("./") else home, name)) == state
            for name, state in files
        )
    except MALFORMED:
        return False


def state_of(path: Path) -> str:
    """Return the sha256 of a file's content, or of the names in a folder; else ""."""
    if path.is_dir():
        return artifact_cache.key_of(sorted(os.listdir(path)))
    return artifact_cache.digest_of(path) or ""


def cpu_class() -> str:
    """Return a digest that is equal where torch and MKL choose the same kernels.

    It is of the CPU's maker and features, and the variables by which a user limits them."""
    limits = [os.environ.get(name) for name in _CPU_VARIABLES]
    return artifact_cache.key_of([*processor(), *limits])[:12]
