"""A run may take several processes, one after another, whose output is one console.

Each is read by itself, so that nothing one of them said can speak for another; the lines are
those of the whole console.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import TypeVar

from harness.observe.events import ModelStop, Observation
from harness.observe.reader import Reader

_Entry = TypeVar("_Entry")


def observe_processes(console: bytes, starts: Sequence[int]) -> Observation:
    """``starts``: where the output of each process begins, in bytes and in order. One that begins
    in the middle of a line goes on with that line; one behind the end said nothing."""
    ends = [at for _, at in pairwise((*starts, len(console)))]
    seen = []
    for start, end in zip(starts, ends, strict=True):
        reader = Reader(console.count(b"\n", 0, start))
        reader.feed(console[start:end])
        seen.append(reader.finish())
    return together(seen)


def together(processes: Sequence[Observation]) -> Observation:
    """One Observation of all, in order.

    How it ended is what the last process says, for the others ended well or there would be no
    later one. Of a figure that several print it is the largest. Raises ValueError for none.
    """
    if not processes:
        raise ValueError("a run has at least one process")
    if len(processes) == 1:
        return processes[0]
    last = processes[-1]
    build_ids = {process.build_id for process in processes}
    metrics = dict(last.metrics)
    for name, metric in chain.from_iterable(p.metrics.items() for p in processes):
        metrics[name] = max(metric, metrics.get(name, metric), key=lambda m: m.value)
    return Observation(
        lines=last.lines,
        failures=_all(p.failures for p in processes),
        metrics=metrics,
        op_ticks=_all(p.op_ticks for p in processes),
        build_id=build_ids.pop() if len(build_ids) == 1 else None,
        bundle_passes=sum(p.bundle_passes for p in processes),
        completed=_all(p.completed for p in processes),
        last_line=last.last_line,
        suspects=last.suspects,
        failures_dropped=sum(p.failures_dropped for p in processes),
        progress=_all(p.progress for p in processes),
        pmu=last.pmu,
        tensors=_all(p.tensors for p in processes),
        output_files=_all(p.output_files for p in processes),
        blocks=_all(p.blocks for p in processes),
        stop=_stop(processes),
        bundle_lines=_all(p.bundle_lines for p in processes),
        runner_line=last.runner_line,
        ports=last.ports,
        versions=last.versions,
        cut=last.cut,
        ended_line=last.ended_line,
    )


def _all(parts: Iterable[tuple[_Entry, ...]]) -> tuple[_Entry, ...]:
    return tuple(chain.from_iterable(parts))


def _stop(processes: Sequence[Observation]) -> ModelStop | None:
    """Of the process that the model stopped before its end; else of the last."""
    early = (p.stop for p in processes if p.complete_line is None and p.stop is not None)
    return next((stop for stop in early if stop.reason.is_limit), processes[-1].stop)
