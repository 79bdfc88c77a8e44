import pytest
from click.testing import CliRunner

from tests.bench import design_search
from tests.bench.design_models import MODELS
from tests.bench.design_search import main, scaled, searched


def test_every_model_has_a_row_with_tiles_interval_and_the_peers_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: MODELS[name] for name in ("mlp 64-64-64-16", "branching")}
    monkeypatch.setattr(design_search, "MODELS", few)
    monkeypatch.setattr(design_search, "scaled", lambda: scaled(((1, 1), (2, 2))))
    result = CliRunner().invoke(main, ["--plans", "2"])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert any(line.startswith("mlp") and line.split()[-1] == "3.4" for line in lines)
    assert any(line.startswith("branching") and line.split()[-1] == "24.5" for line in lines)
    assert any("98.6 %" in line for line in lines)
    assert sum("cores" in line and "%" in line for line in lines) == 2


def test_the_mixer_with_both_skips_is_not_refused() -> None:
    found = searched("mixer, both skips", "throughput", 3)
    assert found.result.best is not None
    assert found.result.best.interval_cycles < found.result.candidates[0].interval_cycles


def test_one_layer_on_nearly_all_cores_loses_nothing_to_its_supply() -> None:
    one, many = scaled(((1, 1), (37, 8)))
    assert (one.cores, many.cores) == (1, 296)
    assert many.efficiency > 0.986
    assert many.host[0] < many.host[1]
    assert many.bound.startswith("cores")
