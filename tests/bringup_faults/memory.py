"""Kernels that leave their memory, behave as C++ does not define, or do not compile."""

from typing import Final

from tests.bringup_faults import edits
from tests.bringup_faults.arithmetic import CONV, STAGE
from tests.bringup_faults.harness import Fault

POOL: Final = "f_2_MaxPool"

MEMORY: Final = (
    Fault(
        id="loop-one-short",
        breaks="a dense layer stops 16 outputs early, they are never written",
        base="branching",
        emitted=edits.kernel("b2_fc2_gemm", ("CHANNELS = 64", "CHANNELS = 48")),
        items=("BU005",),
        words=("b2_fc2", "memory that nobody wrote"),
        cause="in 768 places (never written, or cut off)",
    ),
    Fault(
        id="loop-one-long",
        breaks="a pool goes on for one column more",
        emitted=edits.kernel(POOL, ("width = 4;", "width = 5;")),
        items=("BU009", "BU005"),
        words=("f_2_MaxPool", "out"),
    ),
    Fault(
        id="overrun-read",
        breaks="a convolution reads one byte behind its weights",
        emitted=edits.call(CONV, "    [[maybe_unused]] const volatile int8_t beyond = weights[2 * 9 * 64];"),
        items=("BU009", "BU005"),
        words=(CONV, "reads 1 byte at offset 1152 of weights, which has 1152 bytes"),
    ),
    Fault(
        id="overrun-write",
        breaks="a convolution writes one byte in front of its output",
        emitted=edits.call(CONV, "    out[-1] = 0;"),
        items=("BU009", "BU005"),
        words=(CONV, "writes 1 byte at offset -1 of out, which has 128 bytes"),
    ),
    Fault(
        id="input-written",
        breaks="a convolution changes its input",
        emitted=edits.call(CONV, "    const_cast<int8_t *>(row1)[0] += 1;"),
        items=("BU009", "BU005"),
        words=(CONV, "row"),
    ),
    Fault(
        id="signed-overflow",
        breaks="a kernel counts beyond what an int32 holds",
        emitted=edits.call(CONV, "    volatile int32_t most = INT32_MAX;\n    most = most + 1;"),
        items=("BU009", "BU005"),
        words=(CONV, "signed integer overflow"),
    ),
    Fault(
        id="shift-beyond-the-word",
        breaks="a kernel shifts by 32 places",
        emitted=edits.call(CONV, "    volatile int32_t by = 32;\n    volatile int32_t all = 1 << by;\n    all = all;"),
        items=("BU009", "BU005"),
        words=(CONV, "shift exponent 32"),
    ),
    Fault(
        id="never-returns",
        breaks="a convolution waits for what never comes",
        emitted=edits.call(CONV, "    for (volatile int32_t come = 0; come == 0;) {\n    }"),
        items=("BU009", "BU005"),
        words=(CONV, "did not return within 60 s"),
    ),
    Fault(
        id="wrong-include",
        breaks="a convolution includes the header of another kind",
        emitted=edits.kernel(CONV, ('#include "conv_mmul.h"', '#include "max_pool.h"')),
        items=("BU005",),
        words=(STAGE, CONV, "ConvMmul"),
    ),
    Fault(
        id="other-signature",
        breaks="a kernel takes 16-bit scales where design.py passes 32",
        emitted=edits.kernel(CONV, ("const int32_t *__restrict requant", "const int16_t *__restrict requant")),
        items=("BU005", "BU002"),
        words=(STAGE, CONV, "requant"),
    ),
    Fault(
        id="cxx-name",
        breaks='a kernel is not extern "C"',
        emitted=edits.kernel(CONV, ('extern "C" void', "void")),
        items=("BU005", "BU002"),
        words=(STAGE, CONV, 'not defined as extern "C"'),
    ),
)
