from dataclasses import replace

from phases.presim.mechanisms import KNOWN, Record, mechanism_evidence, mechanisms_of
from presim.design import Endpoint
from tests.presim_designs import copy_design, every_part


def test_a_plain_copy_uses_one_mechanism() -> None:
    assert mechanisms_of(copy_design()) == {"worker between two fifos": 1}


def test_every_mechanism_of_a_design_is_counted() -> None:
    found = mechanisms_of(every_part())
    assert found == {
        "cascade": 1,
        "depth list": 1,
        "elements reordered by a DMA": 1,
        "iteration count": 1,
        "objects cut by the consumer": 1,
        "several inputs of a worker": 1,
        "split in a memory tile": 1,
        "streamed weights": 1,
    }


def test_broadcast_needs_two_consumers() -> None:
    design = copy_design()
    first, second = design.fifos
    two = replace(first, consumers=(*first.consumers, Endpoint(actor="w2")))
    assert "broadcast" in mechanisms_of(replace(design, fifos=(two, second)))
    assert "broadcast" not in mechanisms_of(design)


def test_weights_by_the_host_are_known_by_their_tensor() -> None:
    design = copy_design()
    first, second = design.fifos
    assert "weights filled by the host" not in mechanisms_of(design)
    assert "weights filled by the host" in mechanisms_of(design, frozenset({"x"}))
    unnamed = replace(design, fifos=(replace(first, tensor=""), second))
    assert "weights filled by the host" in mechanisms_of(unnamed)


def test_a_novel_mechanism_takes_its_probe_from_the_port() -> None:
    design = copy_design()
    first, second = design.fifos
    novel = replace(design, fifos=(replace(first, iter_count=4), second))
    (bare,) = [m for m in mechanism_evidence((novel,), {}) if m.name == "iteration count"]
    assert (bare.known, bare.probe_verdict, bare.probe_passed) == (False, "", False)
    record = Record(mechanism="iteration count", verdict="completes", passed=True, sha256="a" * 64)
    (probed,) = [m for m in mechanism_evidence((novel, novel), {"iteration count": record}) if not m.known]
    assert (probed.uses, probed.probe_verdict, probed.probe_passed) == (2, "completes", True)


def test_known_mechanisms_are_told_apart() -> None:
    assert {m.name: m.known for m in mechanism_evidence((copy_design(),), {})} == {"worker between two fifos": True}
    assert "iteration count" not in KNOWN
