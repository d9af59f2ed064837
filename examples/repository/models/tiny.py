"""A small network, in the convention of ExecuTorch's aot_arm_compiler."""

import torch


class Tiny(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(8, 4),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


ModelUnderTest = Tiny().eval()
ModelInputs = (torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(2)),)
