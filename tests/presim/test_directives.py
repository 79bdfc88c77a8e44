"""Directives: known nodes and keys alone."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.model import Manifest
from presim.directives import MAX_BYTES, Directive, Parallelism, Placement, directives_of, read_directives
from tests.qdq_models import linear


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return linear(np.ones((16, 8), np.int8)).load().manifest


def refused(value: Any, manifest: Manifest) -> str:
    with pytest.raises(RefusedError) as caught:
        directives_of(value, manifest)
    assert all(p.code == "PLAN-DIRECTIVE" for p in caught.value.problems)
    return str(caught.value)


def test_everything_that_can_be_said(manifest: Manifest) -> None:
    value = {
        "gemm": {
            "parallelism": {"cas_num": 2, "cas_length": 8, "contract": "outer"},
            "placement": {"row": 1, "col": 7},
            "layout": "dense_kn_blocks",
            "weights": "streamed",
            "depth": 3,
            "edges": "memtile",
            "host_streams": 4,
        }
    }
    assert directives_of(value, manifest).of("gemm") == Directive(
        parallelism=Parallelism(cas_num=2, cas_length=8, contract="outer"),
        placement=Placement(row=1, col=7),
        layout="dense_kn_blocks",
        weights="streamed",
        depth=3,
        edges="memtile",
        host_streams=4,
    )


@pytest.mark.parametrize(
    ("entry", "good"),
    [
        ({"weights": "both"}, "resident, streamed"),
        ({"weights": None}, "resident, streamed"),
        ({"edges": "stream"}, "direct, memtile"),
        ({"depth": 1}, "from 2 to 63"),
        ({"depth": 64}, "from 2 to 63"),
        ({"host_streams": 0}, "from 1 to 63"),
        ({"host_streams": True}, "from 1 to 63"),
    ],
)
def test_other_values_are_refused(entry: dict[str, Any], good: str, manifest: Manifest) -> None:
    assert good in refused({"gemm": entry}, manifest)


@pytest.mark.parametrize("entry", [{"depth": 2}, {"depth": 63}, {"host_streams": 1}, {"host_streams": 63}])
def test_numbers_at_their_limits_are_taken(entry: dict[str, int], manifest: Manifest) -> None:
    ((key, value),) = entry.items()
    assert getattr(directives_of({"gemm": entry}, manifest).of("gemm"), key) == value


def test_defaults_and_ops_without_directive(manifest: Manifest) -> None:
    found = directives_of({"gemm": {"parallelism": {}}}, manifest)
    assert found.of("gemm").parallelism == Parallelism(cas_num=1, cas_length=1, contract="inner")
    assert found.of("other") == Directive()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "expected an object of node names"),
        ({"fc": {}}, "no such node"),
        ({"gemm": {"paralellism": {}}}, "layout, weights, depth, edges, host_streams; got 'paralellism'"),
        ({"gemm": {"parallelism": {"cas": 1}}}, "no such key; expected cas_num, cas_length, contract"),
        ({"gemm": {"parallelism": {"cas_length": 9}}}, "from 1 to 8; got 9"),
        ({"gemm": {"parallelism": {"cas_num": 0}}}, "an integer from 1; got 0"),
        ({"gemm": {"parallelism": {"cas_num": True}}}, "an integer from 1; got True"),
        ({"gemm": {"parallelism": {"contract": "middle"}}}, "expected inner, outer; got 'middle'"),
        ({"gemm": {"placement": {"row": 1}}}, "needs a row and a column"),
        ({"gemm": {"placement": {"row": -1, "col": 0}}}, "an integer from 0; got -1"),
        ({"gemm": {"layout": "rows"}}, "no such layout"),
        ({"gemm": {"layout": ["identity"]}}, "no such layout"),
        ({"gemm": {"layout": {}}}, "no such layout"),
        ({"gemm": 3}, "expected an object"),
    ],
)
def test_what_is_not_known_is_refused(manifest: Manifest, value: Any, words: str) -> None:
    assert words in refused(value, manifest)


def test_cascade_of_eight_is_the_longest(manifest: Manifest) -> None:
    found = directives_of({"gemm": {"parallelism": {"cas_length": 8}}}, manifest)
    assert found.of("gemm").parallelism == Parallelism(cas_length=8)


def test_all_problems_at_once(manifest: Manifest) -> None:
    text = refused({"a": {}, "gemm": {"x": 1, "y": 2}}, manifest)
    assert text.count("PLAN-DIRECTIVE") == 3


def test_nodes_of_one_op_share_a_directive() -> None:
    manifest = linear(np.ones((16, 8), np.int8)).load().manifest
    (op,) = [o for o in manifest.ops if o.name == "gemm"]
    others = [n for n in op.nodes if n != "gemm"]
    if others:
        assert "has a directive already" in refused({"gemm": {}, others[0]: {}}, manifest)


def test_files(manifest: Manifest, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps({"gemm": {"layout": "identity"}}), encoding="utf-8")
    assert read_directives(path, manifest).of("gemm").layout == "identity"
    for text, words in (("{", "no JSON"), ('{"gemm": {}, "gemm": {}}', "stands twice"), ("[" * 100_000, "no JSON")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(RefusedError, match=words):
            read_directives(path, manifest)
    path.write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(RefusedError, match="too large"):
        read_directives(path, manifest)
    with pytest.raises(RefusedError, match="cannot be read"):
        read_directives(tmp_path / "absent.json", manifest)


def test_what_is_no_file_is_refused_before_it_is_read(manifest: Manifest, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(RefusedError, match="it is no file"):
            read_directives(path, manifest)


def test_an_op_of_the_host_takes_no_directive(manifest: Manifest) -> None:
    host = replace(manifest, ops=tuple(replace(op, where="host") for op in manifest.ops))
    assert "op 'gemm' runs on the host" in refused({"gemm": {"placement": {"row": 0, "col": 99}}}, host)
