"""The operators of ExecuTorch's portable and quantised libraries, as the wheel lists them."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from harness.system.paths import executorch_package
from tests.late import Late

torch = Late("torch")

LISTS = ("kernels/portable/functions.yaml", "kernels/quantized/quantized.yaml")


def names(path: str) -> list[str]:
    """ "aten::add.out" and so on. Without torch: pytest collects with these."""
    entries = yaml.safe_load((executorch_package() / path).read_text("utf-8"))
    found = [
        entry["func"].partition("(")[0] if "func" in entry else entry["op"] for entry in entries
    ]
    return [name if "::" in name else f"aten::{name}" for name in found]


def schemas(path: str) -> Iterator[torch._C.FunctionSchema]:
    """Of each operator in one of the wheel's lists."""
    import executorch.exir  # noqa: F401  registers dim_order_ops

    for entry in yaml.safe_load((executorch_package() / path).read_text("utf-8")):
        if "func" in entry:
            yield torch._C.parse_schema(entry["func"])
        else:
            yield aten_schema(entry["op"])


def aten_schema(name: str) -> torch._C.FunctionSchema:
    """Of "add.out", or "copy_" with no overload."""
    base, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), overload or "default")._schema


def full_name(schema: torch._C.FunctionSchema) -> str:
    """ "aten::add.out"; functions.yaml leaves aten out of some."""
    base = schema.name if "::" in schema.name else f"aten::{schema.name}"
    return f"{base}.{schema.overload_name}" if schema.overload_name else base
