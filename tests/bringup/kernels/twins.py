"""Calls the scalar twins of convolutions and products on planned arrays."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from bringup.kernels.elementwise import ROUNDINGS
from bringup.kernels.model import Row
from presim.blocks import channels_of, from_objects, object_count, object_shape, put_channels, to_objects
from tests.bringup.kernels.draws import Drawn
from tests.bringup.kernels.emitted import INCLUDE, SATURATIONS

Array = NDArray[Any]
FINISH: Final = "rounds out_bits out_signed zero_point low high inside acc_bits rounding saturation has_bias"
WIDE: Final = {"zero_point", "low", "high", "x_zero"}
CONV: Final = (
    "channels outputs inputs width out_width kernel_height kernel_width stride down right left group_outputs group"
    " out_first first top bottom x_zero w_zeros"
)
TEXT: Final = """
#include "conv_twin.h"
#include "gemm_twin.h"
#include "matmul_twin.h"
using I = const int64_t *;
extern "C" {
void conv(const twin::Conv *c, const twin::Finish *f, I rows, I weights, I zeros, I shifts, I bias, I m, I s,
          int64_t *out) {
  twin::conv(*c, *f, rows, weights, zeros, shifts, bias, m, s, out);
}
void gemm(int32_t inputs, int32_t outputs, int64_t zero, int32_t zeros, const twin::Finish *f, I x, I w, I w_zeros,
          I shifts, I bias, I m, I s, int64_t *out) {
  twin::gemm(inputs, outputs, zero, zeros, *f, x, w, w_zeros, shifts, bias, m, s, out);
}
void matmul(int32_t batches, int32_t rows, int32_t inner, int32_t columns, const twin::Finish *f, I a, I b, I shifts,
            I bias, I m, I s, int64_t *out) {
  twin::matmul(batches, rows, inner, columns, *f, a, b, shifts, bias, m, s, out);
}
}
"""


def _structure(names: str) -> type[ctypes.Structure]:
    fields = [(n, ctypes.c_int64 if n in WIDE else ctypes.c_int32) for n in names.split()]
    return type("Structure", (ctypes.Structure,), {"_fields_": fields})


class Twins:
    """The compiled twins."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("g++")
        if compiler is None:
            pytest.skip("g++ is not on PATH")
        source, library = folder / "twins.cc", folder / "twins.so"
        source.write_text(TEXT)
        command = [compiler, "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", str(INCLUDE)]
        subprocess.run([*command, str(source), "-o", str(library)], check=True)
        self.library = ctypes.CDLL(str(library))
        self.finish_type = _structure(f"{FINISH} shifts factors")
        self.conv_type = _structure(CONV)

    def conv(self, drawn: Drawn) -> Array:
        """A row of the output, as an object."""
        row, arrays, scalars = drawn.row, drawn.arrays, drawn.scalars
        a = row.attributes
        names = [p.name for p in row.parameters if p.role == "object_in"]
        rows = np.stack([channels_of(arrays[n]) for n in names]).astype(np.int64)
        weights, out = arrays["weights"].astype(np.int64), arrays["out"]
        zeros = np.array(a["w_zero_points"], np.int64)
        count = min(len(weights), _int(a["out_channels"]))
        figures = {
            "channels": rows.shape[1],
            "outputs": count,
            "inputs": weights.shape[1],
            "width": rows.shape[2],
            "out_width": out.shape[1],
            "kernel_height": weights.shape[2],
            "kernel_width": weights.shape[3],
            "stride": _tuple(a["strides"])[1],
            "down": _tuple(a["dilations"])[0],
            "right": _tuple(a["dilations"])[1],
            "left": _tuple(a["pads_lr"])[0],
            "group_outputs": a["group_outputs"],
            "group": a["group"],
            "out_first": a["out_first"],
            "first": _int(a["in_first"]) - _int(a["x_first"]),
            "top": scalars["pad_top"],
            "bottom": scalars["pad_bottom"],
            "x_zero": a["x_zero_point"],
            "w_zeros": len(zeros),
        }
        values = np.zeros((count, out.shape[1]), np.int64)
        finish, tail = self._finish(row, arrays)
        self._call(
            "conv", ctypes.byref(self.conv_type(**figures)), ctypes.byref(finish), rows, weights, zeros, *tail, values
        )
        found = np.array(out)
        put_channels(found, values.astype(out.dtype), total=count)
        return found

    def gemm(self, row: Row, arrays: dict[str, Array], x: Array, weights: Array, figures: dict[str, Any]) -> Array:
        """A vector object; `x` without padding, `figures` hold the zero points."""
        outputs = weights.shape[1]
        zeros = np.array(figures["w_zero_points"], np.int64)
        values = np.zeros((outputs, 1), np.int64)
        finish, tail = self._finish(row, arrays)
        self._call(
            "gemm",
            len(weights),
            outputs,
            ctypes.c_int64(figures["x_zero_point"]),
            len(zeros),
            ctypes.byref(finish),
            x.astype(np.int64),
            weights.astype(np.int64),
            zeros,
            *tail,
            values,
        )
        found = np.array(arrays["out"])
        put_channels(found, values.astype(found.dtype), total=outputs)
        return found

    def matmul(self, drawn: Drawn) -> Array:
        """All objects of the result."""
        a = drawn.row.attributes
        sides = []
        for position, name in enumerate("ab"):
            shape = _tuple(a[f"{name}_shape"])
            values = self._operand(drawn, name, shape, constant=position == a["constant"]).astype(np.int64)
            values = values.swapaxes(-1, -2) if a[f"transpose_{name}"] else values
            sides.append(values - np.array(a[f"{name}_zero_points"], np.int64))
        left, right = sides
        shape = _tuple(a["y_shape"])
        if right.ndim == 1:  # the last axis of the result is the rows of the left operand
            left, right = right[np.newaxis], left.swapaxes(-1, -2) if left.ndim > 1 else left[:, np.newaxis]
        left = left[np.newaxis] if left.ndim == 1 else left
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        left, right = (np.broadcast_to(v, (*batch, *v.shape[-2:])) for v in (left, right))
        rows, inner, columns = left.shape[-2], left.shape[-1], right.shape[-1]
        values = np.zeros((int(np.prod(batch)), rows, columns), np.int64)
        finish, tail = self._finish(drawn.row, drawn.arrays)
        self._call(
            "matmul",
            len(values),
            rows,
            inner,
            columns,
            ctypes.byref(finish),
            np.array(left),
            np.array(right),
            *tail,
            values,
        )
        return to_objects(values.reshape(shape).astype(_text(a["out_dtype"])))

    def _operand(self, drawn: Drawn, name: str, shape: tuple[int, ...], *, constant: bool) -> Array:
        if constant:
            return drawn.arrays["constant"]
        held = [drawn.arrays[p.name] for p in drawn.row.parameters if p.role == "object_in" and p.name[0] == name]
        return from_objects(np.stack(held).reshape(object_count(shape), *object_shape(shape)), shape)

    def _finish(self, row: Row, arrays: dict[str, Array]) -> tuple[ctypes.Structure, list[Array]]:
        a = row.attributes
        dtype = np.dtype(_text(a["out_dtype"]))
        bias, requant = arrays.get("bias"), arrays.get("requant", np.array([[1], [0]]))
        shifts = np.array(a["acc_shift"], np.int64)
        finish = self.finish_type(
            rounds=int(a["finish"] == "round"),
            out_bits=dtype.itemsize * 8,
            out_signed=int(dtype.kind == "i"),
            zero_point=a["y_zero_point"],
            low=a["qmin"],
            high=a["qmax"],
            inside=a["zero_point_inside"],
            acc_bits=a["acc_bits"],
            rounding=list(ROUNDINGS).index(row.rounding),
            saturation=SATURATIONS.index(row.saturation),
            has_bias=int(bias is not None),
            shifts=len(shifts),
            factors=requant.shape[1],
        )
        return finish, [shifts, np.zeros(1) if bias is None else bias, requant[0], requant[1]]

    def _call(self, name: str, *arguments: Any) -> None:
        kept = [np.ascontiguousarray(v, np.int64) if isinstance(v, np.ndarray) else v for v in arguments]
        pointers = [v.ctypes.data_as(ctypes.c_void_p) if isinstance(v, np.ndarray) else v for v in kept]
        getattr(self.library, name)(*pointers)


def _int(value: Any) -> int:
    assert isinstance(value, int)
    return value


def _tuple(value: Any) -> tuple[int, ...]:
    assert isinstance(value, tuple)
    return value


def _text(value: Any) -> str:
    assert isinstance(value, str)
    return value
