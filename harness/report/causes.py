"""What each verdict and each cause means, and what to do about it: for `hil why` and the docs.

The console messages of a cause are rows of ``harness/log/patterns.yaml``, each with an example.
A cause that is not here is the error of a stage, whose text says what to do.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from harness.core.verdict import Verdict


class Advice(NamedTuple):
    meaning: str
    do: str


_BOARD: Final = "the console's last lines and the function that is named beside the fault"
_SIMULATOR: Final = "`hil doctor` shows what is installed; the console has the whole message"
_MEMORY: Final = "`HIL_METHOD_POOL_BYTES` and its like are `pools` of the target's file"

VERDICTS: Final[dict[Verdict, Advice]] = {
    Verdict.PASS: Advice(
        "every output byte, end marker, budget and file of the run is as it has to be", "nothing"
    ),
    Verdict.COMPLETED: Advice(
        "only of a console log: the run ended, and nothing in the log compared its outputs",
        "let the runner compare (a .bpte), or run the program with `hil run`",
    ),
    Verdict.MISMATCH: Advice(
        "it ran to its end and gave other outputs than the reference",
        "look at the operator and element that the cause names; `hil npu reduce` and `--firmware "
        "both` narrow it down",
    ),
    Verdict.FAULT: Advice(
        "the program, the runner or the board's CPU failed while it ran",
        "look at the line of the console that the cause names",
    ),
    Verdict.HANG: Advice(
        "it did not end in its time, or said and did nothing for too long",
        "look at the last line of the console; `--limit-factor` is for slow machines",
    ),
    Verdict.NO_VERDICT: Advice(
        "something that PASS needs is not there, so that nothing is proven; or there was nothing "
        "to run, because what was asked for makes no sense (exit status 2)",
        "the cause says what was missing",
    ),
    Verdict.OVER_BUDGET: Advice(
        "right outputs, and a figure above its limit or grown beyond its slack",
        "`hil size OLD NEW --why 1000` says what grew; `hil accept CASE --reason ...` if it "
        "is meant",
    ),
    Verdict.EXPORT_ERROR: Advice(
        "the model gave no program that would prove something",
        "the cause names stage and line; `--debug` has the traceback",
    ),
    Verdict.BUILD_ERROR: Advice("the runner did not compile", "the cause has the compiler's words"),
    Verdict.LINK_ERROR: Advice(
        "the runner compiled and did not link",
        "`hil link explain TARGET/runner`, then `hil link reduce`",
    ),
    Verdict.INFRA: Advice(
        "a tool, the disk or the simulator failed; it says nothing of what was to be tested",
        "`hil doctor`; then again",
    ),
    Verdict.SKIPPED: Advice(
        "the FVP that the case wants is not installed, and such cases are skipped here",
        '`hil doctor` says where to get it; the setting `fvp_missing = "fail"` makes it an error',
    ),
}

CAUSES: Final[dict[str, Advice]] = {
    # what a console says (harness.log)
    "hard_fault": Advice("a fault that no other handler took", _BOARD),
    "mpu_fault": Advice("an access that the memory protection forbids (MemManage)", _BOARD),
    "bus_fault": Advice("an access to an address where nothing answers", _BOARD),
    "usage_fault": Advice(
        "an instruction that this CPU does not have, a division by zero, an unaligned access",
        "compare the CPU that was compiled for with the board's",
    ),
    "secure_fault": Advice("an access from non-secure state to secure memory", _BOARD),
    "debug_fault": Advice("a breakpoint without a debugger", _BOARD),
    "cpu_exception": Advice("an exception that the platform does not name", _BOARD),
    "boot_panic": Advice("the boot loader or secure firmware gave up", _BOARD),
    "cpu_lockup": Advice("a fault within the handler of a fault", _BOARD),
    "stack_overflow": Advice(
        "the stack ran into its limit", "give the board more stack, or the model less of it"
    ),
    "zephyr_fatal": Advice("Zephyr's kernel ended the program", _BOARD),
    "linux_oops": Advice("Linux had a fault in its kernel", "the call trace in the console"),
    "linux_panic": Advice("Linux stopped", "the line of the panic, and what stands above it"),
    "no_root_file_system": Advice("Linux found no root file system", "the kernel's command line"),
    "out_of_memory": Advice("memory ran out, and a process was ended for it", "give it more"),
    "hung_task": Advice("Linux says that a task waits for ever", "the task's call trace"),
    "login_refused": Advice("the guest's login did not take the name", "the target's `guest`"),
    "guest_silent": Advice("the guest does not come to what was waited for", "its console"),
    "disk_full": Advice("a disk is full", "free some space"),
    "process_crash": Advice("the runner, a process, was ended by a signal", _BOARD),
    "assertion_failed": Advice("an assertion in the code that ran does not hold", _BOARD),
    "operator_missing": Advice(
        "the program wants operators that the runner was built without",
        "build the runner with them, or see why the export left them in the program",
    ),
    "allocation_failed": Advice("a pool is too small for the program", _MEMORY),
    "scratch_mismatch": Advice(
        "the program was exported for other kernels than the runner has",
        "export for the CPU that the runner is built for",
    ),
    "backend_missing": Advice(
        "the program has a delegate whose backend the runner lacks",
        "take the target that the program was exported for",
    ),
    "npu_driver_error": Advice("the NPU's driver reports an error", "the status that it prints"),
    "bad_program": Advice("the .pte is damaged, or of another version", "export it again"),
    "input_rejected": Advice(
        "number, size or type of the inputs are not the method's", "the cause says both"
    ),
    "semihosting_off": Advice(
        "the program asks for semihosting, which the simulator was not told to offer",
        "switch it on, or link the program without it",
    ),
    "file_not_opened": Advice(
        "the runner could not open a file", "only its run directory is there"
    ),
    "output_not_written": Advice("the runner could not write an output", "`work/` of the run"),
    "bundled_test_failed": Advice(
        "the program's own comparison with its bundled outputs failed", "as for `outputs_differ`"
    ),
    "test_failed": Advice("a test within the program failed", "the line of the console"),
    "runner_error": Advice(
        "the runner ended with an error of ExecuTorch", "the line of the console"
    ),
    "library_missing": Advice("the simulator lacks a shared library", _SIMULATOR),
    "executable_stack": Advice("the system forbids the simulator's executable stack", _SIMULATOR),
    "host_limits": Advice("the simulator met a limit of this machine", "`ulimit -a`"),
    "licence": Advice("the simulator got no licence", "its licence server or file"),
    "eula": Advice("the simulator's licence was not accepted", "start it once by hand"),
    "simulator_error": Advice("the simulator itself failed", _SIMULATOR),
    "image_not_loaded": Advice("the simulator did not load the program", "its memory map"),
    "job_failed": Advice(
        "the runner completed, and a tool or CI system in the log says that something failed",
        "that line",
    ),
    "exit_status": Advice("the run ended with a status that is not 0", "the line above the end"),
    # what no line of a console says (harness.judge)
    "output_missing": Advice("an output that the method has was not written", "the console"),
    "output_size": Advice("an output has another size than expected", "the method's outputs"),
    "outputs_differ": Advice(
        "an output differs from the oracle's",
        "operator, element and step are in the cause; a tolerance is a budget to review",
    ),
    "reference_outputs": Advice(
        "the outputs are the oracle's, and not those that were accepted",
        "find what changed since; `hil accept CASE --only outputs` if it is meant",
    ),
    "reference_program": Advice(
        "in CI: the program is not that of the accepted run, so nothing was compared with that run",
        "the cause names the operators; `hil accept CASE --reason` if the change is meant",
    ),
    "truth_outputs": Advice("the outputs are not those accepted as the truth", "as above"),
    "no_inference": Advice(
        "the log shows a runner that completed, and no inference or output of it",
        "how many inferences were asked for",
    ),
    "only_nan": Advice("every output that the log shows is NaN", "the inputs and the model"),
    "nothing_compared": Advice("there was no output to compare", "the method has to return one"),
    "program_changed": Advice(
        "the program that ran is not the one whose outputs are expected",
        "`--pte` takes a program with the model's inputs and outputs; or accept it",
    ),
    "wrong_firmware": Advice("another build ran than was asked for", "who else put it there"),
    "over_limit": Advice(
        "a figure is above its hard limit", "make it smaller, or the limit larger"
    ),
    "grown": Advice(
        "a figure grew by more than its slack", "`hil gate` and `hil size OLD NEW` say what grew"
    ),
    "not_measured": Advice(
        "a budget is for a figure that the run did not give", "the budget's name"
    ),
    "simulator_killed": Advice("a signal ended the simulator", "the kernel's log; memory"),
    "not_started": Advice("the simulator was not started", _SIMULATOR),
    "exit_unknown": Advice("the guest ended before the runner's status was known", "its console"),
    "no_end_marker": Advice("the console never says that the run completed", "its last line"),
    "no_runner_line": Advice("nothing in the log is a runner's", "is it the right file?"),
    "empty_log": Advice("the log is empty", "is it the right file?"),
    "console_cut": Advice("the console ends in the middle of a line", "who cut it"),
    "npu_unsupported": Advice(
        "the NPU's model does not know what the stream asks for", "registers are in the cause"
    ),
    "npu_model": Advice("the NPU's model failed", "this is a defect of the harness: report it"),
    "npu_fault": Advice("the stream does what an NPU must not", "the job and the address"),
    "npu_refused": Advice("what was asked of the NPU's doorbell makes no sense", "the driver"),
    # why a run was ended (harness.system.process, and limits of the models)
    "deadline": Advice("its time was up", "the last line; `--limit-factor` on a slow machine"),
    "stall": Advice("no output and no work for too long", "the last line: what does it wait for?"),
    "output_limit": Advice("it wrote more than a run may", "the cause says of what"),
    "wall_limit": Advice("the model's own limit of wall time", "`limits.model` of the target"),
    "simulated_limit": Advice("its limit of simulated time", "`limits.simulated` of the target"),
    "cycle_limit": Advice("its limit of cycles", "`limits.cycles` of the target"),
    # errors of stages, of those that users meet (HarnessError.kind)
    "bad_model": Advice("a user's model file is wrong", "the cause says what and where"),
    "usage": Advice("what was asked for makes no sense", "the cause says what does"),
    "bad_target": Advice("a target's file is wrong", "file and line are in the cause"),
    "dead_model": Advice(
        "the outputs do not depend on the inputs", "check weights and calibration"
    ),
    "export": Advice("a stage of the export failed", "the cause names the stage"),
    "build": Advice("the compiler failed", "its words are in the cause"),
    "link": Advice("the linker failed", "`hil link explain TARGET/runner`"),
    "tool_missing": Advice("a program is not installed", "`hil doctor` says how to get it"),
    "fvp_missing": Advice("the FVP is not installed", "`hil doctor` says where to get it"),
    "not_confined": Advice(
        "what runs could not be confined, and the caller asked for that",
        "install bubblewrap, or set HIL_REQUIRE_CONFINEMENT=0 for guests that you trust",
    ),
    "infrastructure": Advice("the machine failed us", "the cause says in what"),
    "internal": Advice("a defect of the harness", "report it, with `--debug`"),
    "unforeseen": Advice("a defect of the harness", "report it, with `--debug`"),
}


def advice(verdict: Verdict, kind: str | None) -> Advice:
    """Of a cause, or of the verdict where the cause has none."""
    return CAUSES.get(kind or "", VERDICTS[verdict])
