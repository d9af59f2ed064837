"""``hil standin`` and ``hil conformance``: options and help; the work is done elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.build.source import FirmwareSource
from harness.cli.exporter import exporter_option
from harness.cli.firmware import firmware_options
from harness.cli.verb import echo, verb
from harness.errors import UsageError
from harness.errors.verdict import ExitCode

if TYPE_CHECKING:
    from harness.build.choice import FirmwareChoice
    from harness.conformance.model import Report
    from harness.conformance.suites import Tooling
    from harness.export.checkout.choice import ExporterChoice


@click.group()
def standin() -> None:
    """The FVP's command line on top of QEMU, where there is no FVP."""


@standin.command("install")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@verb
def install_(directory: Path, as_json: bool) -> tuple[dict[str, Any], ExitCode]:
    """Put commands with the names of Arm's models into DIR.

    They take the models' options, run the program on QEMU's mps3-an547 (Corstone-300 with a
    Cortex-M55) with a functional model of the NPU, and say so.

    \b
    Example:
      hil standin install /tmp/fvp && PATH=/tmp/fvp:$PATH run_fvp.sh --elf=...
    """
    from harness.standin.install import install

    written = install(directory)
    if not as_json:
        for path in written:
            echo(path)
    return {"commands": [str(path) for path in written]}, ExitCode.PASSED


@click.command()
@click.argument("suite", type=click.Choice(["cortex-m", "ethos-u55", "ethos-u65", "ethos-u85"]))
@click.option("-k", "keyword", metavar="EXPR", help="Only tests that match, as in pytest.")
@click.option("--shard", metavar="I/N", help="Only the I-th of N parts of the suite.")
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Only N tests, by chance.")
@click.option("--seed", type=int, default=0, show_default=True, help="For --sample.")
@click.option(
    "--elf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Your own semihosting runner; the bundled one otherwise.",
)
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE.json")
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE.xml")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Processes that run tests; each needs about 1.5 GB.",
)
@click.option("--resume", is_flag=True, help="Go on with the same run that was interrupted.")
@click.option(
    "--changed", is_flag=True, help="Leave out what nothing that has changed since can affect."
)
@click.option("--no-cache", is_flag=True, help="Export every test again, each by itself.")
@verb
@exporter_option
@firmware_options
def conformance(
    suite: str, keyword: str | None, shard: str | None, sample: int | None, seed: int,
    elf: Path | None, report: Path | None, junit: Path | None, workers: int, resume: bool,
    changed: bool, no_cache: bool, firmware: FirmwareChoice, exporter: ExporterChoice,
    as_json: bool,
) -> tuple[dict[str, Any], ExitCode]:  # fmt: skip
    """Run ExecuTorch's own on-target suite, unmodified, on the FVP stand-in.

    The suite is the installed wheel's, or with --exporter checkout that of the checkout, whose
    Python then also exports; the failures that are known by name are the wheel's. The runner is
    the bundled one, that of a checkout, or a given ELF. With --firmware both, the files of the
    second run are called FILE.executorch.json.

    What a test exported is kept. A later run simulates it again without exporting it, as long as
    nothing that exports has changed; where a simulation then gives anything else than before, the
    whole test is run. --changed also leaves out tests that came to their result with the same
    exporter, runner and simulator, and says how many and why; what is not known is run.

    \b
    Examples:
      hil conformance cortex-m
      hil conformance ethos-u55 --changed
      hil conformance cortex-m -k "add or sub" --elf build/arm_executor_runner
      hil conformance cortex-m --executorch ~/executorch
      hil conformance cortex-m --executorch ~/executorch --exporter checkout
      hil conformance cortex-m --sample 60 --seed 1 --report out.json --junit out.xml
      hil conformance ethos-u55 --shard 1/4 --resume
    """
    from harness.cli.progress import progress_shown
    from harness.conformance.model import Selection
    from harness.conformance.run import conform
    from harness.report.conformance import print_report, write_json, write_junit

    if elf is not None and FirmwareSource.EXECUTORCH in firmware.sources:
        raise UsageError(
            "--elf is the runner under test, so --firmware and --executorch are not",
            hint="with --exporter checkout, for its suite: --firmware bundled beside --executorch",
        )
    selection = Selection(keyword, _shard(shard), sample, seed)
    results: list[Report] = []
    with progress_shown(as_json) as progress:
        tooling = _tooling(exporter)
        checkout = firmware.checkout()
        for source in firmware.sources:
            result = conform(
                suite, elf, selection, progress,
                workers=workers, continued=resume, source=source, checkout=checkout,
                tooling=tooling, cached=not no_cache, changed=changed,
            )  # fmt: skip
            for write, path in ((write_json, report), (write_junit, junit)):
                if path is not None:
                    write(result, _beside(path, source) if results else path)
            results.append(result)
    if not as_json:
        from harness.report.console import Terminal

        if sample is not None:
            echo(f"a sample of {sample} tests, seed {seed}")
        for result in results:
            print_report(Terminal(), result)
    said = [result.as_json() for result in results]
    code = max(result.exit_code for result in results)
    return said[0] if len(said) == 1 else {"runs": said}, ExitCode(code)


def _tooling(exporter: ExporterChoice) -> Tooling | None:
    """The checkout that exports, as the place of the suite."""
    from harness.conformance.suites import Tooling
    from harness.export.exporter import exporter_label

    found = exporter.find()
    if found is None:
        return None
    return Tooling(found.environment, found.versions["executorch"], exporter_label(found.facts))


def _beside(path: Path, source: FirmwareSource) -> Path:
    """For the second of two runs: ``out.json`` to ``out.executorch.json``."""
    return path.with_name(f"{path.stem}.{source}{path.suffix}")


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    index, slash, count = text.partition("/")
    if not (slash and index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise UsageError(f"--shard takes I/N with 1 <= I <= N, not '{text}'")
    return int(index), int(count)
