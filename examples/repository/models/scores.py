"""A fully connected network of two layers, calibrated with inputs of its own."""

import torch


class Scores(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.hidden = torch.nn.Linear(16, 12)
        self.scores = torch.nn.Linear(12, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scores(torch.relu(self.hidden(x)))


_generator = torch.Generator().manual_seed(4)
ModelUnderTest = Scores().eval()
ModelInputs = (torch.rand(1, 16, generator=_generator),)
CalibrationInputs = [(torch.rand(1, 16, generator=_generator),) for _ in range(8)]
