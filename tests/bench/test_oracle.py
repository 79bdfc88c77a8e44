from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.bench.oracle import load_feeds, main


def test_benchmark_prints_all_figures(shared: Path) -> None:
    asked = ["--models", "digits_mlp.qdq_u8s8_pc", "--models", "digits_mlp.qop_u8s8_pt", "--repeats", "1"]
    result = CliRunner().invoke(main, ["--corpus", str(shared / "corpus"), *asked, "--seconds", "0.05"])
    assert result.exit_code == 0, result.output
    assert "median oracle/onnxruntime" in result.output
    assert "over 1 models" in result.output
    assert "digits_mlp.qop_u8s8_pt: onnx.reference: NotImplementedError" in result.output


def test_what_cannot_be_imported_is_listed(shared: Path) -> None:
    result = CliRunner().invoke(main, ["--corpus", str(shared / "corpus"), "--models", "digits_mlp.qdq_s8s4w"])
    assert result.exit_code == 0
    assert "not or not wholly measured: 1" in result.output
    assert "digits_mlp.qdq_s8s4w: [" in result.output


def test_no_corpus_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--corpus", str(tmp_path)])
    assert result.exit_code == 0
    assert "nothing measured" in result.output


def test_a_file_without_feed_is_an_error(shared: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no feed for nothing"):
        load_feeds(shared / "corpus", "nothing.onnx", ["x"])
