"""Where things are: the project's own files, and the state directory ``.hil``."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from harness.core.errors import ToolMissing, UsageError
from harness.system.settings import settings


def import_root() -> Path:
    """The folder whose packages we are: of a clone, or of installed packages."""
    return Path(__file__).resolve().parents[2]


def hil_command() -> str:
    """How the user calls ``hil`` here: a clone's is not on PATH."""
    own = import_root() / "hil"
    if not own.is_file():
        return "hil"
    return "./hil" if Path.cwd() == own.parent else str(own)


def install_command(extra: str) -> str:
    """The command that installs what ``extra`` of the project needs into this environment. It names
    the packages: the project itself is on no package index."""
    marked = re.compile(rf"""(.*?)\s*;.*\bextra == ["']{extra}["']""")
    try:
        requires = metadata.requires("executorch-hil") or ()
    except metadata.PackageNotFoundError:  # run from its sources, without being installed
        return f"install the packages that pyproject.toml lists for {extra}"
    wanted = filter(None, map(marked.match, requires))
    return shlex.join([sys.executable, "-m", "pip", "install", *(each[1] for each in wanted)])


def data_root() -> Path:
    """The folder with ``targets``, ``cmake``, ``references`` and the lists of ``docker``: in an
    installed package ``harness/data``, else the clone itself."""
    installed = import_root() / "harness" / "data"
    return installed if installed.is_dir() else import_root()


def state_dir() -> Path:
    """``$HIL_HOME``, or ``cache`` of the user's settings, or ``.hil`` next to them; ``.hil`` in the
    current directory if there are no settings. If that cannot be written (a read-only checkout, one
    that another user works in) a folder of the user's own cache. Not created here."""
    if "HIL_HOME" in os.environ:
        return _one_line(Path(os.environ["HIL_HOME"]).absolute())
    said = settings()
    if said.cache is not None:
        return _one_line(said.cache)
    beside = _one_line((said.folder or Path.cwd()) / ".hil")
    place = beside if beside.exists() else beside.parent
    if os.access(place, os.W_OK | os.X_OK, effective_ids=True):
        return beside
    return _of_the_user(beside) or beside


def _one_line(path: Path) -> Path:
    """Raises UsageError for a name that no build tool, list or log can hold."""
    if "\n" in str(path) or "\r" in str(path):
        raise UsageError(
            f"the state directory {str(path)!r} has a line break in its name",
            hint="work in another folder, or point HIL_HOME at one",
        )
    return path


def _of_the_user(beside: Path, environ: Mapping[str, str] = os.environ) -> Path | None:
    """In the cache folder of the XDG Base Directory Specification; None without a home."""
    named = Path(environ.get("XDG_CACHE_HOME", ""))
    cache = named if named.is_absolute() else Path("~/.cache").expanduser()
    if not cache.is_absolute():
        return None
    digest = hashlib.sha256(os.fsencode(beside)).hexdigest()[:8]
    return cache / "executorch-hil" / f"{beside.parent.name}-{digest}"


def cache_dir(kind: str) -> Path:
    """Content-addressed artefacts of one kind: ``programs``, ``firmware``."""
    return state_dir() / "cache" / kind


def runs_dir() -> Path:
    return state_dir() / "runs"


def make_runs_dir() -> Path:
    """For nobody else, for what guests leave is there; so is a ``.hil`` that no setting names.
    Raises OSError."""
    runs = runs_dir()
    runs.mkdir(parents=True, exist_ok=True)
    chosen = "HIL_HOME" in os.environ or settings().cache is not None
    for place in (runs,) if chosen else (runs, runs.parent):
        with suppress(PermissionError):  # another user's
            place.chmod(0o700)
    return runs


def references_dir(repository: Path | None = None) -> Path:
    """Accepted reference runs, reviewed files, written only by ``hil accept``: ``$HIL_REFERENCES``;
    or ``references`` of the user's settings, or the folder of that name next to them; without
    settings the one in ``repository``, a user's, or in ours."""
    if os.environ.get("HIL_REFERENCES"):
        return Path(os.environ["HIL_REFERENCES"])
    said = settings(repository)
    return said.references or (said.folder or repository or data_root()) / "references"


def executorch_package() -> Path:
    """The installed wheel's, found without importing it. Raises ToolMissing."""
    spec = importlib.util.find_spec("executorch")
    locations = list(spec.submodule_search_locations or ()) if spec else []
    if not locations:
        raise ToolMissing(
            "ExecuTorch's wheel is not installed, and the schemas of its files are in it",
            tool="executorch",
            hint=install_command("export"),
        )
    return Path(locations[0])
