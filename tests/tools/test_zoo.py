"""The table of other people's networks: what is listed can be made, and the page says what ran."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from tools.zoo import __main__ as zoo
from tools.zoo.__main__ import LISTED, TARGETS, networks, page

PASSED = {"verdict": "PASS", "cause": None, "instructions": 12_345_678, "seconds": 1}
LACKS = {
    "verdict": "NO_VERDICT",
    "cause": {"kind": "runner_lacks", "text": "no kernel | for x\nmore"},
    "instructions": None,
    "seconds": 2,
}


def test_there_are_as_many_networks_as_the_table_promises() -> None:
    listed = yaml.safe_load(LISTED.read_text("utf-8"))
    assert len(listed["timm"]) >= 30
    assert len(listed["transformers"]) >= 6
    assert len(listed["own"]) >= 12
    assert len(networks()) == len(set(networks()))


@pytest.mark.parametrize("name", yaml.safe_load(LISTED.read_text("utf-8"))["own"])
def test_an_own_network_is_alive_and_the_same_each_time(name: str) -> None:
    from tools.zoo.live import network

    (module, first, samples), (again, same, _) = network(name), network(name)
    outputs = [_tensors(module(*sample)) for sample in samples[:2]]
    assert all(not one.equal(two) for one, two in zip(*outputs, strict=True))
    for one, two in zip(outputs[0], _tensors(again(*same)), strict=True):
        assert one.equal(two)
    assert not module.training
    assert all(one.equal(two) for one, two in zip(first, same, strict=True))


def _tensors(value: object) -> tuple:  # type: ignore[type-arg]
    return value if isinstance(value, tuple) else (value,)


def test_the_page_counts_and_names_whose_a_cause_is() -> None:
    rows = {TARGETS[0]: {"ds_tcn": PASSED, "conv3d": LACKS}}
    text = page(rows)
    assert f"PASS: 1 of 2 on {TARGETS[0]}, 0 of 0 on" in text
    assert "| ds_tcn | PASS 12.3 |" in text
    where = f"| {TARGETS[0]}/conv3d | NO_VERDICT | runner_lacks: no kernel \\| for x |"
    assert f"{where} not looked at yet |" in text
    known = {**LACKS, "cause": {"kind": "known_defect", "text": "`view-of-channels-last`: a view"}}
    assert "| ExecuTorch's, `view-of-channels-last` |" in page({TARGETS[0]: {"conv3d": known}})


def test_a_kept_cell_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, str]] = []

    def run(target: str, model: str) -> dict[str, object]:
        ran.append((target, Path(model).stem))
        assert "network('lstm')" in Path(model).read_text()
        return PASSED

    monkeypatch.setattr(zoo, "run", run)
    monkeypatch.setattr(zoo, "KEPT", tmp_path / "zoo.json")
    monkeypatch.setattr(zoo, "PAGE", tmp_path / "zoo.md")
    words = ["--target", TARGETS[0], "--network", "lstm", "--folder", str(tmp_path / "models")]
    for more in ([], [], ["--again"]):
        zoo.main([*words, *more], standalone_mode=False)
    assert ran == [(TARGETS[0], "lstm")] * 2
    assert json.loads((tmp_path / "zoo.json").read_text())[TARGETS[0]]["lstm"] == PASSED
    assert "| lstm | PASS 12.3 |" in (tmp_path / "zoo.md").read_text()


def test_an_infrastructure_failure_is_not_a_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says nothing of the network, so it would be run again."""
    broken = {**LACKS, "verdict": "INFRA"}
    monkeypatch.setattr(zoo, "run", lambda *_: broken)
    monkeypatch.setattr(zoo, "KEPT", tmp_path / "zoo.json")
    monkeypatch.setattr(zoo, "PAGE", tmp_path / "zoo.md")
    words = ["--target", TARGETS[0], "--network", "lstm", "--folder", str(tmp_path / "models")]
    zoo.main(words, standalone_mode=False)
    assert "lstm: no kernel" in capsys.readouterr().err
    assert not (tmp_path / "zoo.json").exists()


def test_a_cortex_m_is_run_again_in_the_explicit_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the report advises; what it said in the usual layout is kept."""

    def run(_target: str, model: str) -> dict[str, object]:
        settings = Path(model).with_suffix(".yaml")
        return PASSED if settings.is_file() else LACKS

    monkeypatch.setattr(zoo, "run", run)
    monkeypatch.setattr(zoo, "KEPT", tmp_path / "zoo.json")
    monkeypatch.setattr(zoo, "PAGE", tmp_path / "zoo.md")
    words = [f"--target={t}" for t in TARGETS[:2]] + ["--network=lstm", f"--folder={tmp_path}"]
    assert CliRunner().invoke(zoo.main, words).exit_code == 0
    rows = json.loads((tmp_path / "zoo.json").read_text())
    assert rows[TARGETS[0]]["lstm"] == PASSED | {"usual": LACKS["cause"]}
    assert rows[TARGETS[1]]["lstm"] == LACKS
    assert "| lstm | PASS 12.3 explicit | NO_VERDICT |" in (tmp_path / "zoo.md").read_text()
    assert not (tmp_path / "lstm.yaml").exists()
