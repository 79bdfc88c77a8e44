"""Every stored file of the families that phase 1 covers: exact, explained, or refused for the right reason."""

from pathlib import Path

import pytest

from tests.corpus.report import CORPUS, FAMILIES, files, run

pytestmark = pytest.mark.corpus

INVALID = ("cntk_mnist.quark_xint8", "cntk_mnist.quark_s8s8_aaws")
LATER = "s8s4w"


def _models() -> list[Path]:
    return [m for family in FAMILIES for m in files(family)] if CORPUS.is_dir() else []


@pytest.mark.parametrize("model", _models(), ids=lambda m: m.stem)
def test_exact_or_rightly_refused(model: Path, tmp_path: Path, shared: Path) -> None:
    assert shared.is_dir()
    row = run(model, tmp_path / "p")
    if model.stem in INVALID:
        assert row.exit_code == 2
        assert "opset" in row.refusal
    elif LATER in model.stem:
        assert row.exit_code == 2
        assert "int4" in row.refusal
    else:
        assert row.exit_code in (0, 1)
        assert row.unexplained == 0
        assert row.elements > 0
        if model.stem in ("cntk_mnist", "digits_mlp", "digits_cnn", "mnist_resnet") or "_qcdq" in model.stem:
            assert row.verdict == "PASS", row.open_items
