"""A command stream as text."""

from __future__ import annotations

from harness.npu.blob import read_actions
from harness.npu.stream import disassemble
from tests.npu.assembling import U55_128, U85_256, cop1, pool, words


def test_disassembly_has_every_command() -> None:
    actions = read_actions(cop1(U55_128, words("u55", *pool())))
    text = list(disassemble(actions))
    assert text[0] == f"; ethos-u55-128, {len(actions.words)} words"
    assert any(line.endswith("POOL AVERAGE") for line in text)
    assert any("ACTIVATION_MIN" in line and line.endswith("-128") for line in text)
    assert len(text) == 1 + len(pool())


def test_modes_have_the_names_of_their_generation() -> None:
    """Mode 5 is LRELU on a U55 and nothing on a U85, which alone has CMP_EQ."""
    items = (("ELEMENTWISE", 5), ("ELEMENTWISE", 16), ("POOL", 5))

    def modes(config: int, product: str) -> list[str]:
        return [
            line.split(None, 1)[1]
            for line in disassemble(read_actions(cop1(config, words(product, *items))))
        ][1:]

    assert modes(U55_128, "u55") == ["ELEMENTWISE LRELU", "ELEMENTWISE 16", "POOL 5"]
    assert modes(U85_256, "u85") == ["ELEMENTWISE 5", "ELEMENTWISE CMP_EQ", "POOL MIN"]
