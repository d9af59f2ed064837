"""Judges how an execution went, from its console and its end, without its outputs.

Pure. The first failure line is the cause; what follows it is usually only its consequence.
"""

from __future__ import annotations

import signal
from typing import Any

from harness.core.judgement import Cause, Finding, Reason
from harness.core.safe_text import plain
from harness.core.verdict import Verdict
from harness.log.events import HARNESS, LAUNCH, Event, Kind, Observation
from harness.log.matches import MEANING
from harness.sim.transcript import Ending
from harness.system.process import Stop
from harness.system.quota import QUOTA, Excess


def execution_cause(observation: Observation, ending: Ending, build_id: str | None) -> Finding:
    """Return verdict and cause if it is not proven good. ``build_id``: None if any will do."""
    found = (
        _never_began(observation, ending)
        or _simulator_crashed(observation, ending)
        or failed(observation, ending)
        or not_loaded(observation)
        or _ended_badly(observation, ending)
        or _wrong_firmware(observation, build_id)
        or _never_completed(observation)
    )
    if found and ending.began is False and found[0] in (Verdict.FAULT, Verdict.HANG):
        return Verdict.INFRA, found[1]  # what was never started did not do it
    return found


def _never_began(observation: Observation, ending: Ending) -> Finding:
    """Find a simulator that ended before its guest wrote a line, whatever its words are."""
    if ending.began or ending.native or observation.guest_line or ending.stop is not Stop.EXITED:
        return None
    if observation.failures and observation.failures[0].kind in LAUNCH | HARNESS:
        return None  # the line says more
    if not_loaded(observation) or model_limit(observation) or ending.signal in _KILLED:
        return None
    how = f"signal {ending.signal}" if ending.signal else f"exit status {ending.exit_status}"
    said = [event.text for event in observation.failures[:1]]
    if observation.last_line and observation.last_line not in said:
        said.append(observation.last_line)
    words = f"its last words: {' … '.join(said)}" if said else "it wrote nothing"
    text = f"the program never began: the simulator ended by itself ({how}); {words}"
    return Verdict.INFRA, Cause(Reason.NOT_STARTED, text, observation.lines or None)


def _simulator_crashed(observation: Observation, ending: Ending) -> Finding:
    """Attributes what a dying process wrote to the simulator if the simulator died."""
    first = next(iter(observation.failures), None)
    if ending.native or ending.signal is None or ending.signal in _KILLED or first is None:
        return None
    if first.kind not in LAUNCH and first.kind is not Kind.PROCESS_CRASH:
        return None
    text = f"the simulator was ended by signal {ending.signal}; {first.text}"
    return Verdict.NO_VERDICT, Cause(Reason.SIMULATOR_KILLED, text, first.line)


_BEFORE_THE_RUNNER = (Kind.NO_ROOT, Kind.LOGIN_REFUSED, Kind.SSH_REFUSED)  # under Linux


def _of_guest(event: Event, observation: Observation, ending: Ending) -> bool:
    """Return whether the guest wrote a line that a simulator or the harness else writes.

    Then the line says nothing of them."""
    if event.kind not in LAUNCH | HARNESS:
        return False
    if ending.problem is not None and event.text == plain(ending.problem):
        return False
    if event.kind is Kind.DISK_FULL:
        return not ending.disk_full
    if event.kind in HARNESS:
        return True
    if event.kind in _BEFORE_THE_RUNNER:
        return ending.began is not False
    if ending.native or ending.began is not None:
        return ending.native or bool(ending.began)
    return observation.guest_line is not None and observation.guest_line < event.line


