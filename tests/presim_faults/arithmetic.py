"""Faults of kernels and constants."""

from typing import Any, Final

from tests.presim_faults import edits
from tests.presim_faults.harness import Fault
from tests.presim_faults.programs import CONV, DIGITS, MADE

KERNEL: Final = f"{CONV}:conv"


def _plus(row: int, by: int) -> Any:
    def change(array: edits.Array) -> edits.Array:
        array[row] += by
        return array

    return change


def _swapped(array: edits.Array) -> edits.Array:
    """The first two output channels."""
    array[[0, 1]] = array[[1, 0]]
    return array


ARITHMETIC: Final = (
    Fault(
        id="shift-off-by-one",
        breaks="the shift of a dense layer is one larger than the manifest's",
        repack=edits.constants("requant:b2_fc2:all", _plus(1, 1)),
        items=("PS001", "PS003"),
        words=("b2_fc2_out_q",),
    ),
    Fault(
        id="multiplier-off-by-one",
        breaks="the multiplier of a convolution is one larger than the manifest's",
        base=DIGITS,
        repack=edits.constants(f"requant:{CONV}:all", _plus(0, 1)),
        items=("PS001", "PS003"),
        words=(MADE,),
    ),
    Fault(
        id="rounding-half-up",
        breaks="a kernel rounds ties up instead of to even",
        edit=edits.kernel("b2_fc2:gemm", rounding="pos_inf"),
        items=("PS001", "PS003"),
        words=("b2_fc2_out_q",),
    ),
    Fault(
        id="rounding-floor",
        breaks="a kernel rounds down",
        base=DIGITS,
        edit=edits.kernel(KERNEL, rounding="floor"),
        items=("PS001", "PS003"),
        words=(MADE,),
    ),
    Fault(
        id="rounding-not-set",
        breaks="a kernel does not set its rounding mode at entry",
        base=DIGITS,
        edit=edits.kernel(KERNEL, rounding=""),
        items=("PS008",),
        words=(KERNEL,),
    ),
    Fault(
        id="saturation-not-set",
        breaks="a kernel does not set its saturation mode at entry",
        base=DIGITS,
        edit=edits.kernel(KERNEL, saturation=""),
        items=("PS008",),
        words=(KERNEL,),
    ),
    Fault(
        id="stale-weights",
        breaks="a tile holds the weights of another layer",
        repack=edits.taken_from("weights:b2_fc2:all", "weights:b2_fc1:all"),
        items=("PS001", "PS003"),
        words=("b2_fc2_out_q",),
    ),
    Fault(
        id="bias-dropped",
        breaks="the bias buffer of a layer is zero",
        base=DIGITS,
        repack=edits.constants(f"bias:{CONV}:all", lambda a: a * 0),
        items=("PS001", "PS003"),
        words=(MADE,),
    ),
    Fault(
        id="bias-of-another-op",
        breaks="a tile holds the bias of another layer",
        repack=edits.taken_from("bias:b2_fc2:all", "bias:b2_fc1:all"),
        items=("PS001", "PS003"),
        words=("b2_fc2_out_q",),
    ),
    Fault(
        id="channels-swapped",
        breaks="the weights of two output channels are exchanged",
        base=DIGITS,
        repack=edits.constants(f"weights:{CONV}:all", _swapped),
        items=("PS001", "PS003"),
        words=(MADE,),
    ),
    Fault(
        id="zero-point-in",
        breaks="a kernel takes a zero point of its input that is one off",
        base=DIGITS,
        edit=edits.attribute(KERNEL, "x_zero_point", lambda v: v + 1),
        items=("PS001", "PS003"),
        words=(MADE,),
    ),
    Fault(
        id="zero-point-out",
        breaks="a kernel takes a zero point of its output that is one off",
        edit=edits.attribute("b2_fc2:gemm", "y_zero_point", lambda v: v + 1),
        items=("PS001", "PS003"),
        words=("b2_fc2_out_q",),
    ),
    Fault(
        id="clamp-one-less",
        breaks="the fused clamp ends one code early",
        base=DIGITS,
        edit=edits.attribute(KERNEL, "qmax", lambda v: v - 1),
        items=("PS001", "PS003"),
        words=(MADE,),
    ),
    Fault(
        id="clamp-not-reached",
        breaks="the same in a layer whose codes stay below the limit",
        edit=edits.attribute("b2_fc1:gemm", "qmax", lambda v: v - 1),
        items=("PS014",),
        words=("b2_fc1:gemm", "qmax is 254, expected 255"),
    ),
    Fault(
        id="padding-to-one-side",
        breaks="a convolution pads two columns right and none left",
        base=DIGITS,
        edit=edits.attribute(KERNEL, "pads_lr", lambda v: (v[0] - 1, v[1] + 1)),
        items=("PS001", "PS003"),
        words=(MADE,),
    ),
    Fault(
        id="permutation",
        breaks="a transpose keeps the order of its axes",
        edit=edits.attribute("b1_permute:transpose", "perm", lambda _: (0, 1, 2)),
        items=("PS001",),
        words=("b1_permute",),
    ),
)
