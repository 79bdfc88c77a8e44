"""Which comparison of a model with onnxruntime is binding, with which settings, on a CPU with given flags."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy.typing as npt

from manifest.model import Manifest, Op, Tensor
from oracle.cpu import CpuFlags, hazard_ops, kernel_ops
from oracle.evidence import CpuEvidence
from oracle.reference.session import EXTENDED, INT8_ALLOWED, OFF, PRECISE_U8S8, Settings

FLOAT_EXACT_BOUND: Final = 2**24
"""Integers up to here are exact in float32, in any order of summation."""

_KEEP_QDQ: Final = ("session.disable_quant_qdq", "1")
_SIXTEEN: Final = frozenset({"int16", "uint16"})
_FIXED_POINT_ON_ARM: Final = frozenset({"Add", "Mul"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a model is held against onnxruntime.

    Attributes:
        end_to_end: every op has one exact meaning: comparison (a). Otherwise comparison (b).
        file: settings under which the file itself runs.
        dump: settings under which onnxruntime dumps the graph for (b); None where that must not be done.
        why_no_dump: reason, "" where `dump` is set or not needed.
        cpu: the evidence of the choice.
    """

    end_to_end: bool
    file: Settings
    dump: Settings | None
    why_no_dump: str
    cpu: CpuEvidence


def has_one_meaning(op: Op, tensors: Mapping[str, Tensor]) -> bool:
    """Whether onnxruntime's result is defined to the bit.

    True for integer shifts, unchanged codes, QOperator formulas, ops that do not requantise, and QuantizeLinear of a
    float tensor (a single division and rounding).
    """
    if op.origin == "qoperator" or op.requant is None or op.requant.reference != "rational":
        return True
    return op.type == "QuantizeLinear" and tensors[op.inputs[0]].dtype == "float32"


def is_sixteen_bit(manifest: Manifest) -> bool:
    """Whether any activation has 16 bits."""
    return any(t.dtype in _SIXTEEN and t.array is None for t in manifest.tensors)


def untrusted_ops(manifest: Manifest, arrays: Mapping[str, npt.NDArray[Any]], flags: CpuFlags) -> tuple[str, ...]:
    """Names of QOperator ops whose integer kernel is no reference on this CPU, in graph order."""
    integer = {op.name for op in manifest.ops if op.origin == "qoperator"}
    hazards = {name for name in hazard_ops(flags, kernel_ops(manifest, arrays)) if name in integer}
    if not flags.reproduces_add:
        hazards |= {op.name for op in manifest.ops if op.name in integer and op.type in _FIXED_POINT_ON_ARM}
    return tuple(op.name for op in manifest.ops if op.name in hazards)


def make_plan(manifest: Manifest, arrays: Mapping[str, npt.NDArray[Any]], flags: CpuFlags) -> Plan:
    """Choose comparison and settings.

    Args:
        manifest: of the file.
        arrays: constants of the file.
        flags: the CPU that onnxruntime runs on.
    """
    tensors = manifest.by_name()
    end_to_end = all(has_one_meaning(op, tensors) for op in manifest.ops)
    own = untrusted_ops(manifest, arrays, flags)
    file = _precise_file() if own else OFF
    if end_to_end:
        return Plan(end_to_end=True, file=file, dump=None, why_no_dump="", cpu=_evidence(flags, own, file.words()))
    dump, why, hazards = None, "", own
    if is_sixteen_bit(manifest):
        why = "16-bit activations: from EXTENDED up onnxruntime re-quantises them to 8 bit"
    elif not flags.reproduces_add:
        why = "the integer kernels of this CPU are not those whose formulas the oracle holds"
        hazards = own or tuple(op.name for op in manifest.ops if op.requant is not None)
    else:
        hazards = hazard_ops(flags, kernel_ops(manifest, arrays))
        dump = Settings(level="extended", config=dict([INT8_ALLOWED, PRECISE_U8S8])) if hazards else EXTENDED
    words = (
        f"the file at {file.words()}" if dump is None else f"graph dumped at {dump.words()}; the file at {file.words()}"
    )
    return Plan(end_to_end=False, file=file, dump=dump, why_no_dump=why, cpu=_evidence(flags, hazards, words))


def _precise_file() -> Settings:
    return Settings(level="extended", config=dict([_KEEP_QDQ, PRECISE_U8S8]))


def _evidence(flags: CpuFlags, hazards: tuple[str, ...], used: str) -> CpuEvidence:
    """A hazard always means that another reference was chosen."""
    return CpuEvidence(
        flags=flags.deciding,
        integer_kernels_exact=not hazards,
        hazard_ops=hazards,
        reference_used=used,
        switched=bool(hazards),
    )