def failed(observation: Observation, ending: Ending | None = None) -> Finding:
    """Return the first failure line. ``ending``: None for a lone log, where any may write lines."""
    if not observation.failures:
        return None
    first: Event = observation.failures[0]
    verdict = Verdict.INFRA if first.kind in LAUNCH else _VERDICTS.get(first.kind, Verdict.FAULT)
    of_guest = ending is not None and _of_guest(first, observation, ending)
    verdict = Verdict.FAULT if of_guest else verdict
    facts: dict[str, Any] = dict(first.facts)
    text = first.text
    alike = [f for f in observation.failures if f.kind is first.kind]
    named = [f for f in alike if "operator" in f.facts]
    if first.kind is Kind.OPERATOR_MISSING and named:
        facts["operators"] = list(dict.fromkeys(f.facts["operator"] for f in named))
    elif first.kind is Kind.ALLOCATION_FAILED:
        # an allocator logs before the kernel, whose line has the requested size
        request = next((f for f in alike if "needed" in f.facts), first)
        if request is not first:
            facts |= request.facts
            text += f"; line {request.line}: {request.text}"
    elif first.kind is Kind.RUNNER_ERROR:
        # ExecuTorch names the operator after the kernel's own message
        refused = next((f for f in named if f is not first), None)
        if refused is not None:
            facts["operator"] = refused.facts["operator"]
            text = f"{facts['operator']}: {text}"
    text += _MEANINGS.get(first.kind, "")
    text += f": {facts[MEANING]}" if MEANING in facts else ""
    text += "; the guest wrote this line, so it says nothing of the simulator" if of_guest else ""
    return verdict, Cause(first.kind.value, text, first.line, facts)


def not_loaded(observation: Observation) -> Finding:
    """Find an image that was not loaded completely, if it never printed anything."""
    if observation.runner_line is not None or observation.progress:
        return None
    suspect = next((s for s in observation.suspects if s.kind is Kind.IMAGE_NOT_LOADED), None)
    if suspect is None:
        return None
    return Verdict.FAULT, Cause(suspect.kind, suspect.text, suspect.line)


_MEANINGS = {
    Kind.SCRATCH_MISMATCH: "; the program was exported for other kernels than the runner has: for "
    "another core, or by another revision of ExecuTorch"
}
_VERDICTS = {
    Kind.BUNDLE_FAILED: Verdict.MISMATCH,
    Kind.TEST_FAILED: Verdict.MISMATCH,
    Kind.HUNG_TASK: Verdict.HANG,
    Kind.GUEST_SILENT: Verdict.HANG,
    Kind.BOARD_SILENT: Verdict.NO_VERDICT,
    Kind.OUTPUTS_LOST: Verdict.NO_VERDICT,
    Kind.CONSOLE_DAMAGED: Verdict.NO_VERDICT,
    Kind.FORMAT_UNKNOWN: Verdict.NO_VERDICT,
    Kind.WRONG_PROGRAM: Verdict.NO_VERDICT,
}
_STOPS = {Stop.DEADLINE: "still running", Stop.STALL: "no output and no CPU time"}
_TOO_MUCH = {
    Excess.CONSOLE: "more to the console",
    Excess.LINE: "a line without an end to the console, more",
    Excess.FILE_BYTES: f"{QUOTA.file_bytes >> 20} MiB to one file, more",
    Excess.TOTAL_BYTES: f"over {QUOTA.total_bytes >> 20} MiB to its files, more",
    Excess.FILES: f"over {QUOTA.files} files, more",
    Excess.UNCOUNTED: "folders that cannot be looked into, so it may be more",
}
# Sent by another process: no simulator sends these to itself, and the harness's own end is a Stop.
_KILLED: dict[int, Verdict] = dict.fromkeys(
    (signal.SIGHUP, signal.SIGKILL, signal.SIGTERM), Verdict.INFRA
)


def _ended_badly(observation: Observation, ending: Ending) -> Finding:
    after = f"; the last line was: {observation.last_line}" if observation.last_line else ""

    def bad(verdict: Verdict, kind: str, text: str, facts: dict[str, Any] | None = None) -> Finding:
        return verdict, Cause(kind, text + after, observation.lines or None, facts)

    if ending.stop is Stop.OUTPUT_LIMIT:
        what = "more output" if ending.excess is None else _TOO_MUCH[ending.excess]
        text = f"wrote {what} than any run should; ended after {ending.seconds:.1f} s"
        return bad(Verdict.FAULT, ending.stop, text, {"excess": ending.excess})
    if ending.stop is not Stop.EXITED:
        facts = {"stop": ending.stop, **(ending.where or {})}
        return bad(Verdict.HANG, ending.stop, _hang_text(observation, ending), facts)
    if ending.signal == signal.SIGSYS:  # of ``confine.filter_program``
        text = (
            "left with an exit status that would be taken for another end: a multiple of 256 for "
            "0, and 129 to 192 for a signal; or made a system call of another architecture"
        )
        return bad(Verdict.FAULT, Reason.EXIT_STATUS, text)
    if ending.signal is not None:
        by = f"was ended by signal {ending.signal}"
        if ending.native:
            return bad(Verdict.FAULT, Reason.PROCESS_CRASH, f"the runner {by}")
        verdict = _KILLED.get(ending.signal, Verdict.NO_VERDICT)
        return bad(verdict, Reason.SIMULATOR_KILLED, f"the simulator {by}")
    if limit := model_limit(observation):
        return limit
    if ending.exit_status is None:
        text = "the guest ended, and never said how the runner did"
        return bad(Verdict.NO_VERDICT, Reason.EXIT_UNKNOWN, text)
    if ending.exit_status != 0:
        which = _input_set(observation, len(observation.completed) - 1)
        text = f"ended with exit status {ending.exit_status}{which}"
        return bad(Verdict.FAULT, Reason.EXIT_STATUS, text, suspicion(observation))
    return None


