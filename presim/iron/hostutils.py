"""`aie.utils` and `aie.extras` as far as published mains use them."""

import argparse
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from presim.iron.api import row
from presim.iron.device import CLASSES, Device, set_current_device
from presim.iron.errors import UnsupportedError, WrongValueError
from presim.iron.expr import Scalar, cast


@row("aie.utils.hostruntime.argparse.add_compile_args")
def add_compile_args(
    parser: argparse.ArgumentParser,
    *,
    with_dev: bool = True,
    dev_choices: tuple[str, ...] = ("npu", "npu2"),
    default_dev: str = "npu",
    short_dev: str | None = "-d",
    with_elf: bool = False,
    with_emit_mlir: bool = False,
) -> None:
    """Options of device and output paths."""
    if with_dev:
        flags = ["--dev"] if short_dev is None else [short_dev, "--dev"]
        parser.add_argument(*flags, dest="dev", choices=dev_choices, default=default_dev)
    for name in ("--xclbin-path", "--insts-path", *(["--elf-path"] if with_elf else [])):
        parser.add_argument(name, default=None)
    if with_emit_mlir:
        parser.add_argument("--emit-mlir", action="store_true")


@row("aie.utils.hostruntime.argparse.device_from_args")
def device_from_args(opts: Any, *, n_cols: int | None = 1) -> Device:
    """The device of `--dev`."""
    return from_name(opts.dev, n_cols=n_cols)


@row("aie.iron.device.from_name")
def from_name(name: str, *, n_cols: int | None = None) -> Device:
    """A device by `npu` or `npu2` and a number of columns, None = all."""
    families = {"npu": "NPU1", "npu1": "NPU1", "npu2": "NPU2"}
    if name not in families:
        msg = f"device {name!r}: expected one of {', '.join(families)}"
        raise WrongValueError(msg)
    family = families[name]
    full = CLASSES[family].columns
    found = family if n_cols is None or n_cols == full else f"{family}Col{n_cols}"
    if found not in CLASSES:
        msg = f"device {name!r} with {n_cols} columns: expected 1 to {full}"
        raise WrongValueError(msg)
    return CLASSES[found]()


@row("aie.utils.hostruntime.cli.run_design_cli")
def run_design_cli(
    design: Any,
    opts: Any,
    *,
    compile_kwargs: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]],
    run_and_verify: Callable[[Any], None] | None = None,
    device: Any = None,
    emit_mlir: Callable[[Any], None] | None = None,
    validate: Callable[[Any], None] | None = None,
) -> NoReturn:
    """Build the design that the options ask for; that is all that is wanted of it."""
    del run_and_verify, emit_mlir
    if device is not None:
        set_current_device(device(opts) if callable(device) else device)
    if validate is not None:
        validate(opts)
    given = compile_kwargs(opts) if callable(compile_kwargs) else compile_kwargs
    design.specialize(**given).compile()
    raise SystemExit(0)


@row("aie.utils.verify.assert_pass")
def assert_pass(actual: Any, expected: Any, atol: float = 0.0, rtol: float = 0.0, fail_msg: str = "") -> None:
    """Compare on a device; nothing here, where nothing ran."""


@row("aie.extras.dialects.arith.constant")
def constant(value: Any, type: Any = None, index: bool = False) -> Any:
    """A number of a type."""
    return value if index or type is None else np.dtype(type).type(value)


@row("aie.extras.dialects.arith.index_cast")
def index_cast(value: Any, to: Any = None) -> Any:
    """An index as an integer of a type, and back."""
    if to is None or not isinstance(value, Scalar):
        return value
    return cast(np.dtype(to).name, value)


@row("aie.extras.dialects.memref.view")
def view(memory: Any, shape: Any, dtype: Any = None, shift: int = 0) -> NoReturn:
    """A part of a buffer; not followed."""
    del memory, shape, dtype, shift
    msg = "memref.view: the design has whole buffers only; give each part a Buffer of its own"
    raise UnsupportedError(msg)


class T:
    """Types of MLIR by name."""

    @staticmethod
    @row("aie.extras.types.i32")
    def i32() -> Any:
        """32-bit integers."""
        return np.int32

    @staticmethod
    @row("aie.extras.types.index")
    def index() -> Any:
        """Indices."""
        return None


i32, index = T.i32, T.index
