"""Runs Arm's FVPs. Parameter names are data of the target; nothing here was tested on a real FVP.

One with Linux is driven by ``linux_fvp``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from harness.core.errors import UsageError
from harness.core.simulator_name import SimulatorName
from harness.sim.simulator import Companion, GuestJob, Launch, Simulator, section
from harness.system import toolchain
from harness.system.toolchain import Tool

if TYPE_CHECKING:  # the stand-in, which starts for each test of a suite, needs no target
    from harness.config.fvp import Fvp
    from harness.config.target import Limits, Target

# The models do not provide this pseudo-file of the semihosting specification. A real file of
# this name in the guest's directory enables SYS_EXIT_EXTENDED, and with it an exit status.
FEATURES_FILE = ":semihosting-features"
FEATURES = b"SHFB\x01"
_BOOT_SECONDS = 600.0  # to the login prompt, as meta-arm waits for it (oeqa's linuxboot)
STANDIN_MARK = "stand-in of executorch-hil"  # in the commands of `hil standin install`


# (variable, values that mean yes): ExecuTorch's fvp_utils.sh, its Direct Drive script, meta-arm.
_EULA = (
    ("ARM_FVP_INSTALL_I_AGREE_TO_THE_CONTAINED_EULA", ("True",)),
    ("ARM_FVP_EULA_ACCEPT", ("1", "True", "true", "yes", "y", "t")),
)


def eula_accepted(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the user's statement that the licence is accepted, which the harness never makes."""
    for name, accepted in _EULA:
        if environ.get(name) in accepted:
            return f"{name}={environ[name]}"
    return None


class _Fvp(Simulator):
    name = SimulatorName.FVP

    def find(self, target: Target, checkout: Path | None = None) -> Tool | None:
        executable = section(target.simulators.fvp).executable
        return toolchain.find_fvp(executable, checkout=checkout)

    def require(self, target: Target) -> Tool:
        settings = section(target.simulators.fvp)
        return toolchain.require_fvp(settings.executable, settings.package)

    def limits(self, target: Target, program: Path, sets: int) -> Limits:
        from harness.sim.fvp_limits import fitting  # as in ``launch``

        boot = 0.0 if target.linux is None else _BOOT_SECONDS
        return fitting(target.limits.booting(boot), program, sets)

    def beside(self, target: Target, job: GuestJob) -> AbstractContextManager[Sequence[Companion]]:
        if target.linux is None:
            return super().beside(target, job)
        from harness.sim import linux_fvp

        return linux_fvp.beside(section(target.simulators.fvp), job)

    def launch(self, target: Target, tool: Tool, job: GuestJob) -> Launch:
        # The stand-in imports this module and needs no target.
        from harness.sim.fvp_parameters import check_parameters, version_note

        executable, settings = tool.path.resolve(), section(target.simulators.fvp)
        standin = _standin_files(executable)
        model = Launch(
            bounds(job.limits),
            environment=python_library(executable),
            readable=(job.elf, _root(executable), *standin),
            licence=eula_accepted(),
            stands_in=(
                *((_NO_MODEL,) if standin else version_note(settings, tool)),
                *((_FAST,) if settings.fast else ()),
            ),
            forks=True,  # it may show its terminals
        )
        if target.linux is not None:
            from harness.sim import linux_fvp

            launch = linux_fvp.launch(target, settings, executable, model, job)
        else:
            words = argv(str(executable), settings, job)
            launch = replace(model, argv=words, files={FEATURES_FILE: FEATURES})
        check_parameters(target, tool, model.environment, parameters(launch.argv))
        return launch


_FAST = "the NPU's model runs with --fast: its cycles are not the NPU's"
_NO_MODEL = "no Arm model: the stand-in on QEMU, under the FVP's name"


def _standin_files(executable: Path) -> tuple[Path, ...]:
    """Files that the stand-in needs in addition to the system's; () for an Arm model."""
    with executable.open("rb") as file:
        if STANDIN_MARK.encode() not in file.read(400):
            return ()
    from harness.sim.driving_process import own_files  # as in ``launch``

    return (*own_files(), Path("/usr/share"))


SIMULATOR = _Fvp()


def argv(executable: str, settings: Fvp, job: GuestJob) -> tuple[str, ...]:
    names = section(settings.semihosting)
    given = {
        **settings.all_parameters,
        names.enable: 1,
        names.cwd: str(job.work),
        names.command_line: command_line(job.arguments, names.command_line_limit),
    }
    options = (w for name, value in given.items() for w in ("-C", f"{name}={value}"))
    return (executable, *options, *bounds(job.limits), "-a", str(job.elf))


def parameters(words: Sequence[str]) -> tuple[str, ...]:
    """Return the names that a command line sets."""
    return tuple(v.partition("=")[0] for o, v in pairwise(words) if o == "-C")


def command_line(arguments: Sequence[str], limit: int) -> str:
    """Return the guest's arguments as one string. The FVP truncates a longer one silently."""
    spaced = [word for word in arguments if not word or set(word) & set(" \t\"'")]
    if spaced:
        raise UsageError(f"the FVP's semihosting command line cannot carry {spaced[0]!r}")
    line = " ".join(arguments)
    if len(line) > limit:
        raise UsageError(
            f"the runner's command line has {len(line)} characters and the FVP takes {limit}",
            hint="run fewer input sets at a time",
            length=len(line),
            limit=limit,
        )
    return line


def python_library(executable: Path) -> dict[str, str]:
    """Return the environment of 11.27 models: they need their own libpython, and some their libfmt.

    <root>/python/lib on the library path, PYTHONHOME=<root>/python, <root>/fmtplib; set for the
    model's process only."""
    root = _root(executable)
    libraries = [str(p) for p in (root / "python" / "lib", root / "fmtplib") if p.is_dir()]
    environment = {"LD_LIBRARY_PATH": os.pathsep.join(libraries)} if libraries else {}
    if (root / "python" / "lib").is_dir():
        environment["PYTHONHOME"] = str(root / "python")
    return environment


def _root(executable: Path) -> Path:
    """<root>/models/<platform>/FVP_...: the installation; else the executable's directory."""
    models = executable.parent.parent
    return models.parent if models.name == "models" else executable.parent


def bounds(limits: Limits) -> tuple[str, ...]:
    """Return the model's own limits."""
    return (
        *(("--timelimit", f"{limits.model:g}") if limits.model else ()),
        *(("--simlimit", f"{limits.simulated:g}") if limits.simulated else ()),
        *(("--cyclelimit", str(limits.cycles)) if limits.cycles else ()),
    )
