"""Known cases of placement and depth, as a person meets them: through the placer and the command line.

Each is tried on its parts too, in `tests/presim`, by the same name.
"""

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from manifest.device import load_device
from manifest.errors import Problem, RefusedError
from presim.design import Design, Link, Tile
from presim.place import place
from tests.cases.driver import phases
from tests.presim.place.legal import require_legal
from tests.presim.place.webs import Net, array, net, pinned, web

RECIPES = (
    "MLIRAIE-3737 MLIRAIE-3392 MLIRAIE-2667 MLIRAIE-2378 MLIRAIE-3720 MLIRAIE-26"
    " IREE-1031 IREE-1254 HLS4ML-1049 FINN-1435"
)
NPU1, NPU2 = load_device("npu1"), load_device("npu2")


def refusal(design: Design, **options: Any) -> tuple[Problem, ...]:
    with pytest.raises(RefusedError) as refused:
        place(design, **options)
    return refused.value.problems


def table_of(tmp_path: Path, case: dict[str, Any], *options: object) -> dict[str, Any]:
    """The verdict of `python -m phases topology` on one case."""
    (tmp_path / "case.json").write_text(json.dumps({"case": case}))
    run = phases("topology", tmp_path / "case.json", *options)
    assert run.code == 0, run.text
    found: dict[str, Any] = json.loads(run.text.splitlines()[0])
    return found


# --- MLIRAIE-3737: tables of kernels count in the memory of their tile


@pytest.mark.parametrize(("kib", "tables", "fits"), [(62, 0, True), (58, 4096, True), (62, 4096, False)])
def test_MLIRAIE_3737_a_tile_full_of_buffers_has_no_room_for_tables(kib: int, tables: int, fits: bool) -> None:
    """A core alone on the array, so that no neighbour can take the buffer."""
    design = web([net("host", "w"), net("w", "host")], buffers={"w": kib * 1024})
    (kernel,) = design.kernels
    design = dataclasses.replace(design, kernels=(dataclasses.replace(kernel, table_bytes=tables),))
    if fits:
        assert place(design, array(1, 1)).workers[0].tile is not None
        return
    (problem,) = refusal(design, device=array(1, 1))
    assert problem.code == "PLACE-MEMORY"
    assert "4096" in str(problem)


# --- MLIRAIE-2378: four cores of one column, each with its own way from and to the host


def four_of_a_column() -> Design:
    names = [f"w{i}" for i in range(4)]
    return web([n for name in names for n in (net("host", name), net(name, "host"))])


def test_MLIRAIE_2378_host_ends_go_to_the_shims_of_other_columns() -> None:
    placed = place(four_of_a_column(), NPU1, pinned(**{f"w{i}": (i, 0) for i in range(4)}))
    require_legal(placed, NPU1)
    assert {w.tile.column for w in placed.workers if w.tile} == {0}
    assert len({end.tile for f in placed.fifos for end in (f.producer, *f.consumers) if end.kind == "shim"}) >= 2


def test_MLIRAIE_2378_with_one_column_the_channels_are_named() -> None:
    problems = refusal(four_of_a_column(), device=array(1, 4))
    text = " ".join(map(str, problems))
    assert {p.code for p in problems} <= {"PLACE-CHANNELS", "PLACE-SHIM"}
    assert "shim" in text
    assert "4" in text
    assert "2" in text


# --- MLIRAIE-3720: memory tiles by their channels


@pytest.mark.parametrize(("count", "least"), [(6, 1), (7, 2)])
def test_MLIRAIE_3720_the_seventh_fifo_goes_to_another_memory_tile(count: int, least: int) -> None:
    nets: list[Net] = []
    for i in range(count):
        shape: dict[str, Any] = {"shape": (8,), "depth": 1}
        nets += [net("host" if i < 2 else f"w{i - 1}", f"w{i}", name=f"x{i}", **shape)]
        nets += [net(f"w{i}", f"mem{i}", name=f"in{i}", **shape), net(f"mem{i}", f"v{i}", name=f"out{i}", **shape)]
        nets += [net(f"v{i}", f"v{i + 1}" if i + 1 < count else "host", name=f"y{i}", **shape)]
    links = [Link(kind="forward", sources=(f"in{i}",), targets=(f"out{i}",), tile=None) for i in range(count)]
    placed = place(web(nets, links=links, device="npu2"), NPU2)
    require_legal(placed, NPU2)
    per_tile: dict[Tile | None, int] = {}
    for link in placed.links:
        per_tile[link.tile] = per_tile.get(link.tile, 0) + 1
    assert max(per_tile.values()) <= 6
    assert len(per_tile) >= least


