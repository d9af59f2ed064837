"""What west and Python say: no workspace, a manifest that is wrong, a package that is not there.

Sources: what west 1.5.0 and Zephyr 4.1.0's `west build` print."""

from __future__ import annotations

from harness.link.stop.model import StopKind, rules

RULES = (
    *rules(
        StopKind.WORKSPACE,
        ("do you need to run this inside a workspace",
         r'west: unknown command "(?P<command>[^"]+)"',
         "west found no workspace, neither around the directory it was run in nor by ZEPHYR_BASE, "
         "so it does not know {command}, which is a command of Zephyr's.",
         "Run it inside a workspace (a folder with .west in it), or set ZEPHYR_BASE to the zephyr "
         "folder of one; `west topdir` says which workspace is seen."),
        ("does not define this extension command",
         r'west: unknown command "(?P<command>[^"]+)"; workspace (?P<workspace>\S+) does not',
         "The manifest of the workspace {workspace} has no project that brings the command "
         "{command}: Zephyr is not in it or not checked out, its entry has no `west-commands`, or "
         "the manifest cannot be read.",
         "Give the zephyr project in the manifest `west-commands: scripts/west-commands.yml`, then "
         "`west update`; `west -vv status` says whether the manifest can be read."),
        ("no west workspace found",
         r'no west workspace found from "(?P<folder>[^"]+)"; "(?P<command>[^"]+)" requires one',
         "{folder} is not in a west workspace, and {command} needs one.",
         "Run it inside a workspace (a folder with .west in it), or make one with `west init`."),
        ("Malformed manifest file",
         r"Malformed manifest file: (?P<file>\S+).*?Key '(?P<key>[^']+)' was not defined\. Path: "
         r"'(?P<path>[^']*)'",
         "The manifest {file} has a key that west does not know: {key}, in {path}.",
         "Correct the key {key} in {file} (west's manual, \"West Manifests\", has them all)."),
        ("Malformed manifest file",
         r"Malformed manifest file: (?P<file>\S+)",
         "The manifest {file} is not what west reads: it is no YAML mapping with `manifest:`.",
         "Correct the YAML of {file}; `west manifest --validate` says whether it is right."),
        ("update failed for project", r"update failed for projects? (?P<project>.+)$",
         "west could not fetch the project {project} of the manifest.",
         "Look at git's message above: the url or the revision of {project} in the manifest is "
         "wrong, or there is no way to it from here."),
    ),
    *rules(
        StopKind.WORKSPACE,
        ("doesn't contain a CMakeLists.txt", r"ERROR: (?P<folder>\S+) doesn't contain a CMakeLists",
         "{folder} is not an application: it has no CMakeLists.txt.",
         "Give `west build` the folder of the application."),
        ("does not exist", r"ERROR: source directory (?P<folder>\S+) does not exist",
         "The application's folder {folder} does not exist.",
         "Correct the path that `west build` is given; it is relative to where west is run."),
    ),
    *rules(
        StopKind.BOARD,
        ("targets board",
         r"Build directory (?P<folder>\S+) targets board (?P<old>\S+), but board (?P<new>\S+) was",
         "{folder} was configured for the board {old}, and {new} was asked for.",
         "Give another build directory (-d), or `west build --pristine`."),
    ),
    *rules(
        StopKind.PYTHON,
        ("No module named", r"No module named '(?P<package>[\w.]+)'.*?Please install with: "
         r"(?P<how>\S+ -m pip install \S+)",
         "The Python that Zephyr's build runs has no package {package}.",
         "Install it there: {how}. Or have the build use the Python that west is run with: an "
         "empty build directory, with that environment active."),
        ("No module named", r"(?:ModuleNotFound|Import)Error: No module named "
         r"'(?P<package>[\w.]+)'",
         "The Python that Zephyr's build runs has no package {package}.",
         "Install what Zephyr's scripts need: pip install -r zephyr/scripts/requirements.txt, in "
         "the environment that west is run from."),
    ),
)  # fmt: skip