def model_limit(observation: Observation) -> Finding:
    """Find a limit of the simulator's model that came before the end of the run."""
    stop = observation.stop
    if stop is None or not stop.reason.is_limit or observation.over:
        return None
    reached = observation.progress[-1] if observation.progress else None
    how_far = f"; got as far as: {reached.text}" if reached else "; the runner said nothing"
    return Verdict.HANG, Cause(stop.reason, stop.text + how_far, stop.line, suspicion(observation))


def _hang_text(observation: Observation, ending: Ending) -> str:
    facts = ending.where or {}
    why = _STOPS.get(ending.stop, ending.stop)
    if "instructions" in facts:
        why = f"no output in {facts['instructions']:,} instructions"
    what = f"{why} after {ending.seconds:.1f} s"
    if ending.where is not None:
        where = ending.where.get("pc_symbol") or ending.where.get("pc", "?")
        source = ending.where.get("pc_source")
        what += f", in {where}" + (f" ({source})" if source else "")
    what += "".join(f"; {thread}" for thread in facts.get("threads", ()))
    if observation.complete_line is not None:
        what += "; the runner had completed but never ended"
    return what


def suspicion(observation: Observation) -> dict[str, Any] | None:
    """Lines that may explain a bad end, but prove nothing."""
    if not observation.suspects:
        return None
    first = observation.suspects[0]
    return {"suspect": first.text, "suspect_line": first.line}


def _wrong_firmware(observation: Observation, build_id: str | None) -> Finding:
    if build_id is None or observation.build_id == build_id:
        return None
    text = f"asked for build {build_id}, the target said {observation.build_id or 'nothing'}"
    return Verdict.NO_VERDICT, Cause(Reason.WRONG_FIRMWARE, text)


def _never_completed(observation: Observation) -> Finding:
    if observation.complete_line is not None:
        return None
    last = observation.last_line
    last_words = f"the last line was: {last}" if last else "nothing was said"
    which = _input_set(observation, observation.completed.index(None))
    text = f"the runner never said it completed{which}; {last_words}"
    line, facts = observation.lines or None, suspicion(observation)
    return Verdict.NO_VERDICT, Cause(Reason.NO_END_MARKER, text, line, facts)


def _input_set(observation: Observation, process: int) -> str:
    """Return the input set of a process, if each set has its own and an earlier one succeeded."""
    return f" on input set {process}" if len(observation.completed) > 1 else ""


def console_cut(ending: Ending, observation: Observation, kept: int | None = None) -> Finding:
    """Find a console whose end was lost. ``kept``: the bytes left of it; None if not counted."""
    if not ending.console_complete:
        why = "the console was still open when the simulator had ended"
    elif kept is not None and ending.console_bytes not in (None, kept):
        why = f"of the console's {ending.console_bytes} bytes {kept} are there"
    else:
        return None
    last = f"the last line read is: {observation.last_line}"
    text = f"{why}, so it may have had more to say; {last}"
    return Verdict.NO_VERDICT, Cause(Reason.CONSOLE_CUT, text, observation.lines or None)


def limit_notes(observation: Observation) -> tuple[str, ...]:
    """Note that a model's limit ended a passing run: nothing may tell the model to stop."""
    stop = observation.stop
    if stop is None or not stop.reason.is_limit or not observation.over:
        return ()
    return (f"ended by the model's own limit after the runner had completed (line {stop.line})",)
