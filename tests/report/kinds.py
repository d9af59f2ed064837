"""The ``kind`` of every error of the harness, as far as its module is imported."""

from __future__ import annotations

from harness.core.errors import HarnessError


def every_kind(error: type[HarnessError]) -> set[str]:
    of_classes = {error.kind}.union(*(every_kind(one) for one in error.__subclasses__()))
    return of_classes | {"fvp_parameter", "no_image", "runner_lacks"}  # of single errors
