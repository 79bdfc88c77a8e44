"""Wrong weights, wrong golden arrays, and files that are not those that were emitted."""

from pathlib import Path
from typing import Final

import numpy as np

from tests.bringup_faults import edits
from tests.bringup_faults.harness import Fault

LAYER: Final = "b2_fc2"
WEIGHTS: Final = f"weights:{LAYER}:all"


def _one_value(array: edits.Array) -> edits.Array:
    array.reshape(-1)[5] ^= 64
    return array


def _blocks(array: edits.Array) -> edits.Array:
    """The first two of four blocks of output channels."""
    blocks = array.reshape(4, -1)
    blocks[[0, 1]] = blocks[[1, 0]]
    return array


def _old_header(root: Path) -> None:
    (root / "kernels" / "old.h").write_text("#pragma once\n", encoding="utf-8")


STORED: Final = (
    Fault(
        id="weights-transposed",
        breaks="the weights of a dense layer are packed with inputs and outputs exchanged",
        base="branching",
        given=edits.constants(WEIGHTS, lambda a: np.ascontiguousarray(a.T)),
        items=("BU005",),
        words=(LAYER,),
        cause="weights transposed",
    ),
    Fault(
        id="weights-of-another-layer",
        breaks="a tile holds the packed weights of another layer",
        base="branching",
        emitted=edits.taken("b2_fc2:weights", "b2_fc1:weights"),
        items=("BU005",),
        words=(LAYER,),
        cause="the weights of op 'b2_fc1'",
    ),
    Fault(
        id="weights-file-of-another-layer",
        breaks="design.py loads the weights of another layer",
        base="branching",
        emitted=edits.design('initial_value=stored("weights/012.npy")', 'initial_value=stored("weights/009.npy")'),
        items=("BU007",),
        words=(LAYER,),
        cause="the weights of op 'b2_fc1'",
    ),
    Fault(
        id="weights-one-value",
        breaks="one of 4096 packed weights has a flipped bit",
        base="branching",
        emitted=edits.packed("b2_fc2:weights", _one_value),
        items=("BU005",),
        words=(LAYER,),
        cause="alone differs",
    ),
    Fault(
        id="weights-negated",
        breaks="the packed weights have the other sign",
        base="branching",
        emitted=edits.packed("b2_fc2:weights", lambda a: -a),
        items=("BU005",),
        words=(LAYER,),
        cause="weights with the other sign",
    ),
    Fault(
        id="weights-without-sign",
        breaks="the packed weights have lost their sign bit",
        base="branching",
        emitted=edits.packed("b2_fc2:weights", lambda a: a & 0x7F),
        items=("BU005",),
        words=(LAYER,),
        cause="weights without their sign bit",
    ),
    Fault(
        id="weights-blocks-exchanged",
        breaks="two blocks of output channels of the packed weights are exchanged",
        base="branching",
        emitted=edits.packed("b2_fc2:weights", _blocks),
        items=("BU005",),
        words=(LAYER,),
        cause="blocks of 16 outputs exchanged",
    ),
    Fault(
        id="weights-never-loaded",
        breaks="the packed weights are zero",
        base="branching",
        emitted=edits.packed("b2_fc2:weights", lambda a: a * 0),
        items=("BU005",),
        words=(LAYER,),
        cause="all weights zero (never loaded)",
    ),
    Fault(
        id="bias-of-another-layer",
        breaks="a tile holds the packed bias of another layer",
        base="branching",
        emitted=edits.taken("b2_fc2:bias", "b2_fc1:bias"),
        items=("BU005",),
        words=(LAYER,),
        cause="the bias of op 'b2_fc1'",
    ),
    Fault(
        id="scale-of-another-layer",
        breaks="a tile holds the packed multiplier and shift of another layer",
        base="branching",
        emitted=edits.taken("b1_fc2:requant", "trunk_fc:requant"),
        items=("BU005",),
        words=("b1_fc2",),
        cause="shift",
    ),
    Fault(
        id="stale-weights-on-disk",
        breaks="a packed array of an earlier emission lies in the folder",
        base="zero points",
        disk=edits.on_disk("d0/weights/003.npy", lambda data: data[:-1] + bytes([data[-1] ^ 1])),
        items=("BU003",),
        words=("d0/weights/003.npy",),
    ),
    Fault(
        id="stale-header-on-disk",
        breaks="a header of an earlier emission lies in the folder; it computes the same",
        base="zero points",
        disk=edits.on_disk("kernels/port_loops.h", lambda data: data + b"\n"),
        items=("BU003",),
        words=("kernels/port_loops.h",),
    ),
    Fault(
        id="stale-kernel-on-disk",
        breaks="a kernel of an earlier emission lies in the folder; it rounds another way",
        base="zero points",
        disk=edits.on_disk("first_conv", lambda data: data.replace(b"conv_even", b"floor")),
        items=("BU003", "BU005"),
        words=("first_conv",),
    ),
    Fault(
        id="stale-golden-on-disk",
        breaks="a golden array of an earlier emission lies in the folder",
        base="zero points",
        disk=edits.on_disk("golden/0_y", lambda data: data[:-1] + bytes([data[-1] ^ 1])),
        items=("BU003",),
        words=("d0/golden/0_y",),
    ),
    Fault(
        id="left-over-on-disk",
        breaks="a file that nobody emitted lies in the folder",
        base="zero points",
        disk=_old_header,
        items=("BU003",),
        words=("kernels/old.h",),
    ),
    Fault(
        id="golden-emitted-stale",
        breaks="the emitter itself writes the golden array of other inputs",
        emitted=edits.golden(lambda a: a[::-1].copy()),
        survives="no verdict rests on golden arrays: test.py on a board says FAIL of right outputs, and recordings are"
        " held against the oracle",
        exit=0,
    ),
)
