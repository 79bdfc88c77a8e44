"""Emitted design files that are not the simulated design."""

from typing import Final

from tests.bringup_faults import edits
from tests.bringup_faults.harness import Fault

ACQUIRES: Final = (
    "        fifo2_cons0_objects = fifo2_cons0.acquire(2)\n        fifo3_prod_objects = fifo3_prod.acquire(1)\n"
)
SWAPPED: Final = (
    "        fifo3_prod_objects = fifo3_prod.acquire(1)\n        fifo2_cons0_objects = fifo2_cons0.acquire(2)\n"
)
POOL: Final = "_u2f_f_u2f_f_u2e_2_u2f_MaxPool"
WHOLE: Final = "d0/design.py"

DESIGNS: Final = (
    Fault(
        id="depth-too-small",
        breaks="a fifo has one object less than its worker holds, which hangs",
        emitted=edits.design("fifo1_prod = fifo1.prod(depth=4)", "fifo1_prod = fifo1.prod(depth=2)", where=WHOLE),
        items=("BU001",),
        words=("d0", "pool", "/f/f.0/f.0.2/Relu_output_0_quantized", "planned 4, the emitted design has 2"),
    ),
    Fault(
        id="depth-one-less-of-a-consumer",
        breaks="the consumer of a fifo in shared memory asks for one object less",
        emitted=edits.design("fifo1_cons0 = fifo1.cons(depth=4)", "fifo1_cons0 = fifo1.cons(depth=3)", where=WHOLE),
        survives="in shared memory there is one pool, of the producer's depth: the design is the planned one",
        exit=0,
    ),
    Fault(
        id="acquires-swapped",
        breaks="a worker acquires its output first",
        emitted=edits.design(ACQUIRES, SWAPPED, where=WHOLE),
        items=("BU001", "BU007"),
        words=("d0", "/f/f.2/MaxPool", "program"),
    ),
    Fault(
        id="release-dropped",
        breaks="a worker keeps its output",
        emitted=edits.design("        fifo3_prod.release(1)\n", "", where=WHOLE),
        items=("BU001", "BU002"),
        words=("d0", "/f/f.2/MaxPool"),
    ),
    Fault(
        id="release-doubled",
        breaks="a worker gives its output back twice",
        emitted=edits.design(
            "        fifo3_prod.release(1)\n",
            "        fifo3_prod.release(1)\n        fifo3_prod.release(1)\n",
            where=WHOLE,
        ),
        items=("BU001", "BU002"),
        words=("d0", "/f/f.2/MaxPool"),
    ),
    Fault(
        id="loop-trips-one-less",
        breaks="a worker goes through its loop once less, which hangs",
        emitted=edits.program(r"range_\(4\)", "range_(3)", function=POOL, where=WHOLE),
        items=("BU001",),
        words=("d0", "/f/f.2/MaxPool", "planned 4, the emitted design has 3"),
    ),
    Fault(
        id="row-from-the-other-end",
        breaks="a worker passes the rows of its window in another order",
        emitted=edits.program(
            r"(\w+_objects)\[0\], \1\[1\]",
            r"\1[1], \1[0]",
            function=POOL,
        ),
        survives="the larger of two rows is the same in both orders: the design computes what it has to",
        exit=0,
    ),
    Fault(
        id="rows-of-a-window-reversed",
        breaks="a worker passes the rows of a convolution from the last to the first",
        emitted=edits.program(
            r"(\w+_objects)\[0\],(\s+)\1\[1\],\s+\1\[2\],",
            r"\1[2],\2\1[1],\2\1[0],",
            function="_u2f_f_u2f_f_u2e_1_u2f_f_u2e_1_u2e_0_u2f_Conv",
        ),
        items=("BU005",),
        words=("01_stage_/f/f.1/f.1.0/Conv",),
        cause="kernel rows in reverse order",
    ),
    Fault(
        id="fifos-exchanged",
        breaks="the two branches are given each other's fifo",
        base="branching",
        emitted=edits.design("fn_args=[fifo6_cons0, fifo7_prod,", "fn_args=[fifo7_cons0, fifo6_prod,", where=WHOLE),
        items=("BU007", "BU002"),
        words=("d0", "'b2_fc1_out_q' has two ends"),
    ),
    Fault(
        id="wrong-kernel-bound",
        breaks="a worker calls the kernel of another one, of the same signature",
        base="branching",
        emitted=edits.design("buffer12, buffer13, buffer14, kernel5]", "buffer12, buffer13, buffer14, kernel4]"),
        items=("BU001",),
        words=("d0", "b2_fc2", "k_b2_fc1_gemm"),
    ),
    Fault(
        id="wrong-buffer-bound",
        breaks="a worker is given the weights of another one",
        base="branching",
        emitted=edits.design("fifo7_prod, buffer12,", "fifo7_prod, buffer9,", where=WHOLE),
        items=("BU007",),
        words=("d0", "'b2_fc1_u3a_weights' is given to two Workers"),
    ),
    Fault(
        id="wrong-scalar",
        breaks="a worker tells a convolution that the first row lies inside of the image",
        emitted=edits.program(
            r"(_prod_objects,\s+)1,",
            r"\g<1>0,",
            function="_u2f_f_u2f_f_u2e_1_u2f_f_u2e_1_u2e_0_u2f_Conv",
        ),
        items=("BU001",),
        words=("/f/f.1/f.1.0/Conv",),
    ),
    Fault(
        id="wrong-tile",
        breaks="a worker sits on another tile",
        emitted=edits.design("tile=tile_0_2,", "tile=tile_0_3,", where=WHOLE),
        items=("BU001",),
        words=("d0",),
    ),
    Fault(
        id="wrong-device",
        breaks="the program is for npu1, the port for npu2",
        emitted=edits.design("import NPU2, Tile", "import NPU1 as NPU2, Tile"),
        items=("BU001", "BU005"),
        words=("device", "npu1", "npu2"),
    ),
    Fault(
        id="wrong-split-offset",
        breaks="the second half of an object is taken from one place too early",
        base="branching, two halves",
        emitted=edits.design("offsets=[0, 32]", "offsets=[0, 31]", where=WHOLE),
        items=("BU001",),
        words=("d0",),
    ),
    Fault(
        id="wait-dropped",
        breaks="the host does not wait for an output",
        emitted=edits.design(", wait=True)", ")", where=WHOLE),
        items=("BU001", "BU002"),
        words=("d0",),
    ),
    Fault(
        id="drain-dropped",
        breaks="the host never asks for an output",
        base="branching",
        emitted=edits.design("        fifo8_cons0.drain(branch2_q, wait=True)\n", "", where=WHOLE),
        items=("BU001", "BU002"),
        words=("d0",),
    ),
    Fault(
        id="odd-stack",
        breaks="a stack is 4 bytes longer, so that the buffers behind it are not where vector loads need them",
        emitted=edits.design("stack_size=1024", "stack_size=1028"),
        items=("BU002", "BU001"),
        words=("a stack of 1028 bytes, no multiple of 64",),
    ),
    Fault(
        id="unknown-keyword",
        breaks="a fifo is made with a keyword that IRON 1.4 does not have",
        emitted=edits.design("ObjectFifo(obj_type=int8_1x8x8, depth=2,", "ObjectFifo(obj_type=int8_1x8x8, deep=2,"),
        items=("BU002", "BU005"),
        words=("deep",),
    ),
)
