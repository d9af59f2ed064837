"""What users get wrong: a command, and what it has to answer.

Each row is run in a folder that ``folder`` of ``test_mistakes`` makes. ``says`` are words of the
message, ``then`` words of the next step; 1 as a status is the product's alone.
"""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    command: str
    status: int
    says: str
    then: str
    environment: dict[str, str] = {}  # noqa: RUF012  never changed


M = Mistake
OWN_HISTORY = {"HIL_HISTORY": "sqlite:///nights.db"}
MISTAKES: dict[str, Mistake] = {
    # verbs and options
    "a verb that is none": M("rum host add", 2, "has no command 'rum'", "--help"),
    "an option that is none": M("run host add --profil", 2, "has no option --profil", "--profile"),
    "an option without its value": M("run host add --pte", 2, "requires an argument", "--pte"),
    "no arguments": M("run", 2, "Missing argument 'TARGET'", "--help"),
    "target and model exchanged": M(
        "run ds_cnn host",
        2,
        "ds_cnn is a model, where a target is wanted",
        "the target comes first: `hil run TARGET ds_cnn`",
    ),
    "letters of a verb exchanged": M("rnu host add", 2, "has no command 'rnu'", "mean run"),
    "a verb of a clone, misspelt": M("tset", 2, "has no command 'tset'", "mean test"),
    "a choice that is none": M(
        "run host add --firmware weel", 2, "--firmware cannot be 'weel'", "mean wheel"
    ),
    "a choice like no other": M(
        "suite everything", 2, "cannot be 'everything'", "there are: cortex-m, ethos-u55"
    ),
    "a suite file that is not there": M(
        "nightly nights.yaml", 2, "there is no file nights.yaml", "paths start at"
    ),
    "no model": M("run host", 2, "no model was named", "`hil models` lists them"),
    "no reason": M("accept host/add", 2, "Missing option '--reason'", "--help"),
    "a factor that is none": M(
        "run host add --limit-factor 0", 2, "not a number above 0", "--help"
    ),
    "a tolerance beyond reason": M(
        "run host add --tolerance 40", 2, "40 LSB is not between 0 and 16", "hil accept --truth"
    ),
    "a tolerance in CI": M(
        "run host add --tolerance 3", 2, "refused in CI", "tolerance_lsb: 3", {"CI": "true"}
    ),
    "a known defect that is none": M(
        "run host add --accept-known-defect cats",
        2,
        "no known defect of ExecuTorch is called 'cats'",
        "there are: view-of-channels-last",
    ),
    "two models and one program": M(
        "run host add mul --pte whole.pte", 2, "--pte replaces one", "name one model"
    ),
    "isolation of a checkout": M(
        "run host add --isolate-export --exporter checkout --executorch .",
        2,
        "--isolate-export is for the installed wheel",
        "leave one of the two out",
    ),
    # targets
    "a target that is misspelt": M(
        "run corstone-300-m5 add", 2, "unknown target 'corstone-300-m5'", "corstone-300-m55"
    ),
    "a target from the wrong list": M(
        "run cortex-m55 add", 2, "unknown target", "corstone-300-m55"
    ),
    "other MACs": M(
        "run corstone-300-u55-100 add", 2, "unknown target", "did you mean corstone-300-u55"
    ),
    "a memory mode that is none": M("run corstone-300-u55-128@Sram add", 2, "Sram", "Sram_Only"),
    "a memory mode without an NPU": M(
        "run host@Sram_Only add", 2, "host has no NPU", "leave @Sram_Only out"
    ),
    "a target file that is not there": M(
        "run boards/none.yaml add", 2, "no target file", "`hil targets`"
    ),
    "a key that is none": M("run boards/key.yaml add", 2, "key.yaml:3", "limits.hots"),
    "a target that extends nothing": M(
        "run boards/orphan.yaml add", 2, "orphan.yaml:1", "another target"
    ),
    "a version without quotes": M("run boards/number.yaml add", 2, "number.yaml:2", "in quotes"),
    "YAML that is none": M(
        "run boards/broken.yaml add", 2, "broken.yaml:2: not valid YAML", "bracket"
    ),
    "a simulator that is none": M(
        "run host add --simulator qmu", 2, "no simulator 'qmu'", "it has: "
    ),
    "an FVP that is not there": M(
        "run corstone-300-m55 add --simulator fvp",
        3,
        "FVP_Corstone_SSE-300_Ethos-U55 is not installed",
        "set HIL_FVP_DIR",
        {"CI": "true"},
    ),
    # models
    "a model that is misspelt": M(
        "run host ds_cn", 2, "unknown model 'ds_cn'", "did you mean ds_cnn?"
    ),
    "a model that needs more": M("run host deit_tiny", 2, "needs the package timm", "pip install"),
    "a model file that is not there": M(
        "run host models/none.py", 2, "no such model file", "models has broken.py, empty.py"
    ),
    "a model file without .py": M("run host models/empty", 2, "unknown model", "models/empty.py"),
    "a model file without a model": M(
        "run host models/empty.py",
        2,
        "does not define ModelUnderTest and ModelInputs",
        "ModelInputs a tuple of its inputs",
    ),
    "a model file that is not Python": M(
        "run host models/broken.py", 2, "broken.py:2 is not valid Python", "says the same"
    ),
    "a folder as a model": M(
        "run host models", 2, "unknown model 'models'", "a path ending in .py"
    ),
    "budgets that are none": M(
        "run host models/odd.py", 2, "odd.yaml:1: unknown key 'budget'", "budgets: {limits"
    ),
    # programs, runs, references
    "a program that is not there": M(
        "exec host none.pte", 2, "there is no file none.pte", "paths start at"
    ),
    "outputs into nowhere": M(
        "exec host whole.pte -o no/where/out",
        2,
        "no directory no/where",
        "the outputs would go there",
    ),
    "not a run": M("judge models", 2, "is not a run directory", ".hil/runs"),
    "a log that is not there": M("judge none.log", 2, "no file or directory none.log", ".hil/runs"),
    "not a case": M("accept ds_cnn --reason x", 2, "is not a case", "TARGET/MODEL"),
    "why of nothing": M(
        "why host/softmax", 2, "no run of host/softmax", "hil run", {"HIL_HOME": "nothing"}
    ),
    "sizes of nothing": M("size none.pte", 2, "there is no file none.pte", "TARGET/runner"),
    "sizes of text": M("size models/empty.py", 2, "not a .pte, .bpte or ELF", "hil run TARGET"),
    "a page into nowhere": M(
        "size whole.pte --html no/where.html", 2, "no directory no", "the page would go there"
    ),
    "a change of one file": M(
        "size whole.pte --why 9", 2, "one file was named", "hil size OLD NEW"
    ),
    "a map of two files": M(
        "size whole.pte whole.pte --map whole.pte", 2, "two are compared", "hil size FILE"
    ),
    "two kinds of files": M("size whole.pte firmware.elf", 2, "is pte", "an ELF with an ELF"),
    "an NPU's stream in a program without": M(
        "npu stats whole.pte", 2, "no Ethos-U delegate", "hil targets"
    ),
    # settings, links, init
    "a setting that is none": M(
        "targets", 2, "did you mean targets?", "there are: ", {"HIL_PROJECT": "wrong"}
    ),
    "settings that are not TOML": M(
        "targets", 2, "is not TOML", "in quotes", {"HIL_PROJECT": "torn"}
    ),
    "a project that is none": M(
        "targets", 2, "no settings of hil", "[tool.hil]", {"HIL_PROJECT": "models"}
    ),
    "a folder of targets that is not there": M(
        "targets",
        2,
        "is not a directory of targets",
        "`targets` of your settings names it",
        {"HIL_PROJECT": "nowhere"},
    ),
    "init over files": M("init taken", 2, "nothing was written", "name an empty folder"),
    "init into a file": M("init models/empty", 2, "there are already", "name an empty folder"),
    "a history without a run": M(
        "history host/add", 2, "no run of host/add", "it is empty; `hil nightly`", OWN_HISTORY
    ),
    "a device where a file is wanted": M(
        "exec host /dev/null -o x", 2, "/dev/null is not a file", "current directory"
    ),
    "a bundle that is not there": M("replay none", 2, "does not exist", "current directory"),
    "a checkout that is not there": M(
        "run host add --executorch none", 2, "there is no such folder", "git clone"
    ),
    "a log of no link": M("link explain none.log", 2, "no file none.log", "TARGET/runner"),
    "a checkout that is none": M(
        "run host add --executorch models", 2, "is not a checkout", "git clone"
    ),
    "a checkout that nobody named": M(
        "run host add --firmware executorch", 2, "needs a checkout", "--executorch DIR"
    ),
    # nights on other machines
    "a scheduler without a store": M(
        "nightly --scheduler tcp://127.0.0.1:1", 2, "--scheduler needs a store", "--store URL"
    ),
    "a scheduler and jobs": M(
        "nightly --scheduler tcp://127.0.0.1:1 -j 2", 2, "--jobs is for this machine", "leave one"
    ),
    "a scheduler that is no address": M(
        "nightly --scheduler farm --store s", 3, "farm does not answer", "--nthreads 1", OWN_HISTORY
    ),
    "a scheduler without a port": M(
        "nightly --scheduler tcp://farm --store s", 3, "missing port", "tcp://HOST", OWN_HISTORY
    ),
    "a store of no kind": M(
        "nightly --store nowhere://x", 3, "cannot be used", "s3://BUCKET/FOLDER", OWN_HISTORY
    ),
    "a store that cannot be": M(
        "nightly --store /dev/null/x", 3, "/dev/null/x cannot be used", "a folder", OWN_HISTORY
    ),
    "a store by SFTP": M(
        "nightly --store sftp://me@127.0.0.1/x", 3, "SFTP is not supported", "a folder", OWN_HISTORY
    ),
}
