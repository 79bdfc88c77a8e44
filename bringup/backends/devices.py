"""Which catalogue device a driver speaks of: by architecture, else by name, else not at all.

Why nothing is guessed: names of products change faster than any list, and a design for the wrong array can come to an
end with wrong numbers. What is not known is reported as it is and nothing runs.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

ARCHITECTURES: Final[Mapping[str, str]] = {"aie2": "npu1", "aie2p": "npu2"}
"""`aie_architecture_version` of XRT's platform report (Xilinx/XRT pull request 10026) -> device of the catalogue."""

NAMES: Final[Mapping[str, str]] = {
    "RyzenAI-npu1": "npu1",
    "NPU Phoenix": "npu1",
    "RyzenAI-npu4": "npu2",
    "RyzenAI-npu5": "npu2",
    "RyzenAI-npu6": "npu2",
    "NPU Strix": "npu2",
    "NPU Strix Halo": "npu2",
    "NPU Krackan": "npu2",
    "NPU Krackan 1": "npu2",
    "NPU Krackan 2": "npu2",
    "NPU Gorgon Point 1": "npu2",
    "NPU Gorgon Point 2": "npu2",
    "NPU Gorgon Point 3": "npu2",
}
"""Whole names that the driver is known to report (`vbnv` of amd/xdna-driver, `npu4_rev_vbnv_tbl` and its forerunners;
Xilinx/XRT 8145, 10026). Whole, because `npu1` is also the begin of names that nobody has seen yet."""

ARCHITECTURE_KEY: Final = "aie_architecture_version"
MAX_DEPTH: Final = 12


def architecture_of(report: str) -> str:
    """`aie_architecture_version` of a platform report in JSON; "" where it has none or is no JSON."""
    try:
        value = json.loads(report)
    except (ValueError, RecursionError):
        return ""
    found = _find(value, 0)
    return "" if found in {"", "N/A"} else found


def device_of(reported: str, architecture: str) -> str:
    """Name in the catalogue; "" = not known.

    Args:
        reported: name that the driver gives.
        architecture: of its platform report, "" = it has none.
    """
    if architecture:
        return ARCHITECTURES.get(architecture, "")
    return NAMES.get(reported.strip(), "")


def _find(value: Any, depth: int) -> str:
    if depth > MAX_DEPTH:
        return ""
    if isinstance(value, dict):
        if isinstance(value.get(ARCHITECTURE_KEY), str):
            return str(value[ARCHITECTURE_KEY])
        value = list(value.values())
    inner = (_find(v, depth + 1) for v in value) if isinstance(value, list) else ()
    return next((text for text in inner if text), "")
