"""Wrong arithmetic in emitted kernels: the hashes are those of the wrong file, so nothing but the numbers tells."""

from typing import Final

from tests.bringup_faults import edits
from tests.bringup_faults.harness import Fault

CONV: Final = "f_1_f_1_0_Conv"
STAGE: Final = "01_stage_/f/f.1/f.1.0/Conv"
EVEN: Final = "    aie::set_rounding(aie::rounding_mode::conv_even);\n"
SATURATE: Final = "    aie::set_saturation(aie::saturation_mode::saturate);\n"


def _rounding(mode: str) -> edits.Emitted:
    return edits.kernel(CONV, ("rounding_mode::conv_even", f"rounding_mode::{mode}"))


ARITHMETIC: Final = (
    Fault(
        id="shift-off-by-one",
        breaks="a convolution shifts one place further",
        emitted=edits.call(
            CONV, "    const int32_t further[] = {requant[0], requant[1] + 1};", given=("requant", "further")
        ),
        items=("BU005",),
        words=(STAGE,),
        cause="shift 8 instead of 7",
    ),
    Fault(
        id="rounding-half-up",
        breaks="a convolution rounds ties up instead of to even",
        emitted=_rounding("positive_inf"),
        items=("BU005",),
        words=(STAGE,),
        cause="rounding pos_inf instead of conv_even",
    ),
    Fault(
        id="rounding-down",
        breaks="a convolution rounds down",
        emitted=_rounding("floor"),
        items=("BU005",),
        words=(STAGE,),
        cause="rounding floor instead of conv_even",
    ),
    Fault(
        id="modes-not-set",
        breaks="a convolution sets neither rounding nor saturation",
        emitted=edits.kernel(CONV, (EVEN, ""), (SATURATE, "")),
        items=("BU005", "BU002"),
        words=(STAGE,),
        cause="modes never set",
    ),
    Fault(
        id="modes-of-another-kernel",
        breaks="a kernel relies on the modes that another kernel of its tile has set; it computes the same",
        emitted=edits.kernel("gemm_finish", (EVEN, ""), (SATURATE, "")),
        items=("BU002",),
        words=("gemm_finish", "set_rounding is missing", "shared by the kernels of a tile"),
    ),
    Fault(
        id="saturation-not-set",
        breaks="a kernel leaves saturation at what the tile begins with",
        base="branching",
        emitted=edits.kernel("b2_fc3_gemm", (SATURATE, "")),
        items=("BU002",),
        words=("b2_fc3_gemm", "set_saturation"),
    ),
    Fault(
        id="saturation-off",
        breaks="a convolution lets codes wrap",
        emitted=edits.kernel(CONV, ("saturation_mode::saturate", "saturation_mode::none")),
        items=("BU005",),
        words=(STAGE,),
        cause="no saturation: codes wrap",
    ),
    Fault(
        id="bias-after-shift",
        breaks="a dense layer adds its bias to the codes, behind the shift",
        base="branching",
        emitted=edits.call(
            "b2_fc2_gemm",
            "    static constexpr int32_t none[72] = {};",
            given=("bias", "none"),
            behind="    for (int32_t i = 0; i < 64; ++i) {\n"
            "        const int32_t code = int32_t(out[i]) + bias[i];\n"
            "        out[i] = code < 0 ? 0 : code > 255 ? 255 : code;\n    }",
        ),
        items=("BU005",),
        words=("b2_fc2",),
        cause="bias added behind the shift",
    ),
    Fault(
        id="bias-dropped",
        breaks="a dense layer is computed without its bias",
        base="branching",
        emitted=edits.call("b2_fc2_gemm", "    static constexpr int32_t none[72] = {};", given=("bias", "none")),
        items=("BU005",),
        words=("b2_fc2",),
        cause="bias left out",
    ),
    Fault(
        id="padding-without-zero-point",
        breaks="what lies outside the image is code 0 where the zero point is -32",
        base="zero points",
        emitted=edits.header("conv_mmul.h", "X(C::X_ZERO)", "X(0)"),
        items=("BU005",),
        words=("first",),
        cause="the padding holds code 0, not the zero point of 'xd.q'",
    ),
    Fault(
        id="zero-point-out-dropped",
        breaks="a convolution gives codes without the zero point",
        base="zero points",
        emitted=edits.kernel("second_conv", ("Output<int8_t, 12,", "Output<int8_t, 0,")),
        items=("BU005",),
        words=("second",),
        cause="zero point of 'y.q' left out",
    ),
    Fault(
        id="zero-point-out-off-by-one",
        breaks="a convolution adds a zero point that is one off",
        base="zero points",
        emitted=edits.kernel("second_conv", ("Output<int8_t, 12,", "Output<int8_t, 13,")),
        items=("BU005",),
        words=("second",),
        cause="zero point of 'y.q' is 13 instead of 12",
    ),
    Fault(
        id="kernel-rows-reversed",
        breaks="a convolution reads the rows of its window from the last to the first",
        emitted=edits.kernel(CONV, ("{row0, row1, row2}", "{row2, row1, row0}")),
        items=("BU005",),
        words=(STAGE,),
        cause="kernel rows in reverse order",
    ),
    Fault(
        id="clamp-left-out",
        breaks="a convolution gives codes below the fused Relu",
        emitted=edits.kernel(CONV, ("Output<int8_t, 0, 0, 127", "Output<int8_t, 0, -128, 127")),
        items=("BU005",),
        words=(STAGE,),
        cause="Relu left out",
    ),
    Fault(
        id="clamp-too-early",
        breaks="a convolution clamps at 100 instead of 127",
        emitted=edits.kernel(CONV, ("Output<int8_t, 0, 0, 127", "Output<int8_t, 0, 0, 100")),
        items=("BU005",),
        words=(STAGE,),
        cause="codes end at 100 instead of 127",
    ),
    Fault(
        id="padding-to-one-side",
        breaks="a convolution pads two columns to the right and none to the left",
        emitted=edits.kernel(CONV, ("LEFT = 1", "LEFT = 0")),
        items=("BU005",),
        words=(STAGE,),
        cause="padding [1, 0, 1, 2] instead of [1, 1, 1, 1]",
    ),
    Fault(
        id="output-kept",
        breaks="a kernel gives what it gave the time before, the first time its own",
        emitted=edits.call(
            "gemm_finish",
            "    static int8_t last[16];\n    static bool kept = false;",
            behind="    if (kept) {\n        for (int32_t i = 0; i < 16; ++i) out[i] = last[i];\n    }\n"
            "    for (int32_t i = 0; i < 16; ++i) last[i] = out[i];\n    kept = true;",
        ),
        items=("BU005",),
        words=("05_stage_/f/f.6/Gemm",),
        cause="every inference holds what the first gave (stale)",
    ),
    Fault(
        id="zeros-everywhere",
        breaks="a kernel writes zeros",
        emitted=edits.call("gemm_finish", "", behind="    for (int32_t i = 0; i < 16; ++i) out[i] = 0;"),
        items=("BU005", "BU010"),
        words=("05_stage_/f/f.6/Gemm",),
        cause="holds 0 everywhere",
    ),
    Fault(
        id="accumulator-one-short",
        breaks="the first kernel of a stage sums over one column less; nothing between the two kernels is drained",
        emitted=edits.kernel("gemm_rows", ("IN_WIDTH = 2", "IN_WIDTH = 1")),
        items=("BU005",),
        words=("05_stage_/f/f.6/Gemm",),
        cause="",
    ),
)
