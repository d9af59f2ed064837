"""Protects the full tier of the catalogue: each network is the one that its name says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.matrix import default_models
from harness.config.models import find_model, full_tier, small_models
from harness.export.request import ExportRequest, content_key
from tests.late import Late

torch = Late("torch")
source = Late("harness.export.child.source")

# Parameters of torchvision's models of these names; the last ones are this harness's own.
PARAMETERS = {
    "mobilenet_v2": 3_504_872,
    "mobilenet_v3_small": 2_542_856,
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "efficientnet_b0": 5_288_548,
    "squeezenet": 1_235_496,
    "shufflenet_v2": 1_366_792,
    "mnasnet": 4_383_312,
    "unet": 118_610,
    "kws_gru": 15_372,
    "kws_lstm": 20_236,
    "tcn": 10_700,
    "transformer_layer": 34_252,
    "wav2letter": 23_594_529,
    "audio_autoencoder": 33_649,
}


def test_every_network_is_counted() -> None:
    assert set(full_tier()) == set(PARAMETERS)
    assert not set(full_tier()) & set(small_models())


@pytest.mark.parametrize("name", PARAMETERS)
def test_it_has_the_parameters_of_its_paper(name: str) -> None:
    with torch.device("meta"):  # shapes alone: drawing weights takes seconds
        loaded = source.load_model(find_model(name))
    assert sum(weight.numel() for weight in loaded.module.parameters()) == PARAMETERS[name]
    assert "x".join(map(str, loaded.examples[0].shape)) in find_model(name).description
    assert loaded.module(*loaded.examples).shape[0] == 1


def test_a_changed_definition_is_another_program(tmp_path: Path) -> None:
    tcn = find_model("tcn")
    assert tcn.definitions is not None
    changed = tmp_path / tcn.definitions.name
    changed.write_text(tcn.definitions.read_text() + "# changed\n")
    keys = {
        content_key(ExportRequest(each), {}) for each in (tcn, replace(tcn, definitions=changed))
    }
    assert len(keys) == 2


def test_they_run_when_they_are_named_alone() -> None:
    """A session of pytest and a night have the small ones: one of these takes a minute."""
    assert set(default_models()) == set(small_models())
