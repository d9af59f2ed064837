"""``repro.sh`` of a bundle: with the harness, or with the simulator alone where that is enough."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator

from harness.build.firmware import RUNNER, Firmware
from harness.bundle.manifest import FIRMWARE
from harness.run.record import RunRecord
from harness.target.loading import Target

_HEAD = """\
#!/bin/sh
# {title}: {verdict} on {simulator}.
# Runs it again here and compares: unpack the bundle (tar --zstd -xf), then
#   sh repro.sh           with the harness: `hil` of $PATH, or $HIL
#   sh repro.sh --plain   {plain}
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
if [ "${{1-}}" != --plain ]; then
  exec "${{HIL:-hil}}" replay "$here" "$@"
fi
"""
_NONE = "echo {why} >&2\nexit 2\n"
_PLAIN = """\
work=$(mktemp -d)
cp "$here"/{pte} "$here"/inputs/* "$work"
cd "$work"
{command} || echo "repro.sh: it ended with status $?"
for output in "$here"/outputs/*; do
  cmp "$output" "$(basename "$output")" && echo "$(basename "$output"): the same"
done
"""


def script(
    record: RunRecord, firmware: Firmware, target: Target, plain: Callable[[str], str]
) -> str:
    """The text of ``repro.sh``, for /bin/sh, of a record with the names of the bundle. ``plain``
    frees a text of this machine's paths."""
    assert record.simulator is not None  # of a run that was made
    assert record.program is not None
    why = _why_not_alone(firmware, target)
    told = f"{record.simulator.name} {record.simulator.version}"
    alone = why or "without it and its walls: the program runs with your rights"
    title = plain(record.case.id).replace("\n", " ")
    head = _HEAD.format(title=title, verdict=record.verdict, simulator=told, plain=alone)
    if why:
        return head + _NONE.format(why=shlex.quote(f"repro.sh: {why}; use `hil replay`"))
    words = " ".join(_words(map(plain, record.simulator.argv)))
    return head + _PLAIN.format(pte=record.program.pte, command=words)


def _words(argv: Iterable[str]) -> Iterator[str]:
    """For a shell in the guest's directory."""
    elf = f"{FIRMWARE}/{RUNNER}"
    for word in argv:
        yield f'"$here"/{elf}' if word == elf else shlex.quote(word)


def _why_not_alone(firmware: Firmware, target: Target) -> str:
    """What the simulator lacks that the harness has; "" when it is enough."""
    if target.npu is not None:
        return "the model of the NPU is the harness's"
    if firmware.one_set_per_process:
        return "its runner is started once for each input set, with help from outside"
    if target.linux is not None:
        return "the guest's Linux is made by the harness"
    return ""
