"""One suite for every row of `BACKENDS`: what the engine relies on, whatever is behind it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bringup.backends import BACKENDS, BackendOptions, HostBackend, XrtBackend, backend_of
from bringup.model import Backend, DeviceIdentity, Job, Unavailable
from manifest.errors import RefusedError
from manifest.io import sha256_hex
from tests.bringup.backends import fake_pyxrt
from tests.bringup.backends.folders import MOVE, Lowered, equal, inputs, job_in, lowered, write_build, write_folder
from tests.bringup.execute.compiled import move_design

NAMES = tuple(BACKENDS)


@dataclass
class Case:
    """A backend with a job that it can run."""

    backend: Backend
    job: Job
    spoil: Callable[[], object]


def _host(root: Path, work: Path) -> Case:
    write_folder(root)
    backend = HostBackend(
        "npu2", BackendOptions(work=work, schedules=1), lower=lambda *_: Lowered(lowered(replace(move_design())))
    )
    return Case(backend, job_in(root), lambda: write_folder(root, kernel=MOVE.replace("y[i] = x[i]", "y[i] = x[0]")))


def _xrt(root: Path) -> Case:
    write_folder(root)
    write_build(root)

    def spoil() -> None:
        fake_pyxrt.BOARD.compute = lambda data: data[1].fill(0)

    return Case(XrtBackend("npu2", BackendOptions()), job_in(root), spoil)


def _replay(root: Path, work: Path) -> Case:
    case = _xrt(root)
    XrtBackend("npu2", BackendOptions(record=work)).run(case.job, inputs())

    def spoil() -> None:
        path = work / "d0" / "000_000.npy"
        path.write_bytes(path.read_bytes()[:-1] + b"\x01")

    return Case(backend_of("replay", device="npu2", options=BackendOptions(recordings=work)), case.job, spoil)


@pytest.fixture(params=NAMES)
def case(request: pytest.FixtureRequest, tmp_path: Path, board: fake_pyxrt.Board) -> Iterator[Case]:
    del board
    makers = {
        "host": lambda: _host(tmp_path / "g", tmp_path / "w"),
        "xrt": lambda: _xrt(tmp_path / "g"),
        "replay": lambda: _replay(tmp_path / "g", tmp_path / "w"),
    }
    made = makers[request.param]()
    yield made
    made.backend.close()  # type: ignore[attr-defined]


def test_a_row_has_the_name_of_its_key(case: Case, request: pytest.FixtureRequest) -> None:
    assert case.backend.name == request.node.callspec.params["case"]


def test_it_says_what_it_runs_on(case: Case) -> None:
    identity = case.backend.identity()
    assert isinstance(identity, DeviceIdentity)
    assert identity.runs == {"host": "host", "xrt": "hardware", "replay": "recorded"}[case.backend.name]
    assert identity.name == ("" if case.backend.name == "host" else "npu2")


def test_a_good_job_completes_with_its_outputs_and_the_hashes_of_what_it_was_made_from(case: Case) -> None:
    outcome = case.backend.run(case.job, inputs())
    assert (outcome.status, len(outcome.outputs)) == ("completed", 3), outcome.text
    assert equal(outcome)
    assert outcome.seconds > 0
    assert outcome.schedules == 2
    for name, digest in outcome.sources.items():
        assert digest == sha256_hex((case.job.root / name).read_bytes())
    assert {"d0/design.py", "kernels/move.cc"} <= set(outcome.sources)
    assert outcome.artifacts
    assert all(len(h) == 64 for h in outcome.artifacts.values())


def test_a_bad_result_never_completes(case: Case) -> None:
    case.spoil()
    outcome = case.backend.run(case.job, inputs())
    assert outcome.status in {"mismatch", "stale"}
    assert outcome.text


def test_a_failure_does_not_reach_the_next_job(case: Case) -> None:
    gone = replace(case.job, design_file="d0/other.py", root=case.job.root / "nowhere")
    assert case.backend.run(gone, inputs()).status != "completed"
    assert case.backend.run(case.job, inputs()).status == "completed"


def test_a_folder_without_its_index_is_an_outcome_and_no_exception(case: Case) -> None:
    (case.job.root / "generated.json").unlink()
    outcome = case.backend.run(case.job, inputs())
    assert outcome.status in {"mismatch", "stale"}
    assert "generated.json" in outcome.text


@pytest.mark.parametrize("text", ["", "[]", "{", '{"device": 1}', '{"device": "npu2", "files": []}', "null"])
def test_an_index_in_another_form_is_an_outcome(case: Case, text: str) -> None:
    (case.job.root / "generated.json").write_text(text)
    assert case.backend.run(case.job, inputs()).status in {"mismatch", "stale"}


def test_other_inputs_than_the_design_takes_never_complete(case: Case) -> None:
    assert case.backend.run(case.job, [{"z": row["x"]} for row in inputs()]).status != "completed"
    assert case.backend.run(case.job, [{"x": row["x"][:-1]} for row in inputs()]).status != "completed"


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(RefusedError, match="expected host, xrt, replay"):
        backend_of("cloud", device="npu2")


def test_without_what_it_needs_it_says_what_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in NAMES:
        backend = backend_of(name, device="npu2", options=BackendOptions(work=tmp_path))
        identity = backend.identity()
        assert isinstance(identity, Unavailable), name
        assert identity.what
        assert identity.looked_for
