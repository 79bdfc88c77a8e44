"""Small generated folders with one kernel."""

import io
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

SYMBOL = "one"
DESIGN = """
one = Kernel(name="one", object_file_name="one.o", arg_types=[])
first = Buffer(type=a, initial_value=stored("weights/000.npy"), name="weights")
second = Buffer(type=a, initial_value=stored("weights/001.npy"), name="requant")
def core(x, y, first, second, one):
    one(x, first, second, y)
"""


def parameter(name: str, role: str, dtype: str) -> dict[str, Any]:
    return {"name": name, "role": role, "dtype": dtype, "shape": [8], "writes": role == "object_out"}


def folder(
    body: str,
    *,
    header: str = "",
    weights: Any = None,
    requant: Any = None,
    dtype: str = "int8",
    device: str = "npu2",
    **row: Any,
) -> dict[str, bytes]:
    """A kernel with a body, a header `h.h`, stored weights and multipliers."""
    text = f'#include "h.h"\nextern "C" void one(const T *__restrict x, T *__restrict y) {{\n{body}\n}}\n'
    index = {
        "device": device,
        "kernels": {
            SYMBOL: {
                "row": "one",
                "op": "one",
                "type": "add",
                "rounding": "conv_even",
                "vectorized": True,
                "notes": [],
                "parameters": [
                    parameter("in0", "object_in", dtype),
                    parameter("weights", "weights", "int8"),
                    parameter("requant", "requant", "int32"),
                    parameter("out", "object_out", "int8"),
                ],
                **row,
            }
        },
    }
    return {
        "generated.json": json.dumps(index).encode(),
        "kernels/one.cc": text.encode(),
        "kernels/h.h": header.encode(),
        "d0/design.py": DESIGN.encode(),
        "d0/weights/000.npy": stored(np.asarray([1] * 8 if weights is None else weights, np.int8)),
        "d0/weights/001.npy": stored(np.asarray([3, 1] if requant is None else requant, np.int32)),
    }


def stored(array: NDArray[Any]) -> bytes:
    data = io.BytesIO()
    np.lib.format.write_array(data, array, allow_pickle=False)
    return data.getvalue()
