from click.testing import CliRunner

from tests.bench.presim import main


def test_benchmark_prints_operations_per_second_and_seconds_by_model() -> None:
    result = CliRunner().invoke(main, ["--repeats", "1", "--objects", "50", "--models", "branching"])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert sum("operations" in line and "per second" in line for line in lines) == 4
    assert any(line.startswith("aim 300,000 per second with all tracking on: ") for line in lines)
    assert any("plan and place" in line and "simulate" in line and line.startswith("branching") for line in lines)
