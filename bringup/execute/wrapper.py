"""C++ around a kernel source: its signatures are held to what the design declares, and each gets a trampoline.

Why the source is included rather than linked: `decltype` of the function itself is the only place where the compiler
says what its parameters are.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from bringup.execute.abi import ACCESSES, C_TYPES, ExternalAbi, PointerAbi, ScalarAbi
from presim.simulate.lane import poison_of

PREFIX: Final = "host_call_"


def trampoline_of(symbol: str) -> str:
    """Name of the function that calls a kernel."""
    return f"{PREFIX}{symbol}"


def table_of(symbol: str) -> str:
    """Name of the table of its pointers."""
    return f"{PREFIX}table_{symbol}"


def wrapper_text(source: str, externals: Sequence[ExternalAbi]) -> str:
    """A translation unit for one source.

    Args:
        source: path to include.
        externals: functions that it defines.
    """
    return "\n".join([f'#include "{source}"', '#include "trampoline.h"', "", *(_one(e) for e in externals)])


def _one(external: ExternalAbi) -> str:
    symbol = external.symbol
    lines = [f"namespace host_call::of_{symbol} {{", f"using F = host_call::Signature<decltype(&::{symbol})>;"]
    lines += _checks(external)
    lines += [
        "static void invoke([[maybe_unused]] std::uint8_t *const *p, [[maybe_unused]] const std::int64_t *s) {",
        f"  ::{symbol}({', '.join(_arguments(external))});",
        "}",
        f"}} // namespace host_call::of_{symbol}",
        f'extern "C" const host_call::Pointer {table_of(symbol)}[] = {{',
        *(f"  {row}," for row in _rows(external)),
        "  {0, 0, 0, 0}};",
        f'extern "C" std::int64_t {trampoline_of(symbol)}(std::uint8_t *const *p, const std::int64_t *s,'
        " std::int32_t phase) {",
        f"  return host_call::run({table_of(symbol)}, {len(external.pointers)}, host_call::of_{symbol}::invoke,"
        " p, s, phase);",
        "}",
        "",
    ]
    return "\n".join(lines)


def _checks(external: ExternalAbi) -> list[str]:
    """Assertions on number, kind and type of the parameters."""
    symbol, count = external.symbol, len(external.parameters)
    lines = [f'static_assert(F::count == {count}, "{symbol}: the design passes {count} arguments");']
    for i, row in enumerate(external.parameters):
        kind = C_TYPES[row.dtype][0]
        name = f" ({row.name})" if row.name.isidentifier() else ""
        if isinstance(row, ScalarAbi):
            test = f"std::is_same_v<std::remove_cv_t<F::argument<{i}>>, {kind}>"
            what = f"is passed as a scalar {row.dtype}"
        else:
            test = f"host_call::points_to<F::argument<{i}>, {kind}>"
            what = f"points to {row.dtype}"
        lines.append(f'static_assert({test}, "{symbol}: parameter {i}{name} {what}");')
        if isinstance(row, PointerAbi) and row.access in {"out", "inout"}:
            text = f"{symbol}: parameter {i}{name} is written"
            lines.append(f'static_assert(host_call::writable<F::argument<{i}>>, "{text}");')
    return lines


def _arguments(external: ExternalAbi) -> list[str]:
    made, pointers, scalars = [], 0, 0
    for row in external.parameters:
        kind = C_TYPES[row.dtype][0]
        if isinstance(row, ScalarAbi):
            made.append(f"host_call::scalar<{kind}>(s[{scalars}])")
            scalars += 1
        else:
            made.append(f"reinterpret_cast<{kind} *>(p[{pointers}])")
            pointers += 1
    return made


def _rows(external: ExternalAbi) -> list[str]:
    """Size and access of every pointer; where the access is not known, `const` in the code says that it reads."""
    rows = []
    for i, row in enumerate(external.parameters):
        if isinstance(row, PointerAbi):
            access = str(ACCESSES.index(row.access))
            if row.access == "any":
                written = f"host_call::writable<host_call::of_{external.symbol}::F::argument<{i}>>"
                access = f"{written} ? {ACCESSES.index('any')} : {ACCESSES.index('in')}"
            rows.append(f"{{{row.size_bytes}, {C_TYPES[row.dtype][1]}, {access}, {_fresh(row.dtype)}}}")
    return rows


def _fresh(dtype: str) -> str:
    """Bits of fresh memory; they mean something at 4 and 8 bytes alone."""
    size = C_TYPES[dtype][1]
    if size < 4:
        return "0"
    return f"{int.from_bytes(np.array(poison_of(dtype), dtype).tobytes(), 'little'):#x}"
