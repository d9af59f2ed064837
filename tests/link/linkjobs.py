"""Random small link jobs, written to disk, linked by the real linker and by the model."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.formats.archive import write_archive
from harness.link.model.resolution import (
    ADDRESSES,
    SIZES,
    Archive,
    Assign,
    Group,
    Item,
    LinkJob,
    ModelSymbol,
    Prediction,
    Unit,
    predict,
)
from harness.link.smaller.candidate import NewSymbol, write_object

LINKER = "arm-none-eabi-ld"
_STATES = ("undef", "undef", "undef", "undefweak", "def", "def", "defweak", "common")


@dataclass(frozen=True)
class Outcome:
    """What decides a link; the model and the linker must give the same."""

    links: bool
    members: tuple[str, ...]
    undefined: tuple[str, ...]
    duplicates: tuple[str, ...]


@dataclass(frozen=True)
class RandomJob:
    job: LinkJob
    argv: tuple[str, ...]


def random_job(rng: random.Random, directory: Path) -> RandomJob:
    """Write the files of a job; few symbol names, so that everything collides with everything."""
    wrap = frozenset(rng.sample(["s0", "s1", "s2"], rng.choice([0, 0, 0, 1, 2])))
    names = [f"s{n}" for n in range(rng.randint(2, 10))]
    if wrap:
        names += [f"{p}{w}" for w in sorted(wrap) for p in ("__wrap_", "__real_")]
    builder = _Builder(rng, directory, names)
    first = builder.whole_script() if rng.random() < 0.15 else []
    items = [*first, *builder.items(depth=0)]
    undefined = tuple(rng.sample(names, rng.choice([0, 0, 0, 1, 2])))
    options = [f"--wrap={w}" for w in sorted(wrap)] + [f"--undefined={u}" for u in undefined]
    argv = (*options, *builder.argv)
    return RandomJob(LinkJob(tuple(items), undefined, wrap), argv)


class _Builder:
    def __init__(self, rng: random.Random, directory: Path, names: list[str]) -> None:
        self.rng, self.directory, self.names = rng, directory, names
        self.count = 0
        self.argv: list[str] = []

    def unit(self, name: str, chances: tuple[str, ...] = _STATES) -> tuple[Unit, bytes]:
        rng = self.rng
        chosen = rng.sample(self.names, rng.randint(0, min(4, len(self.names))))
        symbols = [
            NewSymbol(n, rng.choice(chances), rng.random() < 0.5, rng.random() < 0.85)
            for n in chosen
        ]
        model = tuple(
            ModelSymbol(s.name, s.state, s.function and s.state != "common", s.used)
            for s in symbols
        )
        return Unit(name, model), write_object(symbols)

    def items(self, depth: int) -> list[Item]:
        found: list[Item] = [self._object([])] if depth == 0 else []  # ld wants an input
        for _ in range(self.rng.randint(1, 5 if depth == 0 else 3)):
            kind = self.rng.choices(
                ["object", "archive", "whole", "group", "defsym", "again", "script"],
                [4, 5, 1, 1.5 if depth == 0 else 0, 0.6, 0.5, 0.5],
            )[0]
            item = getattr(self, f"_{kind}")(found)
            if item is not None:
                found.append(item)
        return found

    def _object(self, _: list[Item]) -> Item:
        self.count += 1
        name = f"o{self.count}.o"
        unit, content = self.unit(name)
        (self.directory / name).write_bytes(content)
        self.argv.append(name)
        return unit

    def _new_archive(self, whole: bool) -> Archive:
        self.count += 1
        name = f"lib{self.count}.a"
        made = [self.unit(f"m{n}.o") for n in range(self.rng.randint(1, 5))]
        parts = [
            (u.name, content, [s.name for s in u.symbols if not s.state.startswith("undef")])
            for u, content in made
        ]
        write_archive(self.directory / name, parts)
        return Archive(name, tuple(u for u, _ in made), whole)

    def _archive(self, _: list[Item]) -> Item:
        archive = self._new_archive(whole=False)
        self.argv.append(archive.name)
        return archive

    def _whole(self, _: list[Item]) -> Item:
        archive = self._new_archive(whole=True)
        self.argv += ["--whole-archive", archive.name, "--no-whole-archive"]
        return archive

    def _group(self, _: list[Item]) -> Item:
        self.argv.append("--start-group")
        items = self.items(depth=1)
        self.argv.append("--end-group")
        return Group(tuple(items))

    def _again(self, found: list[Item]) -> Item | None:
        """An archive that was on the line before."""
        earlier = [i for i in found if isinstance(i, Archive) and not i.whole]
        if not earlier:
            return None
        archive = self.rng.choice(earlier)
        self.argv.append(archive.name)
        return archive

    def _value(self, name: str, plain: Sequence[str]) -> tuple[str, tuple[str, ...], int]:
        """A value for ``name``: its text, the symbols in it, and what of the layout it needs."""
        others = [n for n in self.names if n != name]
        kind = self.rng.choices(["plain", "symbol", "sum", "layout", "both"], [4, 3, 1, 2, 1])[0]
        symbols = tuple(self.rng.sample(others, min(len(others), 1 + (kind == "sum"))))
        size = self.rng.choice(["SIZEOF(.text)", "ADDR(.data)", "LOADADDR(.text) + 4",
                                "ALIGNOF(.data)"])  # fmt: skip
        layout = ADDRESSES if "ADDR" in size else SIZES
        if kind == "plain":
            return self.rng.choice(plain), (), 0
        if kind == "layout":
            return size, (), layout
        if kind == "both":
            return f"{size} + {symbols[0]}", symbols[:1], layout
        return " + ".join((*symbols, "4")), symbols, 0

    def _defsym(self, _: list[Item]) -> Item:
        name = self.rng.choice(self.names)
        text, symbols, layout = self._value(name, ["0x1000"])
        self.argv += ["--defsym", f"{name}={text}"]
        return Assign(name, symbols, layout=layout)

    def _script(self, _: list[Item]) -> Item:
        """A linker script among the inputs, as -l files can be; it augments the default one."""
        self.count += 1
        name, script = self.rng.choice(self.names), f"script{self.count}.ld"
        provide = self.rng.random() < 0.5
        value, symbols, layout = self._value(name, [". + 4", "8192"])
        text = f"PROVIDE({name} = {value});" if provide else f"{name} = {value};"
        (self.directory / script).write_text(text + "\n")
        self.argv.append(script)
        return Assign(name, symbols, provide, layout)

    def whole_script(self) -> list[Item]:
        """A linker script of its own (-T), with symbols between and inside its sections."""
        names = self.rng.sample(self.names, min(3, len(self.names)))
        provide = [self.rng.random() < 0.4 for _ in names]
        values = [self._value(n, ["."]) for n in names]
        said = [
            f"PROVIDE({n} = {v[0]});" if p else f"{n} = {v[0]};"
            for n, v, p in zip(names, values, provide, strict=True)
        ]
        said += [""] * (3 - len(said))
        (self.directory / "whole.ld").write_text(
            f"SECTIONS {{ .text : {{ *(.text*) {said[0]} }} {said[1]} .data : {{ *(.data*) }}"
            f" .bss : {{ *(.bss*) *(COMMON) }} {said[2]} }}\n"
        )
        self.argv += ["-T", "whole.ld"]
        return [Assign(n, v[1], p, v[2]) for n, v, p in zip(names, values, provide, strict=True)]


def linked(argv: tuple[str, ...], directory: Path) -> Outcome:
    """What the linker says and does."""
    done = subprocess.run(
        [LINKER, "-e", "0", "-t", "-t", *argv, "-o", "out.elf"],
        cwd=directory, capture_output=True, text=True, check=False,
        env={"LC_ALL": "C", "PATH": "/usr/bin"},
    )  # fmt: skip
    said = done.stderr
    if "referenced in expression" in said:  # ld stops at once and says nothing of other symbols
        said = re.sub(r"undefined reference to .*", "", said)
    # "(lib1.a)m0.o" up to binutils 2.40, "lib1.a(m0.o)" after it
    traced = re.findall(r"^\(?(lib\d+\.a)[()](m\d+\.o)\)?$", done.stdout, re.MULTILINE)
    members = [f"{archive}({member})" for archive, member in traced]
    return Outcome(
        done.returncode == 0,
        tuple(sorted(members)),
        tuple(sorted(set(re.findall(r"undefined reference to `([^']+)'", said)))),
        tuple(sorted(set(re.findall(r"(?<!warning: )multiple definition of `([^']+)'", said)))),
    )


def modelled(job: LinkJob) -> Outcome:
    prediction: Prediction = predict(job)
    return Outcome(
        prediction.links,
        tuple(sorted(f"{p.archive}({p.member})" for p in prediction.pulled)),
        () if prediction.unresolved_values else tuple(sorted(prediction.undefined)),
        tuple(sorted(prediction.duplicates)),
    )
