"""Lays the runner's pools out for a program: how large each is, and in which region.

A program's needs are in its ``.pte``, the available memory in the target's memory map. Most
programs share the firmware with the target's ``default_pools``. A pool that is too small gets the
next power of two, so that few firmware are built, or its exact need if the region has no more. The
NPU's memory mode decides where weights and scratch are. Buffers of the CPU alone are in SRAM if
they fit, else in DDR, where ExecuTorch's own runner always has them (its Corstone linker scripts,
``method_allocator_sec``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path

from harness.config.loading import load_target, load_targets
from harness.config.npu import DIRECT
from harness.config.target import Region, Target
from harness.core.errors import HarnessError, MalformedFile
from harness.core.verdict import ExitCode, Verdict
from harness.formats.ethosu import find_streams
from harness.formats.flatbuffer import Table
from harness.formats.pte import calls_of, element_of, plans_of
from harness.npu.blob import read_blob
from harness.npu.errors import EthosUError
from harness.system.files import read_regular

FILE, METHOD, TEMP = "file", "method", "temp"
_FAST = "fast_scratch"
_MEANING = {
    FILE: "the program and its largest input",
    METHOD: "values, instructions and planned buffers",
    TEMP: "scratch of the NPU",
    _FAST: "its fast scratch",
}
_SRAM, _DDR = "SRAM", "DDR"
# For a target that does not say, as cmake/options.cmake and ports/cortex_m have them.
_PLACES = {FILE: _DDR, METHOD: _SRAM, TEMP: _SRAM}
_SIZES = {FILE: 0x2000000, METHOD: 0x180000, TEMP: 0x40000}
_GRAIN = 0x400  # of a pool that gets what it needs and little more
_LEAST = 0x4000  # bytes of a sample's pool
_FILE_ALIGNMENT, _BUFFER_ALIGNMENT = 32, 16  # ports/*, core/arena.h


@dataclass(frozen=True)
class MemoryNeeds:
    """The bytes that a program needs in each pool of the runner."""

    file: int = 0
    method: int = 0
    temp: int = 0

    def __getitem__(self, pool: str) -> int:
        return int(getattr(self, pool))


NOTHING = MemoryNeeds()


class DoesNotFit(HarnessError):
    """``region``: lacks ``missing`` bytes; it has ``size`` bytes, and ``needed`` are those for each
    pool in it. "" for a pool that the target's file fixes. ``instead``: targets with enough
    room."""

    kind = "memory"
    verdict = Verdict.OVER_BUDGET
    exit_code = ExitCode.FAILED

    def __init__(
        self,
        target: Target,
        region: str,
        size: int,
        needed: Mapping[str, int],
        instead: Sequence[str] = (),
    ) -> None:
        self.region = region
        self.size = size
        self.needed = dict(needed)
        self.missing = sum(needed.values()) - size
        self.instead = tuple(instead)
        parts = " and ".join(f"{size:,} for {_MEANING[pool]}" for pool, size in needed.items())
        hint = "`pools` of the target's file fixes that; give it more, or take a smaller network"
        if region:
            hint = "no other memory mode of it, and no board for the same program, has the room"
        if instead:
            hint = f"with the same needs it would fit {', '.join(instead)}"
        place = region or f"the {next(iter(needed))} pool of its file"
        super().__init__(
            f"the program does not fit {target.name}: {place} has {size:,} bytes, "
            f"and it needs {parts}, {self.missing:,} too many",
            hint=hint,
        )


def memory_needs(pte: Path, target: Target) -> MemoryNeeds:
    """The needs of a ``.pte`` in the runner's pools on a target, counted as the runner allocates.
    For a file that violates the format, its size alone: the runner reports the damage."""
    content = read_regular(pte)
    size = _aligned(len(content), _FILE_ALIGNMENT)
    try:
        plan = plans_of(content)[0]
        tensors = [_tensor_bytes(plan.items("values")[index]) for index in plan.items("inputs")]
        scratch = (_temp_bytes(content[start:end], target) for start, end in find_streams(content))
        return MemoryNeeds(
            file=size + max(tensors, default=0),
            method=sum(_method_bytes(plan, _HOSTED if target.port in DIRECT else _BARE_METAL)),
            temp=max(scratch, default=0),
        )
    except (MalformedFile, EthosUError, IndexError):
        return MemoryNeeds(file=size)


# Bytes of the runner's structures with pointers of four bytes, and of eight (core/value.h, method.h
# and backend.h): a value, a pointer, an instruction with its ticks, a delegate with what its
# backend keeps, a compile specification, a buffer.
_BARE_METAL, _HOSTED = (32, 4, 24 + 8, 12 + 64, 12, 8), (56, 8, 40 + 8, 24 + 512, 24, 16)


def _method_bytes(plan: Table, sizes: Sequence[int]) -> tuple[int, int]:
    """The structures and the planned buffers, as core/method_loader.cpp places them."""
    values = [value.get("val") for value in plan.items("values")]
    lists = ("IntList", "TensorList", "OptionalTensorList")
    pointers = len(plan.items("inputs")) + len(plan.items("outputs"))
    pointers += sum(len(v.items("items")) for v in values if v is not None and v.name in lists)
    calls = calls_of(plan)
    for call in filter(None, calls):
        with_args = call.name in ("KernelCall", "DelegateCall")
        pointers += len(call.items("args")) if with_args else 2
    delegates = plan.items("delegates")
    specs = sum(len(delegate.items("compile_specs")) for delegate in delegates)
    buffers = list(plan.items("non_const_buffer_sizes"))[1:]  # entry 0 is reserved
    counts = (len(values), pointers, len(calls), len(delegates), specs, len(buffers))
    loaded = sum(count * size for count, size in zip(counts, sizes, strict=True))
    planned = sum(_aligned(size, _BUFFER_ALIGNMENT) for size in buffers)
    return loaded, planned + _BUFFER_ALIGNMENT


def zephyr_pool_sizes(pte: Path, target: Target) -> dict[str, int]:
    """Bytes that ExecuTorch's samples for Zephyr need for a program: one pool for the planned
    buffers, the inputs and the runtime's structures, which are at most four times the bundled
    runner's; one for the scratch of the NPU. Coarse, because everything is compiled anew for other
    sizes. Raises MalformedFile."""
    content = read_regular(pte)
    plan = plans_of(content)[0]
    loaded, planned = _method_bytes(plan, _BARE_METAL)
    tensors = [_tensor_bytes(plan.items("values")[index]) for index in plan.items("inputs")]
    inputs = sum(_aligned(size, _BUFFER_ALIGNMENT) for size in tensors)
    needs = {METHOD: 4 * loaded + planned + inputs, TEMP: memory_needs(pte, target).temp}
    padded = {pool: size + _GRAIN for pool, size in needs.items()}
    return {p: _aligned(n, max(_LEAST, 1 << n.bit_length() >> 3)) for p, n in padded.items()}


def _tensor_bytes(value: Table) -> int:
    tensor = value.get("val")
    if tensor is None or tensor.name != "Tensor":
        return 0
    elements: int = prod(tensor.items("sizes"))
    return elements * element_of(tensor)[0]


def _temp_bytes(stream: bytes, target: Target) -> int:
    """The scratch of a delegate. A Linux driver provides that; then the largest output, which is
    copied to another layout."""
    blob = read_blob(stream)
    if target.direct_drive:
        return max((tensor.size for tensor in blob.outputs), default=0)
    return blob.scratch_size


def pool_options(target: Target, needs: MemoryNeeds = NOTHING) -> dict[str, str]:
    """The runner's CMake options that give every pool its size, and its region where that is not
    the usual one. Raises DoesNotFit."""
    for pool, size in target.pools.items():
        if needs[pool] > size:
            raise DoesNotFit(target, "", size, {pool: needs[pool]})
    *_, (places, sizes) = _layouts(target, needs)
    region = _overfull(target, places, sizes)
    if region is not None:
        there = {pool: sizes[pool] for pool, place in places.items() if place == region.name}
        if taken := _taken(target, region.name):
            there[_FAST] = taken
        raise DoesNotFit(target, region.name, region.size, there, _with_room(target, needs))
    usual = _usual_places(target)
    return {
        **{_size_option(pool): str(size) for pool, size in sizes.items()},
        **{_place_option(pool): at for pool, at in places.items() if at != usual[pool]},
    }


def _layouts(target: Target, needs: MemoryNeeds) -> Iterator[tuple[dict[str, str], dict[str, int]]]:
    """Region and bytes of each pool, up to the first that the target has room for."""
    placements = _placements(target, _usual_places(target))
    for places, sizes in product(placements, _sizings(target, needs)):
        yield places, sizes
        if _overfull(target, places, sizes) is None:
            return


def has_room(options: Mapping[str, str], needs: MemoryNeeds) -> bool:
    """Whether the pools that these CMake options of a firmware name are large enough."""
    named = {pool: options.get(_size_option(pool)) for pool in _SIZES}
    return all(size is None or needs[pool] <= int(size) for pool, size in named.items())


def _size_option(pool: str) -> str:
    return f"HIL_{pool.upper()}_POOL_BYTES"


def _place_option(pool: str) -> str:
    return f"HIL_{pool.upper()}_POOL_PLACE"


def _aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _usual_places(target: Target) -> dict[str, str]:
    """The region of each pool; nothing where an operating system places them."""
    if not target.memory:
        return {}
    return {pool: target.cmake.get(_place_option(pool), _PLACES[pool]) for pool in _PLACES}


def _placements(target: Target, usual: dict[str, str]) -> Iterator[dict[str, str]]:
    """The best first. Only what the CPU alone touches moves, and not where the target's file says
    its place."""
    yield usual
    if _DDR not in {region.name for region in target.memory}:
        return
    moved = usual
    for pool in (METHOD, TEMP):
        if (pool == METHOD) if target.npu else (_place_option(pool) not in target.cmake):
            moved = {**moved, pool: _DDR}
            yield moved


def _sizings(target: Target, needs: MemoryNeeds) -> Iterator[dict[str, int]]:
    """Yields bytes by pool: first sizes that programs share, then the smallest that suffice."""
    shared = {
        pool: size if needs[pool] <= size else 1 << (needs[pool] - 1).bit_length()
        for pool, size in {**_SIZES, **target.default_pools}.items()
    }
    yield {**shared, **target.pools}
    exact = {pool: _aligned(max(needs[pool], 1), _GRAIN) for pool in _SIZES}
    yield {**exact, **target.pools}


def _overfull(target: Target, places: Mapping[str, str], sizes: Mapping[str, int]) -> Region | None:

    def missing(region: Region) -> int:
        used = sum(sizes[pool] for pool, place in places.items() if place == region.name)
        return used + _taken(target, region.name) - region.size

    worst = max(target.memory, key=missing, default=None)
    return worst if worst is not None and missing(worst) > 0 else None


def _taken(target: Target, region: str) -> int:
    return target.npu.mode.fast_scratch if target.npu and region == _SRAM else 0


def _with_room(target: Target, needs: MemoryNeeds) -> list[str]:
    """Memory modes of the target, or else boards with the same NPU or program, by name."""
    modes = () if target.npu is None else target.npu.memory_modes
    others = [load_target(f"{target.file}@{mode}") for mode in modes]
    found = [other.name for other in others if _fits(other, needs)]
    return found or [t.name for t in load_targets() if _is_alike(t, target) and _fits(t, needs)]


def _is_alike(other: Target, target: Target) -> bool:
    if other.port in ("host", "zephyr"):  # no board, or Zephyr's memory map decides
        return False
    if other.npu is None or target.npu is None:
        return other.compile_target == target.compile_target
    return (other.npu.product, other.npu.macs) == (target.npu.product, target.npu.macs)


def _fits(target: Target, needs: MemoryNeeds) -> bool:
    *_, (places, sizes) = _layouts(target, needs)
    fixed = all(needs[pool] <= size for pool, size in target.pools.items())
    return fixed and _overfull(target, places, sizes) is None
