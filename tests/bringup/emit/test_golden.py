import ast

import pytest

from bringup.kernels import KERNELS
from bringup.lint.design import read_design
from bringup.lint.iron import depths, drained, filled, imports, keywords, names, splits, words
from tests.bringup.emit.kinds import KINDS
from tests.bringup.emit.printing import GOLDEN, golden_of

AGAIN = "python -m tests.bringup.emit.printing --write writes them anew"


def test_every_kernel_type_has_a_design_and_golden_files() -> None:
    assert KINDS.keys() == KERNELS.keys()
    expected = {f"{kind}.{end}" for kind in KINDS for end in ("cc", "design.py.txt")}
    assert {path.name for path in GOLDEN.iterdir()} == expected


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_texts_are_the_golden_ones(kind: str) -> None:
    for name, text in golden_of(KINDS[kind]).items():
        assert text == (GOLDEN / name).read_text(encoding="utf-8"), AGAIN


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_golden_designs_keep_the_rules(kind: str) -> None:
    text = (GOLDEN / f"{kind}.design.py.txt").read_text(encoding="utf-8")
    ast.parse(text)
    file = read_design(text)
    rules = (imports, names, keywords, depths, splits, words, filled, drained)
    assert [found for rule in rules for found in rule(file)] == []
