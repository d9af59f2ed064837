"""Which cases there are when nobody names any: every model on every target, NPUs thinned out.

A user's settings (``harness.system.settings``) may say which models and targets those are.

An Ethos-U is many targets: MAC counts times memory modes. ``all`` takes every memory mode on
its default MAC count, and one case on each other MAC count. ``sample`` takes one memory mode of
each kind of placement, and beside the default one only one model on each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from harness.config.case import Case, is_user_file
from harness.config.loading import Target, load_target, spelled
from harness.config.models import catalogue
from harness.config.npu import Npu, products
from harness.system.settings import SettingsError, settings, settings_file

CaseSelection = Literal["all", "sample"]
ONE = "ds_cnn"  # the model that stands for all: convolutions of every kind, and quickly exported


def default_models() -> list[str]:
    """Names and paths: ``models`` of the settings, whose files may be globs, else the catalogue.

    Raises SettingsError for a glob that no file matches.
    """
    said = settings()
    if said.folder is None or not said.models:
        return list(catalogue())
    found: list[str] = []
    for one in said.models:
        files = sorted(said.folder.glob(one)) if is_user_file(one) else [one]
        if not files:
            file = settings_file()
            assert file is not None, "settings with a folder are of a file"
            raise SettingsError(file, f"no model file matches {one!r} of models")
        found += map(str, files)
    return list(dict.fromkeys(found))


def named_targets() -> list[tuple[str, Target]]:
    """``default_targets`` of the settings: as each is called there, and what it is."""
    return [(name, load_target(name)) for name in settings().default_targets]


def default_matrix(
    targets: Iterable[Target], models: Sequence[str], extent: CaseSelection
) -> list[tuple[Case, Target]]:
    """``default_cases`` of ``targets``; or, where the settings name ``default_targets``, each model
    on each of those."""
    named = named_targets()
    if named:
        return [(Case(spelled(t, said), model), t) for said, t in named for model in models]
    return list(default_cases(targets, models, extent))


def default_cases(
    targets: Iterable[Target], models: Sequence[str], extent: CaseSelection
) -> Iterator[tuple[Case, Target]]:
    """Each case with the target whose file it comes from (the memory mode is in the case)."""
    one = ONE if ONE in models else models[0]
    for target in targets:
        if target.npu is None:
            yield from ((Case(target.name, model), target) for model in models)
        elif not target.npu.has_default_macs:
            yield Case(target.name, one), target
        else:
            for mode in _modes(target.npu, extent):
                default = mode == target.npu.default_memory_mode
                name = target.name if default else f"{target.name}@{mode}"
                chosen = models if default or extent == "all" else [one]
                yield from ((Case(name, model), target) for model in chosen)


def _modes(npu: Npu, extent: CaseSelection) -> list[str]:
    """The default memory mode first; in a sample no two that place everything alike."""
    ordered = sorted(npu.memory_modes, key=lambda mode: mode != npu.default_memory_mode)
    if extent == "all":
        return ordered
    kinds = products().memory_modes
    first: dict[str, str] = {}
    for mode in ordered:
        first.setdefault(kinds[mode].kind, mode)
    return list(first.values())
