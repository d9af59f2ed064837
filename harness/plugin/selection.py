"""Which cases a test is run for. A marker that selects no case is an error at its line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.config.case import Case
from harness.core.errors import Unknown, UsageError
from harness.plugin.options import (
    activate,
    firmware_choice,
    mistakes_are,
    npu_case_selection,
    register_marker,
)
from harness.plugin.verdicts import expected_verdicts

if TYPE_CHECKING:
    from harness.config.matrix import CaseSelection
    from harness.config.target import Target

CASE, SOURCE = "hil_case", "hil_firmware_source"  # fixtures
Cases = list[tuple[Case, "Target"]]
_LISTS = ("targets", "models")
_KEYS = (*_LISTS, "npu")


class NothingSelected(UsageError):
    """A test without a case is not there, and the others look as if all had passed."""

    kind = "nothing_selected"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"no case is selected: {why}",
            hint="name targets and models that exist (`hil targets`, `hil models`), or remove "
            "the test",
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if CASE not in metafunc.fixturenames:
        return
    config, definition = metafunc.config, metafunc.definition
    file, line, _ = definition.location
    place = f"{file}:{(line or 0) + 1}: {definition.name}: "
    with mistakes_are(pytest.Collector.CollectError, place):
        activate(config)
        expected_verdicts(definition)
        keywords = _keywords_of(definition.get_closest_marker("hil_cases"))
        selected = cases(npu_case_selection(config), config.rootpath, **keywords)
    for _, target in selected:
        # one of a file that is in no folder of them
        register_marker(config, target.marker, target.name)
    parameters = [
        pytest.param(case, id=case.id, marks=getattr(pytest.mark, target.marker))
        for case, target in selected
    ]
    metafunc.parametrize(CASE, parameters, indirect=True)
    sources = firmware_choice(config).sources
    only_bundled = all(str(source) == "bundled" for source in sources)  # then ids do not say it
    if SOURCE in metafunc.fixturenames and not only_bundled:
        metafunc.parametrize(SOURCE, sources, ids=str, indirect=True)


def _keywords_of(marker: pytest.Mark | None) -> dict[str, Any]:
    if marker is None:
        return {}
    if marker.args:
        raise UsageError(
            "hil_cases takes keyword arguments only", hint=f"there are: {', '.join(_KEYS)}"
        )
    keywords = marker.kwargs
    for key in keywords:
        if key not in _KEYS:
            raise Unknown(f"hil_cases has no {key!r}", key, _KEYS)
    for key in _LISTS:
        if isinstance(keywords.get(key), str):
            raise UsageError(
                f"{key} of hil_cases must be a list, not a string",
                hint=f"write {key}=[{keywords[key]!r}]",
            )
    return {k: list(v) if k in _LISTS and v is not None else v for k, v in keywords.items()}


def cases(
    npu_selection: CaseSelection,
    rootpath: Path,
    targets: list[str] | None = None,
    models: list[str] | None = None,
    npu: bool | None = None,
) -> Cases:
    """Return the cases of the session. Raises NothingSelected, and what is wrong with a target.

    A model file is looked for in the current directory and in ``rootpath``."""
    from harness.config.case import located
    from harness.config.loading import load_target, load_targets, loadable_name
    from harness.config.matrix import default_matrix, default_models
    from harness.config.models import find_model

    for name, listed in zip(_LISTS, (targets, models), strict=True):
        if listed == []:
            raise NothingSelected(f"hil_cases has {name}=[]")
    names = [located(m, rootpath) for m in (default_models() if models is None else models)]
    for name in names:
        find_model(name)
    if targets is None:
        # Without a workspace there is no Zephyr to build, so nobody asked for those targets.
        zephyr = "ZEPHYR_BASE" in os.environ
        usable = [target for target in load_targets() if target.zephyr is None or zephyr]
        candidates = default_matrix(usable, names, npu_selection)
    else:
        loaded = [(name, load_target(located(name, rootpath))) for name in targets]
        candidates = [
            (Case(loadable_name(target, spelling), name), target)
            for spelling, target in loaded
            for name in names
        ]
    chosen = [
        (case, target)
        for case, target in candidates
        if npu is None or npu == (target.npu is not None)
    ]
    if not chosen:
        names = list(dict.fromkeys(target.name for _, target in candidates))
        raise NothingSelected(
            f"hil_cases has npu={npu}, and of its targets none is so: {', '.join(names)}"
        )
    return chosen
