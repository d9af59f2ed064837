"""What a case needs, brought from a shared store, or made once and put there for the others.

Keys are those of the machine that runs the case, for they cover its toolchain and exporter. Who
finds an entry neither here nor in the store makes it while nobody else may make that key, and
looks again before. A store that does not serve costs time and nothing else: what is not had from
it is made here, and the row says so.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.build.arithmetic import build_options
from harness.build.choice import firmware_key
from harness.build.executorch.checkout import Checkout
from harness.build.firmware import load_firmware
from harness.build.source import FirmwareSource
from harness.build.step import acquire, clear
from harness.case.case import Case
from harness.errors import HarnessError
from harness.export import batch, cache
from harness.export.checkout.exporter import CheckoutExporter
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.nightly.store import Store, StoreDamaged, StoreError, StoreUnreachable
from harness.run.exports import export_cases, request_of
from harness.run.pipeline import RunOptions, build_firmware
from harness.simulate.pick import Chosen, pick
from harness.system.boundary import told
from harness.system.files import disk_errors
from harness.system.lease import in_use
from harness.system.paths import cache_dir
from harness.system.progress import silent
from harness.target.loading import load_target

Alone = Callable[[str], AbstractContextManager[object]]  # nobody else has a name meanwhile
PROGRAMS, FIRMWARE = "programs", "firmware"


def by_oneself(_: str) -> AbstractContextManager[object]:
    """The caches have locks of their own for the processes of one machine."""
    return nullcontext()


@dataclass(frozen=True)
class Brought:
    """``errors``: why there is nothing to run with a source of firmware; ``notes``: what was
    wrong with the store."""

    errors: dict[FirmwareSource, HarnessError]
    notes: tuple[str, ...] = ()


def bring(case: Case, options: RunOptions, store: Store, alone: Alone = by_oneself) -> Brought:
    """The program and the firmware of a case into the caches of this machine, as far as they can
    be had. Raises what is wrong with a target or a checkout."""
    target = load_target(case.target)
    chosen = pick(target, options.simulator)
    exporter = options.exporter.find()
    checkout = options.firmware.checkout()
    asked = _Asked(store, alone)
    errors: dict[FirmwareSource, HarnessError] = {}
    try:
        asked.bring(_Program(case, chosen, exporter, options))
    except Exception as error:  # the boundary of a case, as that of ``run_cases``
        errors = dict.fromkeys(options.firmware.sources, told(error))
    for source in options.firmware.sources if not errors else ():
        try:
            asked.bring(_Firmware(source, chosen, exporter, checkout, options))
        except Exception as error:
            errors[source] = told(error)
    return Brought(errors, tuple(dict.fromkeys(asked.notes)))


class _Asked:
    """A store, for one case. ``notes``: what was wrong with it; one that does not answer is not
    asked again."""

    def __init__(self, store: Store, alone: Alone) -> None:
        self._store = store
        self._alone = alone
        self._answers = True
        self.notes: list[str] = []

    def bring(self, thing: _Program | _Firmware) -> None:
        """Raises what exporting or building it does."""
        if not self._there(thing, here=thing.place() is not None):
            with self._alone(f"{thing.kind}/{thing.key}"):
                self._make(thing)

    def _make(self, thing: _Program | _Firmware) -> None:
        """Or take what another one made meanwhile."""
        here = thing.place() is not None
        if self._there(thing, here=here):
            return
        if not here:
            thing.make()
        made = thing.place()
        if made is not None:  # what is exported every time is nobody else's
            self._said(lambda: self._store.keep(thing.kind, thing.key, made))

    def _there(self, thing: _Program | _Firmware, *, here: bool) -> bool:
        """Whether it is here and there."""
        if here:
            return bool(self._said(lambda: self._store.has(thing.kind, thing.key)))
        return bool(self._said(lambda: _fetched(thing, self._store)))

    def _said(self, ask: Callable[[], object]) -> object:
        """What the store answers; None, and a note, where it does not."""
        if not self._answers:
            return None
        try:
            return ask()
        except StoreError as error:
            self._answers = not isinstance(error, StoreUnreachable)
            self.notes.append(error.message)
            return None


def _fetched(thing: _Program | _Firmware, store: Store) -> bool:
    """Whether it is here now. Raises StoreError."""
    folder = cache_dir(thing.kind)
    with disk_errors("taking from the store"):
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{thing.key}.tmp-{os.getpid()}"
        shutil.rmtree(part, ignore_errors=True)
        try:
            name = store.fetch(thing.kind, thing.key, part)
            if name is None:
                return False
            own = name.partition("+")[0] == thing.key  # an export's inputs have a name behind it
            if not own or not thing.is_one(part):
                raise StoreDamaged(store.shown, f"{thing.kind}/{thing.key}")
            with thing.locked():
                if thing.place() is None:
                    in_use(folder / name)
                    clear(folder / name)
                    part.rename(folder / name)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return thing.place() is not None


@dataclass(frozen=True)
class _Program:
    case: Case
    chosen: Chosen
    exporter: CheckoutExporter | None
    options: RunOptions
    kind = PROGRAMS

    @cached_property
    def request(self) -> ExportRequest:
        return request_of(self.case.model, self.chosen.target)

    @cached_property
    def key(self) -> str:
        """Raises what is wrong with the model."""
        return batch.key_of(self.request, self.origin)

    @property
    def origin(self) -> batch.Origin:
        return batch.Origin() if self.exporter is None else batch.Origin(self.exporter.versions)

    def place(self) -> Path | None:
        found = cache.load(self.key, batch.home_of(self.request))
        return None if found is None else found.directory

    def is_one(self, folder: Path) -> bool:
        with suppress(cache.NotAsStored):
            return cache.at(folder) is not None
        return False

    def locked(self) -> AbstractContextManager[object]:
        return cache.locked(self.key, wait=True)

    def make(self) -> None:
        (found,) = export_cases(
            [self.case], {self.case.target: self.chosen.target}, silent, self.exporter,
            isolate=self.options.isolate_export,
        )  # fmt: skip
        if not isinstance(found, Program):
            raise found


@dataclass(frozen=True)
class _Firmware:
    source: FirmwareSource
    chosen: Chosen
    exporter: CheckoutExporter | None
    checkout: Checkout | None
    options: RunOptions
    kind = FIRMWARE

    @cached_property
    def key(self) -> str:
        return firmware_key(
            self.source, self.chosen.target, self.chosen.name, self.checkout,
            options=build_options(self.options.oracle), dev_mode=self.options.dev_mode,
        )  # fmt: skip

    def place(self) -> Path | None:
        found = load_firmware(cache_dir(FIRMWARE) / self.key)
        return None if found is None else found.directory

    def is_one(self, folder: Path) -> bool:
        found = load_firmware(folder)
        return found is not None and found.key == self.key

    @contextmanager
    def locked(self) -> Iterator[None]:
        lock = acquire(cache_dir(FIRMWARE) / f"{self.key}.lock", lambda: None)
        try:
            yield
        finally:
            lock.release()

    def make(self) -> None:
        build_firmware(self.source, self.chosen, self.exporter, self.checkout, self.options, silent)
