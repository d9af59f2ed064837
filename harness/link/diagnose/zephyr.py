"""A build directory of Zephyr: the option that compiles a source, why that option is n, and the
devicetree node of a device.

Sources: files of a build directory of Zephyr 4.1.0 (zephyr/.config, zephyr/kconfig/sources.txt,
zephyr/include/generated/zephyr/devicetree_generated.h), and the CMake functions of
cmake/modules/extensions.cmake."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.link import kconfig
from harness.system.files import text_of

_ASSIGNED = re.compile(r"^CONFIG_(?P<name>\w+)=(?P<value>.*)$", re.MULTILINE)
_CALL = re.compile(r"(?P<command>\w+)[ \t]*\((?P<words>[^()]*(?:\([^()]*\)[^()]*)*)\)")
_DEVICE = re.compile(r"^__device_dts_ord_(?P<ordinal>\d+)$")
_HAS_NODE = re.compile(r"DT_HAS_(?P<name>\w+)_ENABLED")
_ALONE = re.compile(r"\(?\s*!?\s*[A-Z][A-Z0-9_]+(?:\s*\|\|\s*[A-Z][A-Z0-9_]+)*\s*\)?")
_CONFIG = re.compile(r"^[ \t]*(?:menu)?config[ \t]+(\w+)", re.MULTILINE)
_NODE = re.compile(r"^\s*(?:(?P<label>\w+): )?(?P<name>[\w@,-]+) \{", re.MULTILINE)
_REG = re.compile(r"\breg = [^;]*;(?:\s*/\* in (?P<place>\S+) \*/)?")
_WHERE_SOURCES_ARE = ("kernel", "lib", "subsys", "drivers", "arch", "soc", "modules")


@dataclass(frozen=True)
class BuildCondition:
    """The option that compiles a source, and the line of CMake that decides it."""

    option: str  # without CONFIG_
    file: Path
    line: int


@dataclass(frozen=True)
class DeviceNode:
    path: str
    compatible: str | None
    okay: bool
    drivers: tuple[str, ...]  # options of drivers for it, without CONFIG_


@dataclass(frozen=True)
class _OptionDefinition:
    """One definition of an option. ``prompt``: a configuration file may set it there. ``unmet``:
    its dependencies that do not hold."""

    where: str  # file:line
    prompt: bool
    unmet: tuple[str, ...]


@dataclass(frozen=True)
class ZephyrBuild:
    build: Path
    base: Path
    application: Path | None

    @cached_property
    def values(self) -> dict[str, str]:
        text = text_of(self.build / "zephyr" / ".config")
        return {m["name"]: m["value"] for m in _ASSIGNED.finditer(text)}

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders of Zephyr's own sources."""
        return tuple(self.base / name for name in _WHERE_SOURCES_ARE)

    def gate(self, source: Path) -> BuildCondition | None:
        """An option that the source depends on and that is not set: one that the application sets,
        or the outermost, because it brings the others."""
        gates = list(self._gates(source))
        requested = (gate for gate in gates if gate.option in self.requested)
        return next(requested, gates[-1] if gates else None)

    def _gates(self, source: Path) -> Iterator[BuildCondition]:
        name = source.name
        for folder in source.parents:
            lists = folder / "CMakeLists.txt"
            if lists.is_file():
                for option, line in _conditions(text_of(lists), name):
                    if self.values.get(option) != "y":
                        yield BuildCondition(option, lists, line)
                name = folder.name
            if folder in (self.base, self.application):
                return

    @cached_property
    def requested(self) -> dict[str, tuple[str, Path, int]]:
        """Option to value, file and line, from the application's configuration files."""
        cache = cache_entries(self.build)
        listed = cache.get("CACHED_CONF_FILE") or cache.get("CONF_FILE")
        files = [Path(name) for name in listed.split(";")] if listed else []
        if not files and self.application is not None:
            files = [self.application / "prj.conf"]
        options = {}
        for file in files:
            text = text_of(file)
            for m in _ASSIGNED.finditer(text):
                options[m["name"]] = (m["value"], file, text.count("\n", 0, m.start()) + 1)
        return options

    def refused_options(self) -> tuple[kconfig.RefusedOption, ...]:
        """The options that were set to y and are n; Kconfig warns about them only once."""
        return tuple(
            self.refusal(name)
            for name, (value, _, _) in self.requested.items()
            if value == "y" and self.values.get(name) != "y"
        )

    def refusal(self, option: str, above: frozenset[str] = frozenset()) -> kconfig.RefusedOption:
        """Why an option is n. ``above``: the options that depend on it."""
        definitions = list(self._definitions(option))
        # A configuration file sets it where one with a prompt holds; the others only add defaults.
        settable = [each for each in definitions if each.prompt]
        best = next((each for each in settable if not each.unmet), None)
        best = best or next((each for each in settable or definitions if each.unmet), None)
        if best is None:
            best = definitions[0] if definitions else _OptionDefinition("", True, ())
        known = above | {option, "0"}
        below = [t for t in best.unmet if kconfig.OPTION.fullmatch(t) and t not in known]
        needs = tuple(self.refusal(term, above | {option}) for term in below)
        instead = "" if best.prompt else self._instead(option, best.where)
        return kconfig.RefusedOption(option, "y", "n", best.where, best.unmet, needs, instead)

    def _definitions(self, option: str) -> Iterator[_OptionDefinition]:
        for file, text in self._kconfig:
            for line, expressions, prompt in kconfig.definitions(text, option):
                every = (*self._around.get(file, ()), *expressions)
                unmet = tuple(dict.fromkeys(t for term in every for t in self._unmet(term)))
                module = file.parent.parent == self.base / "modules" and file.parent.name
                name = re.sub(r"[^A-Za-z0-9]", "_", module or "").upper()
                if module and self.values.get(f"ZEPHYR_{name}_MODULE") != "y":
                    unmet = ("0",)
                yield _OptionDefinition(f"{below(file, self.base)}:{line}", prompt, unmet)

    def _instead(self, option: str, where: str) -> str:
        """The advice for an option without a prompt."""
        if not (named := _HAS_NODE.fullmatch(option)):
            selecting = self._options_with(rf"^\s+select {option}\b")
            if not selecting:
                return (
                    f"Have CONFIG_{option} selected by another option: it has no prompt ({where})."
                )
            names = " or ".join(f"CONFIG_{name}=y" for name in selecting[:3])
            return f"Set {names} in prj.conf, which selects CONFIG_{option}."
        named_node = re.compile(rf"^DT_COMPAT_{named['name']} := (\S+)$", re.MULTILINE)
        known = next((m for _, text in self._kconfig if (m := named_node.search(text))), None)
        node = f'compatible = "{known[1] if known else named["name"].lower()}"'
        return f"Enable a devicetree node with `{node}` (in an overlay)."

    def _unmet(self, expression: str) -> Iterator[str]:
        """The terms of ``A && !B && (C || D)`` that do not hold; ignores other forms."""
        for term in kconfig.terms(expression):
            names = re.findall(r"[A-Z][A-Z0-9_]+", term)
            set_ = any(self.values.get(name) == "y" for name in names)
            if _ALONE.fullmatch(term) and ("!" in term) == set_:
                yield term

    @cached_property
    def _kconfig(self) -> tuple[tuple[Path, str], ...]:
        listed = text_of(self.build / "zephyr" / "kconfig" / "sources.txt").split("\n")
        files = [self.base / name.strip() for name in listed if name.strip()]
        return tuple((file, text_of(file)) for file in files)

    @cached_property
    def _around(self) -> dict[Path, tuple[str, ...]]:
        """The conditions around the line with which one Kconfig file reads another."""
        around: dict[Path, tuple[str, ...]] = {}
        for file, text in self._kconfig:  # in the order in which they were read
            for _, words, blocks in kconfig.statements(text.split("\n")):
                if words[0] in ("source", "rsource") and len(words) > 1:
                    folder = file.parent if words[0] == "rsource" else self.base
                    conditions = (*around.get(file, ()), *blocks)
                    read = os.path.normpath(folder / words[1].strip("\"'"))
                    around.setdefault(Path(read), conditions)
        return around

    def memory_node(self, region: str) -> str | None:
        """The devicetree node whose ``reg`` is this region of the linker script, with the place
        that sets it, which zephyr.dts has since 4.2: a chosen node, or that of the region's name
        (cmake/linker_script, include/zephyr/linker/devicetree_regions.h)."""
        text = text_of(self.build / "zephyr" / "zephyr.dts")
        chosen = {"RAM": "zephyr,sram", "FLASH": "zephyr,(?:code-partition|flash)"}.get(region)
        label = re.search(rf"^\s*{chosen} = &(\w+)", text, re.MULTILINE) if chosen else None
        named = re.search(rf'zephyr,memory-region = "{re.escape(region)}"', text)
        node = None
        for head in _NODE.finditer(text):
            if head["label"] == label[1] if label else named and head.end() < named.start():
                node = head
        if node is None:
            return None
        name = f"&{node['label']}" if node["label"] else node["name"]
        reg = _REG.search(text, node.end())
        return f"{name} ({reg['place']})" if reg and reg["place"] else name

    def device(self, symbol: str) -> DeviceNode | None:
        """The node of the device ``__device_dts_ord_42``."""
        named = _DEVICE.match(symbol)
        if named is None:
            return None
        generated = self.build / "zephyr" / "include" / "generated" / "zephyr"
        text = text_of(generated / "devicetree_generated.h")
        node = re.search(rf"^ \*   {named['ordinal']} +(?P<path>/\S*)$", text, re.MULTILINE)
        if node is None:
            return None
        path = node["path"]
        about = text.partition(f" * Devicetree node: {path}\n")[2].partition("Devicetree node: ")[0]
        compatible = re.search(r"\(compatible = (?P<name>[^)]+)\)", about)
        okay = "_STATUS_okay 1" in about
        if compatible is None:
            return DeviceNode(path, None, okay, ())
        has = "DT_HAS_" + re.sub(r"\W", "_", compatible["name"]).upper() + "_ENABLED"
        drivers = self._options_with(rf"(?<!config ){has}\b")  # Kconfig.dts defines it
        return DeviceNode(path, compatible["name"], okay, drivers)

    def _options_with(self, pattern: str) -> tuple[str, ...]:
        options = []
        for _, text in self._kconfig:
            for line in re.finditer(pattern, text, re.MULTILINE):
                options += _CONFIG.findall(text, 0, line.start())[-1:]
        return tuple(dict.fromkeys(options))


