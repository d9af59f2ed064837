"""Draws calls of an operator from its schema: an argument by its type and name.

Where only some combinations of arguments make a valid call, a hint of ``portable_hints`` draws
those. What the outputs are is asked of torch; some are drawn otherwise, so that the refusals are
tried, too.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.kernels.portable_program import Call, Given, Made
from tests.kernels.portable_schemas import full_name
from tests.late import Late

torch = Late("torch")


def element_types() -> list[torch.dtype]:
    """The portable library's, the usual ones more often."""
    return [
        *[torch.float32] * 5,
        *[torch.float64, torch.float16, torch.bfloat16],
        *[torch.int8, torch.uint8, torch.int16, torch.int32, torch.int32],
        *[torch.int64, torch.int64, torch.bool],
    ]


def plain_order(rank: int) -> tuple[int, ...]:
    return tuple(range(rank))


def inner_order(rank: int) -> tuple[int, ...]:
    """Channels last."""
    return (0, *range(2, rank), 1)


class Draw:
    """A seeded source of arguments. ``wild`` is how often something is not as it should be."""

    def __init__(self, seed: int, wild: float = 0.06) -> None:
        self.random = random.Random(seed)
        self.torch = torch.Generator().manual_seed(seed)
        self.wild = wild
        self.whole = False  # floats are small whole numbers
        self.inner: bool | None = False  # images are channels-last; None: whatever is drawn
        self.typed = False  # outputs have the right element types
        self.begin()

    def begin(self, *, whole: bool = False) -> None:
        """A new call."""
        self.whole = whole
        self.typed = False
        self.inner = self.chance(0.2)
        self.dtype = self.random.choice(element_types())

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def is_wild(self) -> bool:
        return self.chance(self.wild)

    def between(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def shape(self, low: int = 0, high: int = 5) -> tuple[int, ...]:
        rank = self.random.choice([r for r in (0, 1, 2, 2, 3, 3, 4, 4, 4, 5) if low <= r <= high])
        sizes = [0] + [1] * 3 + [2, 3, 4, 5] * 4 if not self.whole else [1, 2, 3, 4, 5]
        return tuple(self.random.choice(sizes) for _ in range(rank))

    def floats(self) -> torch.dtype:
        return self.random.choice(
            [torch.float32] * 4 + [torch.float64, torch.float16, torch.bfloat16]
        )

    def wholes(self) -> torch.dtype:
        return self.random.choice([torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])

    def values(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        if dtype == torch.bool:
            return torch.randint(0, 2, tuple(shape), generator=self.torch).to(torch.bool)
        if not dtype.is_floating_point:
            low, high = (0, 12) if dtype == torch.uint8 else (-9, 10)
            if self.chance(0.15) and not self.whole:
                low, high = (0, 256) if dtype == torch.uint8 else (-128, 128)
            return torch.randint(low, high, tuple(shape), generator=self.torch).to(dtype)
        if self.whole or self.chance(0.3):
            return torch.randint(-9, 10, tuple(shape), generator=self.torch).to(dtype)
        scale = self.random.choice([0.1, 1.0, 1.0, 3.0, 30.0])
        drawn = torch.randn(tuple(shape), generator=self.torch, dtype=torch.float64) * scale
        drawn = drawn.to(dtype)
        if self.chance(0.15):
            special = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 0.5, -0.5])
            flat = drawn.view(-1)
            count = min(len(flat), len(special))
            flat[:count] = special[:count].to(dtype)
        return drawn

    def order(self, rank: int) -> tuple[int, ...]:
        if self.inner is None:
            return plain_order(rank)
        inner = self.inner != self.chance(self.wild / 4)
        return inner_order(rank) if inner and rank in (4, 5) else plain_order(rank)

    def tensor(self, shape: Sequence[int], dtype: torch.dtype | None = None) -> Given:
        kind = self.dtype if dtype is None else dtype
        return Given(self.values(shape, kind), self.order(len(shape)))

    def plain(self, tensor: torch.Tensor) -> Given:
        return Given(tensor, plain_order(tensor.dim()))

    def index(self, shape: Sequence[int], limit: int, *, negative: bool = False) -> Given:
        """Places of a dimension, int64 most often; one beyond it when it is wild."""
        low = -limit if negative else 0
        drawn = torch.randint(low, max(limit, low + 1), tuple(shape), generator=self.torch)
        if self.is_wild() and drawn.numel():
            drawn.view(-1)[-1] = self.random.choice([limit, -limit - 1])
        kind = torch.int32 if self.chance(0.15) else torch.int64
        return self.plain(drawn.to(kind))

    def broadcast(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to another one, as a rule."""
        if self.chance(0.45):
            return tuple(shape)
        own = [1 if self.chance(0.4) else size for size in shape]
        own = own[self.between(0, len(own)) if self.chance(0.4) else 0 :]
        if self.is_wild() and own:
            own[-1] += 1
        return tuple(own)

    def dim(self, rank: int) -> int:
        count = max(rank, 1)
        if self.is_wild():
            return self.random.choice([count, -count - 1])
        return self.between(-count, count - 1)

    def dims(self, rank: int) -> list[int]:
        count = max(rank, 1)
        picked = self.random.sample(range(count), self.between(0 if self.chance(0.2) else 1, count))
        if self.is_wild():
            picked.append(picked[0] if picked else count)
        return [dim - count if self.chance(0.3) else dim for dim in picked]

    def number(self) -> bool | int | float:
        kind = self.random.random()
        if kind < 0.05:
            return self.chance(0.5)
        if kind < 0.55:
            return self.between(-9, 9)
        if self.is_wild():
            return self.random.choice([300, -1000, 1e30, 70000.0])
        return self.random.choice([0.5, -0.5, 1.0, 2.0, -3.0, 0.1, 2.75, 4.0])

    def any_dtype(self) -> torch.dtype:
        return self.random.choice(element_types())


def argument(draw: Draw, shape: Sequence[int], name: str, kind: str, default: Any) -> Any:
    """By its type; numbers with a meaning of their own by their name."""
    optional = kind.startswith("Optional[")
    inner = kind[9:-1] if optional else kind
    if optional and draw.chance(0.3):
        return None
    if inner == "Tensor":
        dtype = draw.dtype if draw.chance(0.7) else draw.any_dtype()
        return draw.tensor(draw.broadcast(shape), dtype)
    if name in ("dtype", "out_dtype"):
        return draw.any_dtype() if draw.chance(0.5) else None
    if name == "memory_format":
        return draw.random.choice([0, 0, 0, 1, 2]) if draw.is_wild() else 0
    if name in ("non_blocking", "implicit", "half_to_float", "sparse_grad", "sparse"):
        return draw.is_wild()
    if name == "alpha":
        return draw.random.choice([1, 1, 1, 2, -1, 0, 1.0, 0.5, True])
    if inner == "bool":
        return draw.chance(0.5)
    if inner == "int":
        return draw.dim(len(shape)) if "dim" in name else draw.between(-3, 3)
    if inner == "List[int]":
        return draw.dims(len(shape)) if "dim" in name else [draw.between(0, 3) for _ in shape]
    if inner == "number":
        return draw.number()
    if inner == "float":
        return draw.random.choice([0.0, 0.1, 1.0, 2.0])
    assert default is not None or optional, f"{name}: nothing draws a {kind}"
    return default


def draw_call(draw: Draw, schema: torch._C.FunctionSchema, hint: Any) -> Call:
    """One call. ``hint`` draws some of its arguments by name, and outputs where torch is not to be
    asked."""
    hinted = hint(draw) if hint is not None else {}
    base = hinted.pop("shape", None) or draw.shape()
    given: list[Any] = []
    first: Given | None = None
    for arg in schema.arguments:
        if arg.is_out:
            given.append(None)
            continue
        kind = str(arg.type)
        if arg.name in hinted:
            value = hinted[arg.name]
        elif kind == "Tensor" and first is None:
            value = draw.tensor(base)
        else:
            value = argument(draw, base, arg.name, kind, arg.default_value)
        if isinstance(value, Given) and first is None:
            first = value
        given.append(value)
    written = tuple(
        i
        for i, arg in enumerate(schema.arguments)
        if not arg.is_out
        and arg.alias_info is not None
        and arg.alias_info.is_write
        and schema.name.endswith("_")
    )
    if not written:
        place_outputs(draw, schema, given, first, hinted)
    kinds = tuple(str(arg.type) for arg in schema.arguments)
    return Call(full_name(schema), tuple(given), kinds, written)


def place_outputs(
    draw: Draw,
    schema: torch._C.FunctionSchema,
    given: list[Any],
    first: Given | None,
    hinted: dict[str, Any],
) -> None:
    """Fills in the outputs: as torch would make them, or as a hint says."""
    outs = [i for i, arg in enumerate(schema.arguments) if arg.is_out]
    preferred = first.tensor.dtype if first is not None else draw.dtype
    asked = None
    if "placed" not in hinted and not all(schema.arguments[i].name in hinted for i in outs):
        asked = asked_of_torch(draw, schema, given, outs, preferred)
    if "placed" in hinted:
        shape, kind, order = hinted["placed"]
        given[outs[0]] = Made(tuple(shape), kind, tuple(order))
        return
    for k, i in enumerate(outs):
        name = schema.arguments[i].name
        if name in hinted:
            made = hinted[name]
        elif asked is None:
            shape = tuple(first.tensor.shape) if first is not None else draw.shape()
            made = (shape, preferred)
        else:
            made = asked[k]
        if str(schema.arguments[i].type) == "List[Tensor]":
            given[i] = [output(draw, piece, first) for piece in made]
        else:
            given[i] = output(draw, made, first)


def output(draw: Draw, made: tuple[Sequence[int], torch.dtype], first: Given | None) -> Made:
    shape, dtype = list(made[0]), made[1]
    if draw.chance(draw.wild / 2) and not draw.typed:
        dtype = draw.any_dtype()
    if draw.chance(draw.wild / 2):
        if shape and draw.chance(0.5):
            shape[draw.between(0, len(shape) - 1)] += 1
        else:
            shape.append(1)
    order = draw.order(len(shape))
    if first is not None and len(first.order) == len(shape) and not draw.is_wild():
        order = first.order
    return Made(tuple(shape), dtype, order)


def asked_of_torch(
    draw: Draw,
    schema: torch._C.FunctionSchema,
    given: Sequence[Any],
    outs: Sequence[int],
    preferred: torch.dtype,
) -> list[Any] | None:
    """Shape and element type of each output; None for a call that torch refuses."""
    base = getattr(torch.ops, full_name(schema).partition("::")[0])
    name = schema.name.partition("::")[2] or schema.name
    operator = getattr(getattr(base, name), schema.overload_name or "default")
    arguments = [plain_argument(value) for value in given]
    kinds = [preferred, torch.float32, torch.bool, torch.int64, torch.float64]
    if draw.chance(0.2):
        kinds.insert(0, draw.any_dtype())
    kinds = [value for value in given if isinstance(value, torch.dtype)] or kinds
    for kind in dict.fromkeys(kinds):
        tensors = [torch.empty(0, dtype=kind) for _ in outs]
        for k, i in enumerate(outs):
            if k > 0 and schema.arguments[i].name in ("max_values", "min_indices", "indices"):
                tensors[k] = torch.empty(0, dtype=torch.int64)
            elif k == 1 and schema.name.endswith("dropout"):
                tensors[k] = torch.empty(0, dtype=torch.bool)
            arguments[i] = tensors[k]
        positional = [
            a for a, s in zip(arguments, schema.arguments, strict=True) if not s.kwarg_only
        ]
        named = {
            s.name: a for a, s in zip(arguments, schema.arguments, strict=True) if s.kwarg_only
        }
        try:
            operator(*positional, **named)
        except Exception:  # torch raises what it likes
            continue
        return [(tuple(t.shape), t.dtype) for t in tensors]
    return None


def plain_argument(value: Any) -> Any:
    if isinstance(value, Given):
        return value.tensor
    if isinstance(value, list):
        return [plain_argument(item) for item in value]
    return value
