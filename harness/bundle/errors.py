"""What can be wrong with a bundle, and with a run that is to become one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.errors import InfraError, UsageError

_ASK = "ask whoever made it to make it again with `hil bundle`"


class NotABundle(UsageError):
    """It is something else. ``why``: by what one sees it."""

    kind = "not_a_bundle"

    def __init__(self, path: Path, why: str) -> None:
        self.why = why
        super().__init__(
            f"{path} is not a bundle: {why}", hint="`hil bundle RUN_DIR` makes one", path=path
        )


class BundleDamaged(UsageError):
    """It is a bundle, or was one: something is cut off, or is not what it was."""

    kind = "bundle_damaged"

    def __init__(self, path: Path, what: str) -> None:
        self.what = what
        super().__init__(
            f"the bundle {path} is damaged: {what}", hint=f"copy it again, or {_ASK}", path=path
        )


class BundleEscapes(UsageError):
    """A member that no bundle of ours has: of another name or kind. ``member``: its name."""

    kind = "bundle_escapes"

    def __init__(self, path: Path, member: str, what: str) -> None:
        self.member = member
        super().__init__(
            f"the bundle {path} has a member {member!r}, which {what}; nothing of it was run",
            hint="`hil bundle` makes no such thing: do not trust where it comes from",
            path=path,
        )


class BundleTooLarge(UsageError):
    """``bytes``: what it would take on the disk, or more; ``most``: what it may take."""

    kind = "bundle_too_large"

    def __init__(self, path: Path, size: int, most: int) -> None:
        self.bytes, self.most = size, most
        super().__init__(
            f"the bundle {path} holds at least {size} bytes, and {most} are accepted",
            hint="if you know where it comes from, --most-mib takes more",
            path=path,
        )


class BundleNewer(UsageError):
    """``format``: the bundle's, ``known``: the newest that this version reads."""

    kind = "bundle_newer"

    def __init__(self, path: Path, number: int, known: int, made_by: str) -> None:
        self.format, self.known, self.made_by = number, known, made_by
        super().__init__(
            f"the bundle {path} has format {number}, made by {made_by}; "
            f"this version reads up to {known}",
            hint="use that version, or a newer one",
            path=path,
        )


class OtherSimulator(InfraError):
    """``there``: the version that the run was made with, ``here``: that which is installed."""

    kind = "other_simulator"

    def __init__(self, name: str, there: str, here: str) -> None:
        self.simulator, self.there, self.here = name, there, here
        super().__init__(
            f"the run was made with {name} {there}, and here is {name} {here}",
            hint="install that version; --any-version runs it on this one, and says so",
        )


class OtherTarget(UsageError):
    """``target``: its name; ``differing``: keys of its file, none when it is not known here."""

    kind = "other_target"

    def __init__(self, target: str, differing: Iterable[str]) -> None:
        self.target, self.differing = target, tuple(differing)
        what = "is not known here"
        if self.differing:
            what = f"is another one here: it differs in {', '.join(self.differing)}"
        super().__init__(
            f"the bundle's target {target} {what}",
            hint="$HIL_TARGETS names a folder with its file; or look at target.json in the bundle, "
            "and take it with --bundled-target",
        )


class RunIncomplete(UsageError):
    """A run of which something that a bundle needs is gone. ``missing``: what."""

    kind = "run_incomplete"

    def __init__(self, run_dir: Path, missing: str) -> None:
        self.missing = missing
        super().__init__(
            f"{run_dir} cannot be bundled: {missing}", hint="run the case again", path=run_dir
        )


class PathInside(UsageError):
    """Something of this machine would be told to whoever gets the bundle. ``member``: where,
    ``found``: what."""

    kind = "path_inside"

    def __init__(self, member: str, found: str) -> None:
        self.member, self.found = member, found
        super().__init__(
            f"{member} of the bundle would hold {found}, which only this machine has",
            hint="build it so that it does not (-ffile-prefix-map=DIR=.), or let it be with "
            "--keep-paths",
        )