# --- MLIRAIE-26: columns without a way to memory


def test_MLIRAIE_26_host_transfers_use_the_columns_that_reach_memory() -> None:
    device = load_device("vc1902")
    allowed = device.shim_dma_columns.value
    assert allowed
    assert 0 not in allowed
    placed = place(web([net("host", "w"), net("w", "host")], device="vc1902"), device, pinned(w=(0, 0)))
    ends = [end.tile for f in placed.fifos for end in (f.producer, *f.consumers) if end.kind == "shim"]
    assert len(ends) == 2
    assert {tile.column for tile in ends if tile} <= set(allowed)


# --- IREE-1031: one operand from every column


@pytest.mark.parametrize(("operands", "fits"), [(2, True), (8, False)])
def test_IREE_1031_channels_are_counted_before_tiles(operands: int, fits: bool) -> None:
    cores = [f"w{c}_{r}" for c, r in itertools.product(range(8), range(4))]
    nets = [net(f"host{k}", *cores, name=f"a{k}") for k in range(operands)]
    design = web([*nets, *(net(name, "host", name=f"y{name}") for name in cores[:8])], device="npu2")
    if fits:
        require_legal(place(design, NPU2), NPU2)
        return
    text = [str(p) for p in refusal(design, device=NPU2) if p.code == "PLACE-CHANNELS"]
    on_cores = [line for line in text if "on core tile" in line and "S2MM channels" in line]
    assert len(on_cores) == len(cores)
    assert all("needs 8, the tile has 2: a0, a1" in line for line in on_cores)


# --- HLS4ML-1049: no depth above the tokens of an inference


def test_HLS4ML_1049_the_least_depth_is_at_most_the_tokens_of_one_inference(tmp_path: Path) -> None:
    tokens = 6500
    case = {
        "nodes": {
            "s": [[tokens, [["w", "skip", 1]]], [1, [["w", "main", 1]]]],
            "t": [[1, [["r", "main", 1]]], [tokens, [["r", "skip", 1]]]],
        },
        "edges": {"skip": {"depth": 2}, "main": {"depth": 2}},
    }
    found = table_of(tmp_path, case, "--max-steps", 50_000_000)
    assert (found["verdict"], found["edge"], found["least_depth"]) == ("deadlock", "skip", tokens)
    case["edges"]["skip"]["depth"] = tokens  # type: ignore[index]
    assert table_of(tmp_path, case)["verdict"] == "runs"


# --- FINN-1435: a bound that was reached says nothing


def test_FINN_1435_a_bound_that_is_reached_is_neither_good_nor_bad(tmp_path: Path) -> None:
    case = {
        "nodes": {
            "fast": [[4096 * 8, [["w", "e", 1]]]],
            "slow": [[8, [["r", "e", 4096], ["w", "f", 1]]]],
            "end": [[8, [["r", "f", 1]]]],
        },
        "edges": {"e": {"depth": 2}, "f": {"depth": 2}},
    }
    short = table_of(tmp_path, case, "--max-steps", 10_000)
    assert short["verdict"] == "inconclusive"
    assert "--max-steps" in json.dumps(short)
    assert table_of(tmp_path, case)["verdict"] == "runs"


# --- the list


@pytest.mark.parametrize("recipe", RECIPES.split())
def test_every_recipe_is_in_the_list_and_tried(recipe: str, shared: Path, root: Path) -> None:
    known = {json.loads(line)["id"] for line in (shared / "cases" / "cases.jsonl").read_text().splitlines()}
    assert recipe in known
    name = recipe.lower().replace("-", "_") + "_"
    sources = [*(root / "tests" / "presim").rglob("test_*.py"), Path(__file__)]
    tests = [line for s in sources for line in s.read_text().lower().splitlines() if line.startswith("def test_")]
    assert any(f"_{name}" in line for line in tests)
