"""What CMake says, of Zephyr's board, toolchain and modules and of any project.

Sources: Zephyr 4.1.0's cmake/modules and cmake/toolchain, and the messages of CMake 3.25."""

from __future__ import annotations

from harness.link.stop.model import StopKind, rules

RULES = (
    *rules(
        StopKind.BOARD,
        ("BOARD is not being defined", r"BOARD is not being defined on the CMake command-line",
         "No board was named.", "`west build -b BOARD`; `west boards` lists them."),
        ("not found", r"Board qualifiers `/?(?P<given>[^`]*)` for board `(?P<board>[^`]+)` not "
         r"found.*?Valid board targets for \S+ are: (?P<valid>.*?)$",
         "The board {board} has no variant `{given}`.",
         "Take one of its variants: {valid}."),
        ("No board named", r"No board named '(?P<board>[^']+)' found",
         "There is no board {board} in this Zephyr, its modules or BOARD_ROOT.",
         "Correct the name (`west boards` lists them), or give the folder that has boards/ with "
         "-DBOARD_ROOT=DIR."),
        ("No shield named", r"No shield named '(?P<shield>[^']+)' found",
         "There is no shield {shield} in this Zephyr, its modules or BOARD_ROOT.",
         "Correct SHIELD; the message lists those that there are."),
        ("snippets not found", r"snippets not found: (?P<snippet>\S+)",
         "There is no snippet {snippet} in this Zephyr or SNIPPET_ROOT.",
         "Correct the name (-S or SNIPPET); the message lists those that there are."),
    ),
    *rules(
        StopKind.MODULE,
        ("is not a valid zephyr module", r"(?P<folder>\S+), given in (?P<by>\S+), is not a valid "
         r"zephyr module",
         "{folder}, which {by} names, is no Zephyr module: it has no zephyr/module.yml, or is not "
         "there.",
         "Correct the path in EXTRA_ZEPHYR_MODULES or ZEPHYR_MODULES (CMakeLists.txt, the command "
         "line or the environment), or add zephyr/module.yml to that folder."),
    ),
    *rules(
        StopKind.TOOLCHAIN,
        ("Nothing found at", r"Nothing found at (?P<variable>\w+): '(?P<folder>[^']*)'",
         "{variable} is '{folder}', where no toolchain is.",
         "Set {variable} to the folder that has bin/ with the compiler in it (/usr for Debian's "
         "gcc-arm-none-eabi)."),
        ("_TOOLCHAIN_PATH is not set", r"(?P<variable>\w+_TOOLCHAIN_PATH) is not set",
         "The toolchain was chosen by ZEPHYR_TOOLCHAIN_VARIANT, and {variable} does not say where "
         "it is.", "Set {variable} to the folder that has bin/ with the compiler in it."),
        ("/cmake/toolchain/", r"include could not find requested file: \S+/cmake/toolchain/"
         r"(?P<variant>[^/\s]+)/generic\.cmake",
         "ZEPHYR_TOOLCHAIN_VARIANT is {variant}, which this Zephyr does not know.",
         "Set it to zephyr (the SDK), gnuarmemb, llvm, armclang or another folder of "
         "zephyr/cmake/toolchain."),
        ("Zephyr-sdk", r'provided by "Zephyr-sdk" \(requested version (?P<version>[\d.]+)\)',
         "The Zephyr SDK {version} or newer, which ZEPHYR_TOOLCHAIN_VARIANT (or its default) asks "
         "for, is not installed where CMake looks.",
         "`west sdk install`, or set ZEPHYR_SDK_INSTALL_DIR; or take another toolchain: "
         "ZEPHYR_TOOLCHAIN_VARIANT=gnuarmemb with GNUARMEMB_TOOLCHAIN_PATH."),
        ("Retargetable locking must be enabled", r"Retargetable locking must be enabled",
         "CONFIG_NEWLIB_LIBC is y, and this toolchain's newlib was built without retargetable "
         "locking (Debian's is), which Zephyr needs with threads.",
         "Set CONFIG_PICOLIBC=y or CONFIG_MINIMAL_LIBC=y in its place, or take the Zephyr SDK, "
         "whose newlib has it."),
        ("is not a full path to an existing compiler", r"The (?P<variable>CMAKE_\w+_COMPILER): "
         r"(?P<compiler>\S+) is not",
         "{variable} is {compiler}, which is not there.",
         "Install that compiler, or correct the path that chooses it."),
    ),
    *rules(
        StopKind.VERSION,
        ("or higher is required", r"CMake (?P<wanted>[\d.]+) or higher is required\. +You are "
         r"running version (?P<have>[\d.]+)",
         "{place} asks for CMake {wanted} or newer; this is {have}.",
         "Install a newer CMake (pip install cmake), or lower cmake_minimum_required in {place} "
         "if nothing newer is used."),
        ("is compatible with requested version",
         r'for package "(?P<package>[^"]+)" that is compatible with requested version '
         r'"(?P<wanted>[^"]+)".*?, version: (?P<have>[\w.]+)',
         "{place} asks for {package} {wanted}; what is found is {have}.",
         "Take a checkout of {package} {wanted} (its `revision` in the manifest, then `west "
         "update`, and ZEPHYR_BASE where it is set), or ask for {have} in {place}."),
    ),
    *rules(
        StopKind.PACKAGE,
        ("package configuration file provided by",
         r'Could not find a package configuration file provided by "(?P<package>[^"]+)"',
         "{place} needs the CMake package {package}, and CMake finds none.",
         "Install {package}, and name its folder: -D{package}_DIR=DIR or -DCMAKE_PREFIX_PATH=DIR; "
         "for Zephyr set ZEPHYR_BASE."),
        ("Could NOT find", r"Could NOT find (?P<package>\w+)(?P<why>.*)$",
         "{place} needs {package}, and CMake does not find it{why}.",
         "Install {package}, or say where it is with -D{package}_ROOT=DIR."),
    ),
    *rules(
        StopKind.KCONFIG,
        ("File not found", r"kconfig\.cmake:\d+ \(message\): File not found: (?P<file>\S+)",
         "The configuration file {file} does not exist.",
         "Correct CONF_FILE, EXTRA_CONF_FILE or FILE_SUFFIX, or write the file."),
    ),
    *rules(
        StopKind.CMAKE,
        ("Cannot find source file", r"Cannot find source file: (?P<source>\S+)",
         "A target lists the source {source}, which does not exist.",
         "Correct the name where it is listed (target_sources or zephyr_library_sources in the "
         "CMakeLists.txt), or write the file."),
        ("No SOURCES given to target", r"No SOURCES given to target: (?P<target>\S+)",
         "The target {target} has no source file.",
         "Add target_sources({target} PRIVATE ...) to the CMakeLists.txt."),
        ("Unknown CMake command", r'Unknown CMake command "(?P<command>[^"]+)"',
         "{place} calls {command}(), which nothing defines.",
         "Correct the name, or include the file that defines {command} before {place}."),
        ("which is not built", r'Cannot specify (?P<what>[\w ]+) for target "(?P<target>[^"]+)" '
         r"which is not built",
         "{place} speaks of the target {target}, which does not exist there.",
         "Correct the name, or create {target} before (in Zephyr the application is `app`)."),
        ("is not an existing directory", r"given source \"(?P<folder>[^\"]+)\" which is not an "
         r"existing directory",
         "{place} adds the folder {folder}, which does not exist.",
         "Correct the path in {place}; a submodule or a module may not be checked out."),
        ("could not find requested file", r"include could not find (?:requested|load) file: "
         r"(?P<what>\S+)",
         "{place} includes {what}, which is not there.", "Correct the path in {place}."),
        ("Parse error", r"Parse error\. +(?P<what>.+?)(?: +End of file.*)?$",
         "{place} is no CMake: {what}", "Correct {place}; the call that begins there is not "
         "finished or not well formed."),
    ),
)  # fmt: skip
