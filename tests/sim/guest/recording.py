"""Records direct-drive networks with the TOSA reference model's answers: ``python -m
tests.sim.guest.recording``. The file lets the guest's tests run without torch or Vela."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FILE = Path(__file__).parent / "data" / "direct.npz"
TARGET = "ethos-u85-256"
OPTIONS = ("--separate-io-regions", "--cop-format=COP2", "--memory-mode=Sram_Only")


def record() -> None:
    import torch

    from tests.npu import compiling
    from tests.npu.tosa_graph import compile_tosa

    class Add(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y * 0.5

    class Outputs(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x * 2, torch.nn.functional.relu(x[:, :, :3])

    torch.manual_seed(15)
    two = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 3)
    )
    row = torch.randn(1, 3, 5, 7)
    modules = {
        "add": (Add(), (row, torch.randn(1, 3, 5, 7))),
        "convolutions": (two, (torch.randn(1, 3, 9, 9),)),
        "outputs": (Outputs(), (row,)),
    }
    arrays: dict[str, np.ndarray] = {}
    generator = np.random.default_rng(15)
    for name, (module, example) in modules.items():
        found = compiling.compile_module(module, example, TARGET)
        (delegate,) = found
        inputs = compiling.random_inputs(delegate.tosa, generator)
        blob = compile_tosa(delegate.tosa, TARGET, OPTIONS)
        arrays[f"{name}/blob"] = np.frombuffer(blob, np.uint8)
        for kind, values in (("in", inputs), ("out", compiling.reference(delegate.tosa, inputs))):
            for place, value in enumerate(values):
                arrays[f"{name}/{kind}{place}"] = value
    FILE.parent.mkdir(exist_ok=True)
    np.savez_compressed(FILE, **arrays)


if __name__ == "__main__":
    record()
