"""Both phases over the corpus models and the branching example, on every device: all equal, all gates PASS."""

from pathlib import Path

import pytest

from tests.presim_models.report import INCOMPLETE, files_of, pairs, run

pytestmark = pytest.mark.corpus


@pytest.mark.parametrize(("model", "device"), pairs())
def test_every_fifo_equals_the_oracle(model: str, device: str, tmp_path: Path, shared: Path) -> None:
    assert shared.is_dir()
    assert all(path.is_file() for path in files_of(model))
    row = run(model, device, tmp_path / "p")
    assert row.good, row
    assert bool(row.waived) == ((model, device) in INCOMPLETE)
