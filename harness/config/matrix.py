"""The default matrix of cases: every model on every target, Ethos-U configurations sampled.

A user's settings (``harness.system.settings``) may name other models and targets.

An Ethos-U is many targets: MAC counts times memory modes. ``all`` takes every memory mode on
its default MAC count, and one case on each other MAC count. ``sample`` takes one memory mode of
each kind of placement; modes other than the default have one model each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from harness.config.case import Case, is_user_file
from harness.config.loading import load_target, loadable_name
from harness.config.models import small_models
from harness.config.npu import Npu, products
from harness.config.target import Target
from harness.system.settings import SettingsError, settings, settings_file

CaseSelection = Literal["all", "sample"]
REPRESENTATIVE_MODEL = "ds_cnn"  # convolutions of every kind, and quickly exported


def default_models() -> list[str]:
    """Return the settings' ``models``, maybe globs, else the catalogue. Raises SettingsError."""
    configured = settings()
    if configured.folder is None or not configured.models:
        return list(small_models())
    found: list[str] = []
    for name in configured.models:
        files = sorted(configured.folder.glob(name)) if is_user_file(name) else [name]
        if not files:
            file = settings_file()
            assert file is not None, "settings with a folder are of a file"
            raise SettingsError(file, f"no model file matches {name!r} of models")
        found += map(str, files)
    return list(dict.fromkeys(found))


def named_targets() -> list[tuple[str, Target]]:
    """``default_targets`` of the settings: each with its name there."""
    return [(name, load_target(name)) for name in settings().default_targets]


def default_matrix(
    targets: Iterable[Target], models: Sequence[str], selection: CaseSelection
) -> list[tuple[Case, Target]]:
    """Return ``default_cases`` of ``targets``, or each model on each of ``default_targets``."""
    named = named_targets()
    if named:
        return [
            (Case(loadable_name(target, name), model), target)
            for name, target in named
            for model in models
        ]
    return list(default_cases(targets, models, selection))


def default_cases(
    targets: Iterable[Target], models: Sequence[str], selection: CaseSelection
) -> Iterator[tuple[Case, Target]]:
    """Each case with the target whose file it comes from (the memory mode is in the case)."""
    representative = REPRESENTATIVE_MODEL if REPRESENTATIVE_MODEL in models else models[0]
    for target in targets:
        if target.npu is None:
            yield from ((Case(target.name, model), target) for model in models)
        elif not target.npu.has_default_macs:
            yield Case(target.name, representative), target
        else:
            for mode in _modes(target.npu, selection):
                default = mode == target.npu.default_memory_mode
                name = target.name if default else f"{target.name}@{mode}"
                chosen = models if default or selection == "all" else [representative]
                yield from ((Case(name, model), target) for model in chosen)


def _modes(npu: Npu, selection: CaseSelection) -> list[str]:
    if selection == "all":
        return list(npu.memory_modes)
    kinds = products().memory_modes
    first: dict[str, str] = {}
    for mode in npu.memory_modes:
        first.setdefault(kinds[mode].kind, mode)
    return list(first.values())