def cache_entries(build: Path) -> dict[str, str]:
    """The variables of CMakeCache.txt; {} without one."""
    return dict(re.findall(r"^([\w-]+):\w+=(.+)$", text_of(build / "CMakeCache.txt"), re.MULTILINE))


def zephyr_build(build: Path) -> ZephyrBuild | None:
    """None if it is not a build directory of Zephyr."""
    if not (build / "zephyr" / ".config").is_file():
        return None
    cache = cache_entries(build)
    base, package, _ = cache.get("Zephyr_DIR", "").partition("/share/zephyr-package/cmake")
    home = cache.get("CMAKE_HOME_DIRECTORY")
    if not package:
        return None
    return ZephyrBuild(build, Path(base), Path(home) if home else None)


def _conditions(lists: str, name: str) -> Iterator[tuple[str, int]]:
    """The options, with their lines, around the place where a CMakeLists.txt names a file."""
    blocks: list[tuple[str, int]] = []
    text = re.sub(r"#[^\n]*", "", lists)
    for call in _CALL.finditer(text):
        command, words = call["command"].lower(), call["words"].split()
        line = text.count("\n", 0, call.start()) + 1
        if command == "if":
            blocks.append((call["words"], line))
        elif command in ("else", "elseif") and blocks:
            blocks[-1] = ("" if command == "else" else call["words"], line)
        elif command == "endif" and blocks:
            blocks.pop()
        elif any(word == name or word.endswith(f"/{name}") for word in words):
            if command.endswith("_ifdef"):
                blocks.append((words[0], line))
            found = (re.fullmatch(r"\s*(?:DEFINED\s+)?CONFIG_(\w+)\s*", c) for c, _ in blocks)
            yield from ((m[1], at) for m, (_, at) in zip(found, blocks, strict=True) if m)
            return


def below(file: Path, base: Path) -> str:
    """Its path from there, if it is below; else its own."""
    return str(file.relative_to(base)) if file.is_relative_to(base) else str(file)
