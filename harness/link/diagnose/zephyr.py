"""Zephyr's configuration: options that Kconfig did not give their value, and, in a build directory,
the option that compiles a source, why that option is n, and the devicetree node of a device.

Sources: files of a build directory of Zephyr 4.1.0 (zephyr/.config, zephyr/kconfig/sources.txt,
zephyr/include/generated/zephyr/devicetree_generated.h), the CMake functions of
cmake/modules/extensions.cmake, what its scripts/kconfig/kconfig.py prints, and kconfiglib 14.1."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from harness.system.files import text_of

_ASSIGNED = re.compile(r"^CONFIG_(?P<name>\w+)=(?P<value>.*)$", re.MULTILINE)
_CALL = re.compile(r"(?P<command>\w+)[ \t]*\((?P<words>[^()]*(?:\([^()]*\)[^()]*)*)\)")
_DEVICE = re.compile(r"^__device_dts_ord_(?P<ordinal>\d+)$")
_HAS_NODE = re.compile(r"DT_HAS_(?P<name>\w+)_ENABLED")
_DEPENDS = re.compile(r"depends[ \t]+on\b")
_PROMPT = re.compile(r"(?:bool|tristate|string|int|hex|prompt)[ \t]+[\"']")
_ALONE = re.compile(r"\(?\s*!?\s*[A-Z][A-Z0-9_]+(?:\s*\|\|\s*[A-Z][A-Z0-9_]+)*\s*\)?")
_WHERE_SOURCES_ARE = ("kernel", "lib", "subsys", "drivers", "arch", "soc", "modules")


@dataclass(frozen=True)
class RefusedOption:
    """An option that was set to one value and got another.

    ``unmet``: its dependencies that do not hold, as Kconfig writes them; "0" stands for a missing
    module. ``needs``: for each of them that is a single option, why that option is n. ``instead``:
    the advice for an option that no configuration file can set.
    """

    symbol: str  # without CONFIG_
    wanted: str
    got: str
    defined: str  # file:line
    unmet: tuple[str, ...]
    needs: tuple[RefusedOption, ...] = ()
    instead: str = ""

    @property
    def why(self) -> str:
        where = f" ({self.defined})" if self.defined else ""
        if "0" in self.unmet:
            return f"what it needs is not in this workspace: a module is missing{where}"
        if self.unmet:
            behind = (f"; CONFIG_{n.symbol}: {n.why}" for n in self.needs if n.unmet)
            return f"it depends on {' and '.join(self.unmet)}, which is n{where}{''.join(behind)}"
        return f"its range, a choice or a comparison that it depends on forbids that{where}"

    @property
    def fix(self) -> str:
        """For an option that is set in vain."""
        without = f"Meet what CONFIG_{self.symbol} depends on, or do without it."
        beside = f"too, beside CONFIG_{self.symbol}={self.wanted}"
        return _advice(self.steps(), beside) or without

    @property
    def fix_if_unset(self) -> str:
        """For an option that no configuration file sets."""
        return _advice(self.whole(), "in prj.conf")

    def whole(self) -> Iterator[str]:
        """``steps`` and the option itself."""
        yield from self.steps()
        if not (self.instead and self.unmet):  # what meets them gives it its default
            yield self.instead or f"CONFIG_{self.symbol}=y"

    def steps(self) -> Iterator[str]:
        """What its dependencies need, the deepest first, as assignments and sentences."""
        needs = {need.symbol: need for need in self.needs}
        for term in self.unmet:
            if term == "0":
                yield (
                    f"Add the module that CONFIG_{self.symbol} belongs to ({self.defined}) to the "
                    "manifest (its project filter included) and `west update`, or name its folder "
                    "in EXTRA_ZEPHYR_MODULES."
                )
            elif re.fullmatch(r"![A-Z0-9_]+", term):
                yield f"CONFIG_{term[1:]}=n"
            elif not _OPTION.fullmatch(term):
                yield f"Set the options of `{term}` so that it holds."
            elif term in needs:
                yield from needs[term].whole()
            else:
                yield f"CONFIG_{term}=y"


def _advice(steps: Iterable[str], where: str) -> str:
    """Sentences, then the assignments in one."""
    different = tuple(dict.fromkeys(steps))
    sentences = [step for step in different if not step.startswith("CONFIG_")]
    if assignments := [step for step in different if step.startswith("CONFIG_")]:
        sentences.append(f"Set {' and '.join(assignments)} {where}.")
    return " ".join(sentences)


_OPTION = re.compile(r"[A-Z0-9_]+")
_REFUSED = re.compile(
    r"warning: (?P<symbol>\w+) \(defined at (?P<defined>[^,)]+)[^)]*\) was assigned the value "
    r"'(?P<asked>[^']*)' but got the value '(?P<got>[^']*)'\."
    r"(?: Check these unsatisfied dependencies: (?P<unmet>.+?)\.(?: See |$))?"
)


def refused_options(statements: Iterable[str]) -> tuple[RefusedOption, ...]:
    """The options that Kconfig warned about because they did not get their value."""
    options = []
    for text in statements:
        if "was assigned the value" in text and (m := _REFUSED.search(text)):
            unmet = tuple(re.findall(r"(?:^|, )(.+?) \(=\w\)", m["unmet"] or ""))
            options.append(RefusedOption(m["symbol"], m["asked"], m["got"], m["defined"], unmet))
    return tuple(options)


_MOST_FOLDERS = 20_000  # Zephyr 4.1.0 with all its modules has fewer
_ELSEWHERE = {".git", "boards", "doc", "dts", "include", "samples", "soc", "tests"}
_DEFINED = re.compile(r"^[ \t]*(?:menu)?config[ \t]+(?P<name>\w+)", re.MULTILINE)
_ALIKE, _MOST_SIMILAR = 0.8, 4


def similar_options(symbol: str, base: Path) -> tuple[str, ...]:
    """Options in the Kconfig files below ``base`` with a similar name, the most similar first:
    those with the same words and more or fewer, then those with a similar spelling. () if the
    option itself exists."""
    words = set(symbol.split("_"))
    others = {name: set(name.split("_")) for name in _names(base)}
    if symbol in others:
        return ()
    same = [n for n, o in others.items() if words <= o or (o <= words and len(o) > 1)]
    same.sort(key=lambda name: (len(words ^ others[name]), len(name)))
    alike = get_close_matches(symbol, others, _MOST_SIMILAR, _ALIKE)
    return tuple(dict.fromkeys([*same, *alike]))[:_MOST_SIMILAR]


def _names(base: Path) -> Iterator[str]:
    for number, (directory, folders, files) in enumerate(os.walk(base)):
        if number >= _MOST_FOLDERS:
            return
        folders[:] = sorted(f for f in folders if f not in _ELSEWHERE)
        for name in files:
            if name.startswith("Kconfig"):
                text = text_of(Path(directory, name))
                yield from (match["name"] for match in _DEFINED.finditer(text))


@dataclass(frozen=True)
class Gate:
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

    def gate(self, source: Path) -> Gate | None:
        """Of the options that the source depends on and that are not set: one that the application
        sets, or the outermost, because it brings the others."""
        gates = list(self._gates(source))
        requested = (gate for gate in gates if gate.option in self.requested)
        return next(requested, gates[-1] if gates else None)

    def _gates(self, source: Path) -> Iterator[Gate]:
        name = source.name
        for folder in source.parents:
            lists = folder / "CMakeLists.txt"
            if lists.is_file():
                for option, line in _conditions(text_of(lists), name):
                    if self.values.get(option) != "y":
                        yield Gate(option, lists, line)
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

    def refused_options(self) -> tuple[RefusedOption, ...]:
        """The options that were set to y and are n; Kconfig warns about them only once."""
        return tuple(
            self.refusal(name)
            for name, (value, _, _) in self.requested.items()
            if value == "y" and self.values.get(name) != "y"
        )

    def refusal(self, option: str, above: frozenset[str] = frozenset()) -> RefusedOption:
        """Why an option is n. ``above``: the options that depend on it."""
        definitions = list(self._definitions(option))
        # A configuration file sets it where one with a prompt holds; the others only add defaults.
        settable = [each for each in definitions if each.prompt]
        best = next((each for each in settable if not each.unmet), None)
        best = best or next((each for each in settable or definitions if each.unmet), None)
        if best is None:
            best = definitions[0] if definitions else _OptionDefinition("", True, ())
        known = above | {option, "0"}
        below = [t for t in best.unmet if _OPTION.fullmatch(t) and t not in known]
        needs = tuple(self.refusal(term, above | {option}) for term in below)
        instead = "" if best.prompt else self._instead(option, best.where)
        return RefusedOption(option, "y", "n", best.where, best.unmet, needs, instead)

    def _definitions(self, option: str) -> Iterator[_OptionDefinition]:
        for file, text in self._kconfig:
            for line, expressions, prompt in _definitions(text, option):
                every = (*self._around.get(file, ()), *expressions)
                unmet = tuple(dict.fromkeys(t for term in every for t in self._unmet(term)))
                module = file.parent.parent == self.base / "modules" and file.parent.name
                if module and self.values.get(_module_option(module)) != "y":
                    unmet = ("0",)
                yield _OptionDefinition(f"{_below(file, self.base)}:{line}", prompt, unmet)

    def _instead(self, option: str, where: str) -> str:
        """The advice for an option without a prompt."""
        if not (named := _HAS_NODE.fullmatch(option)):
            return f"Have CONFIG_{option} selected by another option: it has no prompt ({where})."
        named_node = re.compile(rf"^DT_COMPAT_{named['name']} := (\S+)$", re.MULTILINE)
        known = next((m for _, text in self._kconfig if (m := named_node.search(text))), None)
        node = f'compatible = "{known[1] if known else named["name"].lower()}"'
        return f"Enable a devicetree node with `{node}` (in an overlay)."

    def _unmet(self, expression: str) -> Iterator[str]:
        """The terms of ``A && !B && (C || D)`` that do not hold; ignores other forms."""
        for term in _terms(expression):
            names = re.findall(r"[A-Z][A-Z0-9_]+", term)
            set_ = any(self.values.get(name) == "y" for name in names)
            if _ALONE.fullmatch(term) and ("!" in term) == set_:
                yield term

    @cached_property
    def _kconfig(self) -> tuple[tuple[Path, str], ...]:
        """Every Kconfig file that was read."""
        listed = text_of(self.build / "zephyr" / "kconfig" / "sources.txt").split("\n")
        files = [self.base / name.strip() for name in listed if name.strip()]
        return tuple((file, text_of(file)) for file in files)

    @cached_property
    def _around(self) -> dict[Path, tuple[str, ...]]:
        """The conditions around the line with which one Kconfig file reads another."""
        around: dict[Path, tuple[str, ...]] = {}
        for file, text in self._kconfig:  # in the order in which they were read
            for _, words, blocks in _statements(text.split("\n")):
                if words[0] in ("source", "rsource") and len(words) > 1:
                    folder = file.parent if words[0] == "rsource" else self.base
                    conditions = (*around.get(file, ()), *blocks)
                    around.setdefault(
                        Path(os.path.normpath(folder / words[1].strip("\"'"))), conditions
                    )
        return around

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
        return DeviceNode(path, compatible["name"], okay, self._drivers(compatible["name"]))

    def _drivers(self, compatible: str) -> tuple[str, ...]:
        has = "DT_HAS_" + re.sub(r"\W", "_", compatible).upper() + "_ENABLED"
        options = []
        for file, text in self._kconfig:
            if has in text and file.name != "Kconfig.dts":  # Kconfig.dts defines it
                before = text[: text.index(has)]
                options += re.findall(r"^[ \t]*(?:menu)?config[ \t]+(\w+)", before, re.M)[-1:]
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


def _definitions(kconfig: str, option: str) -> Iterator[tuple[int, tuple[str, ...], bool]]:
    """Line and dependencies of each definition of an option in a Kconfig file, and whether a
    configuration file may set it."""
    lines = kconfig.replace("\\\n", " ").split("\n")
    for number, words, blocks in _statements(lines):
        if words[0] in ("config", "menuconfig") and words[1:2] == [option]:
            body = list(_body(lines[number:]))
            depends = [text.split("on", 1)[1] for text in body if _DEPENDS.match(text)]
            yield number, (*blocks, *depends), any(map(_PROMPT.match, body))


def _statements(lines: Sequence[str]) -> Iterator[tuple[int, list[str], tuple[str, ...]]]:
    """The number and words of each line of a Kconfig file except `if`, with the conditions of the
    blocks around it."""
    blocks: list[str] = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if words[:1] == ["if"] and not line[0].isspace():
            blocks.append(line.strip()[2:])
        elif words[:1] == ["endif"] and blocks:
            blocks.pop()
        elif words:
            yield number, words, tuple(blocks)


def _body(lines: Sequence[str]) -> Iterator[str]:
    """The lines of a definition, up to its help."""
    for line in lines:
        text = line.partition("#")[0].strip()
        if line[:1].strip() or text == "help":
            return
        yield text


def _terms(expression: str) -> list[str]:
    """Split at each && that is not inside parentheses."""
    terms, depth = [""], 0
    for part in re.split(r"(&&|[()])", expression):
        depth += (part == "(") - (part == ")")
        if part == "&&" and depth == 0:
            terms.append("")
        else:
            terms[-1] += part
    return [term.strip() for term in terms if term.strip()]


def _module_option(folder: str) -> str:
    return f"ZEPHYR_{re.sub(r'[^A-Za-z0-9]', '_', folder).upper()}_MODULE"


def _below(file: Path, base: Path) -> str:
    return str(file.relative_to(base)) if file.is_relative_to(base) else str(file)
